package durablememory

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

// Version is the version of this client.
const Version = "0.1.0"

const defaultAddress = "127.0.0.1:7447"

// Option says how a [Client] connects, and as whom. What no option says is read from the environment, which must have no
// variable whose name begins as theirs do and is misspelt.
type Option func(*settings)

type settings struct {
	address       string
	token         func(context.Context) (string, error)
	tls           *tls.Config
	plain         bool
	namespace     Namespace
	onUnavailable OnUnavailable
	headers       func(context.Context) map[string]string
	dialOptions   []grpc.DialOption
}

// WithAddress is host:port, or a URL: https://host:port is TLS, http://host:port is not. Default:
// DURABLE_MEMORY_ADDRESS, else 127.0.0.1:7447.
func WithAddress(address string) Option { return func(s *settings) { s.address = address } }

// WithToken is the bearer token of every call; white space around it is not sent. Default: DURABLE_MEMORY_TOKEN. It is
// never sent in clear text to another machine unless [WithPlaintext] or http:// says so.
func WithToken(token string) Option {
	if token == "" {
		return func(*settings) {}
	}
	return WithTokenSource(func(context.Context) (string, error) { return token, nil })
}

// WithTokenSource asks for the bearer token before every attempt; an empty one is not sent. Its errors are returned as
// they are.
func WithTokenSource(token func(context.Context) (string, error)) Option {
	return func(s *settings) { s.token = token }
}

