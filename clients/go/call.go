package durablememory

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

const (
	// patienceAttempts bounds what may go without an answer, as the client's patience does.
	patienceAttempts = 2
	// asTheyTake is the number of attempts of a call that its policy alone bounds.
	asTheyTake = 0
)

// calls makes calls over one connection, for all namespaces of a client.
type calls struct {
	connection    *grpc.ClientConn
	headers       func(context.Context) ([]string, error) // of one attempt: names and values in turn
	onUnavailable OnUnavailable
	patience      time.Duration // of those who can go on without an answer
	pause         time.Duration // after an outage, in which they do so at once
	closed        atomic.Bool

	mutex       sync.Mutex
	outageUntil time.Time
	outage      *Error
}

// unary makes a call. A change without a request id gets one, which all attempts share. The deadline of ctx is for
// all attempts together; without one it is the RPC's. A positive most bounds the attempts further.
func (c *calls) unary(ctx context.Context, namespace Namespace, request, response proto.Message, most int) error {
	called, err := answering(request, response, false, false)
	if err != nil {
		return err
	}
	called.settleNamespace(request, namespace)
	tried := attempted{method: called.name, requestID: called.settleRequestID(request), codec: newAnswerCodec()}
	if err := checkEncodable(request); err != nil {
		return err
	}
	ctx, cancel := withDefaultTimeout(ctx, called.policy.timeout)
	defer cancel()
	var failed *Error // of the attempt before
	for {
		tried.attempts++
		outgoing, err := c.outgoing(ctx)
		if err != nil && failed != nil {
			return failed.unrepeated(err)
		}
		if err != nil {
			return err
		}
		var header, trailer metadata.MD
		err = c.connection.Invoke(outgoing, called.full, request, response,
			grpc.ForceCodecV2(tried.codec), grpc.Header(&header), grpc.Trailer(&trailer))
		if err == nil {
			c.answered()
			return nil
		}
		failed = failure(ctx, err, tried, header, trailer)
		delay, again := called.policy.delay(failed, tried.attempts, most)
		if !again {
			return failed
		}
		if !waits(ctx, delay) {
			return failed.endedBy(ctx)
		}
	}
}

