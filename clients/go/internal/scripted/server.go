// Package scripted is a service that gives stated answers and remembers what it was asked: for tests of what a client
// does when a service fails.
package scripted

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Answer is what the service does with one call. The zero value is an empty reply.
type Answer struct {
	// Replies are sent first; a unary call has one.
	Replies []proto.Message
	// Code ends the call with an error, after the replies.
	Code codes.Code
	// Reason is without its prefix; empty: the error has no details, as one of a proxy.
	Reason     string
	Domain     string // default: the contract's
	Metadata   map[string]string
	RetryAfter time.Duration
	Headers    map[string]string
	// Forever keeps the call open until the client ends it, after the replies.
	Forever bool
}

// Reply is the answer of a call that succeeds.
func Reply(messages ...proto.Message) Answer { return Answer{Replies: messages} }

// Refusal is an answer with a reason of the contract.
func Refusal(code codes.Code, reason string) Answer { return Answer{Code: code, Reason: reason} }

// Asked is one call that reached the service.
type Asked struct {
	Requests []proto.Message // one, unless the client streams
	Headers  metadata.MD
	// Left is the time until the deadline; zero without one.
	Left time.Duration
}

// Server is a running service. Its answers to a method come in order, the last one for ever.
type Server struct {
	Address string

	mutex   sync.Mutex
	answers map[string][]Answer
	asked   map[string][]Asked
	more    chan struct{} // closed, and replaced, with every call
}

// Start starts a service that ends with the test.
func Start(t testing.TB, options ...grpc.ServerOption) *Server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &Server{Address: listener.Addr().String(), answers: map[string][]Answer{}, asked: map[string][]Asked{}, more: make(chan struct{})}
	service := grpc.NewServer(append(options, grpc.UnknownServiceHandler(server.handle))...)
	go func() { _ = service.Serve(listener) }()
	t.Cleanup(service.Stop)
	return server
}

// Answers sets the answers to a method, by Service.Method.
func (s *Server) Answers(method string, answers ...Answer) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.answers[method] = answers
}

// Asked is the calls of a method that reached the service, in order.
func (s *Server) Asked(method string) []Asked {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return append([]Asked(nil), s.asked[method]...)
}

// Await returns when a method has been called so often, or when ctx ends.
func (s *Server) Await(ctx context.Context, method string, calls int) {
	for {
		s.mutex.Lock()
		asked, more := len(s.asked[method]), s.more
		s.mutex.Unlock()
		if asked >= calls {
			return
		}
		select {
		case <-more:
		case <-ctx.Done():
			return
		}
	}
}

// Request is the request of one call of a method.
func Request[M proto.Message](t testing.TB, server *Server, method string, call int) M {
	t.Helper()
	asked := server.Asked(method)
	if call >= len(asked) {
		t.Fatalf("%s was asked %d times, not %d", method, len(asked), call+1)
	}
	return asked[call].Requests[0].(M)
}

func (s *Server) handle(_ any, stream grpc.ServerStream) error {
	full, _ := grpc.MethodFromServerStream(stream)
	described, err := describe(full)
	if err != nil {
		return status.Error(codes.Unimplemented, err.Error())
	}
	asked := Asked{}
	asked.Headers, _ = metadata.FromIncomingContext(stream.Context())
	if deadline, stated := stream.Context().Deadline(); stated {
		asked.Left = time.Until(deadline)
	}
	for {
		request, err := empty(described.Input())
		if err != nil {
			return err
		}
		if err := stream.RecvMsg(request); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		asked.Requests = append(asked.Requests, request)
		if !described.IsStreamingClient() {
			break
		}
	}
	return s.answer(stream, described, s.next(name(described), asked))
}

func (s *Server) next(method string, asked Asked) Answer {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.asked[method] = append(s.asked[method], asked)
	close(s.more)
	s.more = make(chan struct{})
	answers := s.answers[method]
	switch len(answers) {
	case 0:
		return Answer{}
	case 1:
		return answers[0]
	}
	s.answers[method] = answers[1:]
	return answers[0]
}

func (s *Server) answer(stream grpc.ServerStream, described protoreflect.MethodDescriptor, answer Answer) error {
	if len(answer.Headers) > 0 {
		stream.SetTrailer(metadata.New(answer.Headers))
	}
	for _, reply := range answer.Replies {
		if err := stream.SendMsg(reply); err != nil {
			return err
		}
	}
	if answer.Forever {
		<-stream.Context().Done()
		return context.Cause(stream.Context())
	}
	if answer.Code != codes.OK {
		return refusal(answer)
	}
	if len(answer.Replies) == 0 && !described.IsStreamingServer() {
		reply, err := empty(described.Output())
		if err != nil {
			return err
		}
		return stream.SendMsg(reply)
	}
	return nil
}

func refusal(answer Answer) error {
	var details []protoadapt.MessageV1
	if answer.Reason != "" {
		domain := answer.Domain
		if domain == "" {
			domain = "durablememory.dev"
		}
		info := &errdetails.ErrorInfo{Reason: "ERROR_REASON_" + answer.Reason, Domain: domain, Metadata: answer.Metadata}
		details = append(details, protoadapt.MessageV1Of(info))
	}
	if answer.RetryAfter > 0 {
		details = append(details, protoadapt.MessageV1Of(&errdetails.RetryInfo{RetryDelay: durationpb.New(answer.RetryAfter)}))
	}
	refused, err := status.New(answer.Code, "refused as it stands in the script").WithDetails(details...)
	if err != nil {
		return err
	}
	return refused.Err()
}

func describe(full string) (protoreflect.MethodDescriptor, error) {
	path := strings.ReplaceAll(strings.TrimPrefix(full, "/"), "/", ".")
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(path))
	if err != nil {
		return nil, err
	}
	return found.(protoreflect.MethodDescriptor), nil
}

func name(described protoreflect.MethodDescriptor) string {
	return string(described.Parent().Name()) + "." + string(described.Name())
}

func empty(described protoreflect.MessageDescriptor) (proto.Message, error) {
	kind, err := protoregistry.GlobalTypes.FindMessageByName(described.FullName())
	if err != nil {
		return nil, err
	}
	return kind.New().Interface(), nil
}