// WithTLS speaks TLS; nil is the system's certificates. A configuration with certificates of its own is mutual TLS.
func WithTLS(config *tls.Config) Option {
	return func(s *settings) {
		if config == nil {
			config = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		s.tls = config
	}
}

// WithPlaintext sends everything in clear text, the token included, to whatever machine the address names.
func WithPlaintext() Option { return func(s *settings) { s.plain = true } }

// WithNamespace is the namespace of the client's calls. A part that is empty is read from DURABLE_MEMORY_TENANT,
// _PRINCIPAL or _SCOPE; a part that neither gives stays open: the server fills it in if the credential allows exactly
// one value.
func WithNamespace(namespace Namespace) Option {
	return func(s *settings) { s.namespace = namespace }
}

// WithOnUnavailable says what recalls do when the service cannot answer. Default: FailWhenUnavailable.
func WithOnUnavailable(choice OnUnavailable) Option {
	return func(s *settings) { s.onUnavailable = choice }
}

// WithHeaders adds headers to every attempt, such as those of a trace that the caller's context carries; [TraceHeaders]
// makes such a function of a propagator.
func WithHeaders(headers func(context.Context) map[string]string) Option {
	return func(s *settings) { s.headers = headers }
}

// WithDialOptions adds options of the connection. Those of this client come first.
func WithDialOptions(options ...grpc.DialOption) Option {
	return func(s *settings) { s.dialOptions = append(s.dialOptions, options...) }
}

// TraceHeaders passes the trace context of each call on. It takes the Inject method of a propagator of OpenTelemetry:
//
//	propagator := otel.GetTextMapPropagator()
//	durablememory.WithHeaders(durablememory.TraceHeaders(func(ctx context.Context, headers map[string]string) {
//		propagator.Inject(ctx, propagation.MapCarrier(headers))
//	}))
func TraceHeaders(inject func(context.Context, map[string]string)) func(context.Context) map[string]string {
	return func(ctx context.Context) map[string]string {
		headers := map[string]string{}
		inject(ctx, headers)
		return headers
	}
}

// settle fills what no option said from the environment, then from the defaults.
func settle(options []Option) (*settings, error) {
	chosen := &settings{}
	for _, option := range options {
		option(chosen)
	}
	if chosen.leavesOpen() {
		if err := requireKnownVariables(); err != nil {
			return nil, err
		}
	}
	chosen.address = cmp.Or(chosen.address, os.Getenv("DURABLE_MEMORY_ADDRESS"), defaultAddress)
	if chosen.token == nil {
		WithToken(os.Getenv("DURABLE_MEMORY_TOKEN"))(chosen)
	}
	chosen.namespace = chosen.namespace.or(Namespace{
		Tenant:    os.Getenv("DURABLE_MEMORY_TENANT"),
		Principal: os.Getenv("DURABLE_MEMORY_PRINCIPAL"),
		Scope:     os.Getenv("DURABLE_MEMORY_SCOPE"),
	})
	return chosen, chosen.settleTransport()
}

// leavesOpen says whether anything is left to the environment.
func (s *settings) leavesOpen() bool {
	return s.token == nil || slices.Contains([]string{s.address, s.namespace.Tenant, s.namespace.Principal, s.namespace.Scope}, "")
}

func (s *settings) settleTransport() error {
	stated := s.address
	scheme, rest, isURL := strings.Cut(stated, "://")
	if isURL && (scheme == "http" || scheme == "https") {
		s.address = strings.TrimRight(rest, "/")
		switch {
		case scheme == "https" && s.plain, scheme == "http" && s.tls != nil:
			return fmt.Errorf("durablememory: the address %q contradicts the options", stated)
		case scheme == "https" && s.tls == nil:
			WithTLS(nil)(s)
		case scheme == "http":
			s.plain = true
		}
	}
	if s.address == "" || strings.TrimSpace(s.address) != s.address {
		return fmt.Errorf("durablememory: %q is not an address; expected host:port", stated)
	}
	if s.tls != nil && s.plain {
		return errors.New("durablememory: WithTLS and WithPlaintext contradict each other")
	}
	if s.token != nil && s.tls == nil && !s.plain && !isLoopback(s.address) {
		return fmt.Errorf("durablememory: the token would travel to %s in clear text: use WithTLS or https://, or say "+
			"WithPlaintext or http://", s.address)
	}
	return nil
}

func (s *settings) dial() (*grpc.ClientConn, error) {
	transport := insecure.NewCredentials()
	if s.tls != nil {
		transport = credentials.NewTLS(s.tls)
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(transport),
		grpc.WithUserAgent("durable-memory-go/" + Version),
		// Retries are counted and made by this client; a service config from DNS must not add more.
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
		// The server bounds what it sends, and may be configured to send more.
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessageBytes), grpc.MaxCallSendMsgSize(maxMessageBytes)),
		// A peer that vanished without a word is noticed on open streams. Servers allow one ping a minute beside data.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: time.Minute, Timeout: 20 * time.Second}),
		// A restarted server is found again at the pace of the retries.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
			MinConnectTimeout: 5 * time.Second,
		}),
	}
	if isLoopback(s.address) {
		options = append(options, grpc.WithNoProxy()) // the machine's proxy is not for its own services
	}
	return grpc.NewClient(s.target(), append(options, s.dialOptions...)...)
}

const maxMessageBytes = 1<<31 - 1

// target resolves names by DNS unless the address says another way.
func (s *settings) target() string {
	if strings.Contains(s.address, ":///") || isSocket(s.address) {
		return s.address
	}
	return "dns:///" + s.address
}

// outgoing is the headers of one attempt: names and values in turn.
func (s *settings) outgoing(ctx context.Context) ([]string, error) {
	var headers []string
	if s.headers != nil {
		for name, value := range s.headers(ctx) {
			headers = append(headers, strings.ToLower(name), value)
		}
	}
	if s.token != nil {
		token, err := s.token(ctx)
		if err != nil {
			return nil, fmt.Errorf("durablememory: no token: %w", err)
		}
		if token != "" {
			token = strings.TrimSpace(token) // as a token that was read from a file ends a line
			if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r < '!' || r > '~' }) {
				// Not left to the library, whose error quotes what it cannot send.
				return nil, errors.New("durablememory: the token has characters that a header cannot carry")
			}
			headers = append(headers, "authorization", "Bearer "+token)
		}
	}
	return headers, nil
}

func isSocket(address string) bool {
	return strings.HasPrefix(address, "unix:") || strings.HasPrefix(address, "unix-abstract:")
}

func isLoopback(address string) bool {
	if isSocket(address) {
		return true
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	if host == "localhost" {
		return true
	}
	parsed, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && parsed.IsLoopback()
}