// stream starts a streaming call. It is not repeated here: whoever reads it knows how far it got. attempt counts how
// often the caller has started this one. Ending ctx ends it.
func (c *calls) stream(ctx context.Context, namespace Namespace, request, response proto.Message, attempt int) (*stream, error) {
	called, err := answering(request, response, false, true)
	if err != nil {
		return nil, err
	}
	called.settleNamespace(request, namespace)
	tried := attempted{
		method: called.name, requestID: called.settleRequestID(request), attempts: attempt, codec: newAnswerCodec(),
	}
	if err := checkEncodable(request); err != nil {
		return nil, err
	}
	ctx, cancel := withDefaultTimeout(ctx, called.policy.timeout)
	outgoing, err := c.outgoing(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	opened, err := c.connection.NewStream(
		outgoing, &grpc.StreamDesc{ServerStreams: true}, called.full, grpc.ForceCodecV2(tried.codec))
	if err == nil {
		err = opened.SendMsg(request)
		if err == nil || errors.Is(err, io.EOF) { // what went wrong is then said by the answer
			err = opened.CloseSend()
		}
	}
	if err != nil {
		failed := failure(ctx, err, tried)
		cancel()
		return nil, failed
	}
	return &stream{ctx: ctx, cancel: cancel, opened: opened, tried: tried}, nil
}

// stream is the messages of a streaming call, in order.
type stream struct {
	ctx    context.Context
	cancel context.CancelFunc
	opened grpc.ClientStream
	tried  attempted
}

// next reads the next message; io.EOF at the end.
func (s *stream) next(into proto.Message) error {
	err := s.opened.RecvMsg(into)
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	header, _ := s.opened.Header() // what there is of it, after an error
	return failure(s.ctx, err, s.tried, header, s.opened.Trailer())
}

// close ends the call; harmless after its end.
func (s *stream) close() { s.cancel() }

// upload streams messages up, first before those of next, until next returns nil; one attempt.
func (c *calls) upload(
	ctx context.Context, namespace Namespace, first proto.Message, next func() (proto.Message, error), response proto.Message,
) error {
	called, err := answering(first, response, true, false)
	if err != nil {
		return err
	}
	called.settleNamespace(first, namespace)
	tried := attempted{method: called.name, requestID: called.settleRequestID(first), attempts: 1, codec: newAnswerCodec()}
	if err := checkEncodable(first); err != nil {
		return err
	}
	ctx, cancel := withDefaultTimeout(ctx, called.policy.timeout)
	defer cancel()
	outgoing, err := c.outgoing(ctx)
	if err != nil {
		return err
	}
	opened, err := c.connection.NewStream(
		outgoing, &grpc.StreamDesc{ClientStreams: true}, called.full, grpc.ForceCodecV2(tried.codec))
	if err != nil {
		return failure(ctx, err, tried)
	}
	for message := first; message != nil; {
		err = opened.SendMsg(message)
		if errors.Is(err, io.EOF) {
			break // the service has answered already; what it said follows
		}
		if err != nil {
			return failure(ctx, err, tried)
		}
		if message, err = next(); err != nil {
			return err
		}
	}
	if err = opened.CloseSend(); err == nil {
		err = opened.RecvMsg(response)
	}
	if err != nil {
		header, _ := opened.Header()
		return failure(ctx, err, tried, header, opened.Trailer())
	}
	return nil
}

// guarded does work that the service may fail to answer. Where the caller chose to go on without, an outage is the
// first result instead of the second, soon, and at once while it lasts. work passes most on to its calls, which share
// one deadline.
func (c *calls) guarded(
	ctx context.Context, choice OnUnavailable, work func(ctx context.Context, most int) error,
) (outage *Error, err error) {
	if choice.or(c.onUnavailable) != EmptyWhenUnavailable {
		ctx, cancel := withinACall(ctx)
		defer cancel()
		return nil, work(ctx, asTheyTake)
	}
	if lasting := c.lastingOutage(); lasting != nil {
		return lasting, nil
	}
	deadline, stated := ctx.Deadline()
	hurried := stated && time.Until(deadline) < c.patience
	patient, cancel := context.WithTimeout(context.WithValue(ctx, waitedKey{}, &hurried), c.patience)
	defer cancel()
	err = work(patient, patienceAttempts)
	var failed *Error
	if !errors.As(err, &failed) || !failed.outage || errors.Is(ctx.Err(), context.Canceled) {
		return nil, err
	}
	// That a caller had less time than is usual, or waited for another call, says nothing about the service.
	if failed.Attempts > 0 && (!hurried || failed.Code != codes.DeadlineExceeded) {
		lasting := *failed
		// Those who do not call for its sake learn why, but sent nothing.
		lasting.Method, lasting.RequestID, lasting.Attempts, lasting.Definite, lasting.cause = "", "", 0, true, nil
		c.mutex.Lock()
		c.outageUntil, c.outage = time.Now().Add(c.pause), &lasting
		c.mutex.Unlock()
	}
	return failed, nil
}

func (c *calls) lastingOutage() *Error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if time.Now().Before(c.outageUntil) {
		return new(*c.outage)
	}
	return nil
}

func (c *calls) answered() {
	c.mutex.Lock()
	c.outageUntil = time.Time{}
	c.mutex.Unlock()
}

// outgoing is the context of one attempt. What ctx has ended already is not sent.
func (c *calls) outgoing(ctx context.Context) (context.Context, error) {
	if c.closed.Load() {
		return nil, ErrClosed
	}
	if ctx.Err() != nil {
		return nil, unsent(ctx)
	}
	headers, err := c.headers(ctx)
	if err != nil {
		return nil, err
	}
	return metadata.AppendToOutgoingContext(ctx, headers...), nil
}

func withDefaultTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if _, stated := ctx.Deadline(); stated || timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, timeout)
}

// withinACall is for several calls that are one to the caller: together they take no longer than any call.
func withinACall(ctx context.Context) (context.Context, context.CancelFunc) {
	return withDefaultTimeout(ctx, policyOf("").timeout)
}

// waits tells whether the delay passed with time left for another attempt.
func waits(ctx context.Context, delay time.Duration) bool {
	if deadline, stated := ctx.Deadline(); stated && time.Now().Add(delay).After(deadline) {
		return false
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}

// outOfTime is why a wait ended early.
func outOfTime(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return context.DeadlineExceeded
}

// gate lets one in at a time, and nobody wait longer than their context.
type gate chan struct{}

func newGate() gate { return make(gate, 1) }

// waitedKey is of what a context tells of a wait at a gate: a *bool.
type waitedKey struct{}

func (g gate) enter(ctx context.Context) error {
	select {
	case g <- struct{}{}:
		return nil
	default:
	}
	if waited, ok := ctx.Value(waitedKey{}).(*bool); ok {
		*waited = true
	}
	select {
	case g <- struct{}{}:
		return nil
	case <-ctx.Done():
		return unsent(ctx)
	}
}

func (g gate) leave() { <-g }
