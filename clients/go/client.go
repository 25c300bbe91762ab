package durablememory

import (
	"context"
	"errors"
	"time"

	"google.golang.org/protobuf/proto"

	pb "durablememory.dev/go/durablememoryv1"
	"durablememory.dev/go/internal/patience"
)

// OnUnavailable is what a recall does when the service cannot answer. The zero value is what the session says, then
// what the client says, then FailWhenUnavailable.
type OnUnavailable int

const (
	// FailWhenUnavailable fails with an error that is [ErrUnavailable].
	FailWhenUnavailable OnUnavailable = iota + 1
	// EmptyWhenUnavailable finds nothing, and says so. It gives up after two seconds, however much later its context
	// ends, and at once while an outage lasts.
	EmptyWhenUnavailable
)

func (o OnUnavailable) or(other OnUnavailable) OnUnavailable {
	if o == 0 {
		return other
	}
	return o
}

// Client is a connection to the service, and a view of its default namespace. Goroutines may share it; one for each
// process is enough.
type Client struct {
	*Memory
}

// Memory is a view of one namespace: all calls are made in it. Views share the connection of their client.
type Memory struct {
	calls     *calls
	namespace Namespace
}

// NewClient makes a client; it connects with the first call. Close it.
func NewClient(options ...Option) (*Client, error) {
	chosen, err := settle(options)
	if err != nil {
		return nil, err
	}
	connection, err := chosen.dial()
	if err != nil {
		return nil, err
	}
	made := &calls{
		connection: connection, headers: chosen.outgoing, onUnavailable: chosen.onUnavailable,
		patience: patience.Timeout, pause: patience.Pause,
	}
	return &Client{&Memory{calls: made, namespace: chosen.namespace}}, nil
}

// Close closes the connection. Calls that are running fail; later ones return [ErrClosed].
func (c *Client) Close() error {
	if c.calls.closed.Swap(true) {
		return nil
	}
	return c.calls.connection.Close()
}

// In is a view of another namespace over the same connection; an empty part is the client's own.
func (c *Client) In(namespace Namespace) *Memory {
	return &Memory{calls: c.calls, namespace: namespace.or(c.namespace)}
}

// ServerInfo says what the server is and can do: profiles, generations, limits, defaults; and who it takes the caller
// for.
func (c *Client) ServerInfo(ctx context.Context) (ServerInfo, error) {
	var response pb.GetServerInfoResponse
	if err := c.call(ctx, &pb.GetServerInfoRequest{}, &response); err != nil {
		return ServerInfo{}, err
	}
	return serverInfoOf(&response), nil
}

const (
	readyPoll    = 100 * time.Millisecond
	readyAttempt = 2 * time.Second
)

// WaitUntilReady waits for the service to answer, until ctx ends.
func (c *Client) WaitUntilReady(ctx context.Context) (ServerInfo, error) {
	for {
		attempt, cancel := context.WithTimeout(ctx, readyAttempt)
		info, err := c.ServerInfo(attempt)
		cancel()
		if err == nil || !errors.Is(err, ErrUnavailable) || !waits(ctx, readyPoll) {
			return info, err
		}
	}
}

// Namespace is which namespace it is, as far as it was stated.
func (m *Memory) Namespace() Namespace { return m.namespace }

// Call makes the unary RPC that request belongs to, under the same request ids, deadlines, retries and errors as all
// calls: for what the other methods do not offer, and for code that has messages of the contract already. A request
// without a namespace is for this one. It is not changed.
func (m *Memory) Call(ctx context.Context, request, response proto.Message) error {
	return m.calls.unary(ctx, m.namespace, proto.Clone(request), response, asTheyTake)
}

// call is Call for a request that is made for it.
func (m *Memory) call(ctx context.Context, request, response proto.Message) error {
	return m.calls.unary(ctx, m.namespace, request, response, asTheyTake)
}
