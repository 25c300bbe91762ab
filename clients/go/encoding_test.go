package durablememory_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"

	durablememory "durablememory.dev/go"
	pb "durablememory.dev/go/durablememoryv1"
	"durablememory.dev/go/internal/scripted"
)

const notUnicode = "caf\xe9"

// rawService answers every call as the test says, below gRPC; its client.
func rawService(t *testing.T, answer http.HandlerFunc, options ...durablememory.Option) *durablememory.Client {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	server := &http.Server{Handler: answer, Protocols: new(http.Protocols)}
	server.Protocols.SetUnencryptedHTTP2(true)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { must(t, server.Close()) })
	own := []durablememory.Option{durablememory.WithAddress(listener.Addr().String())}
	return newClient(t, append(own, options...)...)
}

// answering sends the bytes of a gRPC message, and that the call has succeeded.
func answering(encoding string, message []byte) http.HandlerFunc {
	return func(response http.ResponseWriter, _ *http.Request) {
		response.Header().Set("Content-Type", "application/grpc")
		response.Header().Set("Grpc-Encoding", encoding)
		_, _ = response.Write(message)
		response.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
	}
}

var (
	garbled    = answering("identity", []byte{0, 0, 0, 0, 1, 0xff})
	compressed = answering("brotli", []byte{1, 0, 0, 0, 1, 0xff})
)

func TestTextThatIsNotUTF8IsRefusedByItsFieldAndNotSent(t *testing.T) {
	client, server := scriptedClient(t)
	memory := client.In(durablememory.Namespace{Principal: notUnicode})
	for field, call := range map[string]func(context.Context) error{
		"memory.content": func(ctx context.Context) error {
			_, err := client.Remember(ctx, durablememory.Draft{Content: notUnicode}, nil)
			return err
		},
		"memory.labels[kind]": func(ctx context.Context) error {
			_, err := client.Remember(ctx, durablememory.Draft{Content: "x", Labels: map[string]string{"kind": notUnicode}}, nil)
			return err
		},
		"memory.labels": func(ctx context.Context) error {
			_, err := client.Remember(ctx, durablememory.Draft{Content: "x", Labels: map[string]string{notUnicode: "x"}}, nil)
			return err
		},
		"memory.surroundings[1]": func(ctx context.Context) error {
			_, err := client.Remember(ctx, durablememory.Draft{Content: "x", Surroundings: []string{"x", notUnicode}}, nil)
			return err
		},
		"namespace.principal_id": func(ctx context.Context) error {
			_, err := memory.Remember(ctx, durablememory.Draft{Content: "x"}, nil)
			return err
		},
		"request_id": func(ctx context.Context) error {
			_, err := client.ImportNamespace(ctx, nil, &durablememory.ImportOptions{RequestID: notUnicode})
			return err
		},
		"history_id": func(ctx context.Context) error {
			for _, err := range client.CallStream(ctx, &pb.WatchNamespaceRequest{HistoryId: new(notUnicode)}) {
				return err
			}
			return nil
		},
	} {
		failed := serviceError(t, call(t.Context()))
		equal(t, field+": reason", failed.Reason, durablememory.ReasonInvalidField)
		equal(t, "code", failed.Code, codes.InvalidArgument)
		equal(t, "message", failed.Message, field+" is not valid UTF-8")
		equal(t, "field", failed.Metadata["field"], field)
		equal(t, "it changed nothing", failed.Definite, true)
		equal(t, "attempts", failed.Attempts, 0)
		equal(t, "is an outage", errors.Is(failed, durablememory.ErrUnavailable), false)
	}
	for _, method := range []string{remember, importRPC, watchNamespace} {
		equal(t, method+" was sent", len(server.Asked(method)), 0)
	}
}

func TestAQuestionThatIsNotUTF8IsNoOutageForTheNextOne(t *testing.T) {
	client, server := scriptedClient(t)
	server.Answers(openSession, openedSession())
	server.Answers(activeRecall, scripted.Reply(&pb.ActiveRecallResponse{}))
	session, err := client.OpenSession(t.Context(), "assistant", emptyWhenUnavailable)
	must(t, err)
	if _, err := session.Recall(t.Context(), notUnicode, nil); !errors.Is(err, durablememory.ReasonInvalidField) {
		t.Errorf("expected a refusal: %v", err)
	}
	recall, err := session.Recall(t.Context(), "café", nil)
	must(t, err)
	equal(t, "unavailable", recall.Unavailable(), false)
	equal(t, "recalls", len(server.Asked(activeRecall)), 1)
}

func TestAnAnswerThatCannotBeReadIsNoOutageAndNotAskedForAgain(t *testing.T) {
	for what, answer := range map[string]http.HandlerFunc{"garbled": garbled, "compressed": compressed} {
		var asked atomic.Int32
		client := rawService(t, func(response http.ResponseWriter, request *http.Request) {
			asked.Add(1)
			answer(response, request)
		})
		failed := serviceError(t, rememberIt(t, client, nil))
		equal(t, what, failed.Code, codes.Internal)
		equal(t, "is an outage", errors.Is(failed, durablememory.ErrUnavailable), false)
		equal(t, "it changed nothing", failed.Definite, false)
		equal(t, "attempts", asked.Load(), 1)
		for _, err := range client.Watch(nil).All(t.Context()) {
			equal(t, what+" stream", serviceError(t, err).Code, codes.Internal)
		}
		equal(t, "attempts", asked.Load(), 2)
	}
}

func TestAStreamThatIsResetIsAnOutage(t *testing.T) {
	var asked atomic.Int32
	client := rawService(t, func(response http.ResponseWriter, request *http.Request) {
		if asked.Add(1) == 1 {
			panic(http.ErrAbortHandler) // which resets the stream with INTERNAL_ERROR
		}
		answering("identity", make([]byte, 5))(response, request)
	})
	must(t, rememberIt(t, client, nil))
	equal(t, "attempts", asked.Load(), 2)
}

func TestAHeaderThatCannotBeSentIsNoOutage(t *testing.T) {
	client, server := scriptedClient(t, durablememory.WithHeaders(func(context.Context) map[string]string {
		return map[string]string{"trace": "é"}
	}))
	failed := serviceError(t, rememberIt(t, client, nil))
	equal(t, "code", failed.Code, codes.Internal)
	equal(t, "is an outage", errors.Is(failed, durablememory.ErrUnavailable), false)
	equal(t, "attempts", len(server.Asked(remember)), 0)
}
