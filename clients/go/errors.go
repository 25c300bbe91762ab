package durablememory

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	pb "durablememory.dev/go/durablememoryv1"
)

// ErrUnavailable is found in every error that says that the service cannot answer now: it is down, starting,
// overloaded, too slow, or out of reach. The one to look for to carry on without memory. What the call would have
// changed may still have happened unless Definite says otherwise.
var ErrUnavailable = errors.New("the service cannot answer now")

// ErrIncomplete is found in the error of a snapshot, export, watch or refresh that ended before its end, or does not
// match it, and of an answer with another number of outcomes than was asked for. Nothing of it may be relied on.
var ErrIncomplete = errors.New("the stream is not complete")

// ErrClosed is the error of calls with a client that has been closed.
var ErrClosed = errors.New("durablememory: the client is closed")

// Error is a call that the service refused or failed. errors.Is finds its [Reason] in it, and [ErrUnavailable].
type Error struct {
	// Reason is empty if the answer did not come from the service itself: a lost connection, a proxy.
	Reason Reason
	// Code is the gRPC status.
	Code codes.Code
	// Message is one sentence for a person.
	Message string
	// Metadata has every value that the message mentions.
	Metadata map[string]string
	// Method is the RPC, as Service.Method; empty for an item of a batch, and for what was not sent.
	Method string
	// RequestID identifies the call: give it to the same method again, with the same arguments, to learn or complete
	// the first outcome. Empty for calls that change nothing.
	RequestID string
	// Definite is true if the call certainly changed nothing, and false if it may have: an error of a later attempt
	// says nothing about the attempts before it.
	Definite bool
	// Attempts is how often the call was sent, by this client and by proxies that say so; 0 if it was not.
	Attempts int
	// RetryAfter is how long to wait before another attempt, if the service said so.
	RetryAfter time.Duration

	outage bool
	cause  error
}

// Error is the reason, or the code where there is none, and the message.
func (e *Error) Error() string {
	name := string(e.Reason)
	if name == "" {
		name = e.Code.String()
	}
	return name + ": " + e.Message
}

// Is tells whether target is the reason of this error, or ErrUnavailable and the service could not answer.
func (e *Error) Is(target error) bool {
	if reason, ok := target.(Reason); ok {
		return reason == e.Reason
	}
	return target == ErrUnavailable && e.outage
}

// Unwrap is context.Canceled where the caller's context ended the call, context.DeadlineExceeded where the time for it
// was up, and what kept it from being repeated where that was on this side, such as ErrClosed; else nil.
func (e *Error) Unwrap() error { return e.cause }

// GRPCStatus is the status for code that speaks gRPC.
func (e *Error) GRPCStatus() *status.Status { return status.New(e.Code, e.Message) }

// attempted is what was tried. requestID is empty for a call that changes nothing; attempts counts from 1.
type attempted struct {
	method    string
	requestID string
	attempts  int
	codec     *answerCodec
}

// failure makes the error of a failed call: the reason decides the kind, the attempts decide what is definite. ctx is
// the caller's.
func failure(ctx context.Context, err error, tried attempted, headers ...metadata.MD) *Error {
	state, _ := status.FromError(err)
	code := state.Code()
	info, retryAfter := details(state)
	if info == nil {
		switch {
		case code == codes.Canceled && ctx.Err() == nil:
			// A server that stops ends what has reached it in this way; it is not the caller's wish.
			code = codes.Unavailable
		case code == codes.Internal && ofPeer(state, headers) && !tried.codec.undecodable:
			// A proxy whose server is gone resets what was being answered; the service gives its reason.
			code = codes.Unavailable
		}
	}
	made := &Error{
		Code:       code,
		Message:    state.Message(),
		Method:     tried.method,
		RequestID:  tried.requestID,
		Attempts:   max(tried.attempts, proxyAttempts(headers)),
		RetryAfter: retryAfter,
	}
	switch {
	case info != nil:
		made.Reason = Reason(strings.TrimPrefix(info.GetReason(), reasonPrefix))
		made.Metadata = maps.Clone(info.GetMetadata())
	// A call that fails on this side of the wire carries no reason. These statuses have only one.
	case code == codes.DeadlineExceeded:
		made.Reason = ReasonDeadlineExceeded
	case code == codes.Canceled:
		made.Reason = ReasonCancelled
	}
	row, known := reasons().rows[made.Reason]
	// An answer speaks of its own attempt: what an attempt before it did, it does not know.
	made.Definite = tried.requestID == "" || (known && row.Definite != nil && *row.Definite && made.Attempts == 1)
	made.outage = row.Outage || (!known && code == codes.Unavailable)
	switch code {
	case codes.Canceled:
		made.cause = ctx.Err()
	case codes.DeadlineExceeded:
		// Also where the service noticed it first, a moment before ctx ends.
		made.cause = context.DeadlineExceeded
	}
	return made
}

// unsent is the error of a call that ctx ended before it was sent.
func unsent(ctx context.Context) *Error {
	made := failure(ctx, status.FromContextError(ctx.Err()).Err(), attempted{})
	made.Definite = true
	return made
}

// endedBy is the same error for a call that was to be repeated, had the caller's context not ended.
func (e *Error) endedBy(ctx context.Context) *Error {
	if e.cause == nil {
		e.cause = ctx.Err()
	}
	return e
}

// unrepeated is the same error for a call that was to be repeated, had cause not kept it from being sent again.
func (e *Error) unrepeated(cause error) *Error {
	e.cause = cause
	return e
}

// ofSeveral is the error of one of several calls that are one to the caller: where others may have been done, it says
// nothing definite of the whole.
func ofSeveral(err error, othersDone bool) error {
	if failed, ok := err.(*Error); ok && othersDone {
		failed.Definite = false
	}
	return err
}

// itemError is the error of one refused item of a batch, as if it had been a call of its own.
func itemError(item *pb.ItemError) error {
	if item == nil {
		return nil
	}
	reason := Reason(unknown + "_" + strconv.Itoa(int(item.GetReason())))
	if name, ok := pb.ErrorReason_name[int32(item.GetReason())]; ok {
		reason = Reason(strings.TrimPrefix(name, reasonPrefix))
	}
	made := &Error{
		Reason:   reason,
		Code:     codes.Unknown,
		Message:  item.GetMessage(),
		Metadata: maps.Clone(item.GetMetadata()),
		Attempts: 1,
		// The others went on, this item did not: the answer itself says so.
		Definite: true,
	}
	if row, known := reasons().rows[reason]; known {
		made.Code, made.outage = row.Code, row.Outage
	}
	return made
}

// incomplete says why a stream cannot be relied on.
func incomplete(format string, arguments ...any) error {
	return fmt.Errorf("%w: %s", ErrIncomplete, fmt.Sprintf(format, arguments...))
}

// details finds what the service says of its error. A proxy may add details of its own domain; its reasons are not
// ours.
func details(state *status.Status) (info *errdetails.ErrorInfo, retryAfter time.Duration) {
	for _, detail := range state.Details() {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			if detail.GetDomain() == reasons().domain {
				info = detail
			}
		case *errdetails.RetryInfo:
			retryAfter = detail.GetRetryDelay().AsDuration()
		}
	}
	return info, retryAfter
}

const proxyAttemptsHeader = "x-envoy-attempt-count"

func proxyAttempts(headers []metadata.MD) int {
	most := 0
	for _, header := range headers {
		for _, value := range header.Get(proxyAttemptsHeader) {
			if count, err := strconv.Atoi(value); err == nil {
				most = max(most, count)
			}
		}
	}
	return most
}
