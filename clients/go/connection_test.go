package durablememory_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	durablememory "durablememory.dev/go"
	pb "durablememory.dev/go/durablememoryv1"
	"durablememory.dev/go/internal/scripted"
)

func TestATokenIsNeverSentInClearTextToAnotherMachine(t *testing.T) {
	token := durablememory.WithToken("secret")
	cases := []struct {
		name    string
		options []durablememory.Option
		allowed bool
	}{
		{"another machine", []durablememory.Option{durablememory.WithAddress("memory.example:443")}, false},
		{"another machine by another resolver", []durablememory.Option{durablememory.WithAddress("dns:///memory.example:443")}, false},
		{"a name that begins like this machine's", []durablememory.Option{durablememory.WithAddress("localhost.example:443")}, false},
		{"another machine, as an IPv6 address", []durablememory.Option{durablememory.WithAddress("[2001:db8::1]:7447")}, false},
		{"this machine", []durablememory.Option{durablememory.WithAddress("localhost:7447")}, true},
		{"this machine, as an IPv4 address", []durablememory.Option{durablememory.WithAddress("127.0.0.2:7447")}, true},
		{"this machine, as an IPv6 address", []durablememory.Option{durablememory.WithAddress("[::1]:7447")}, true},
		{"this machine by a socket", []durablememory.Option{durablememory.WithAddress("unix:///run/memory.sock")}, true},
		{"TLS by the address", []durablememory.Option{durablememory.WithAddress("https://memory.example:443")}, true},
		{"TLS by option", []durablememory.Option{durablememory.WithAddress("memory.example:443"), durablememory.WithTLS(nil)}, true},
		{"clear text by the address", []durablememory.Option{durablememory.WithAddress("http://memory.example:80")}, true},
		{"clear text by option", []durablememory.Option{durablememory.WithAddress("memory.example:80"), durablememory.WithPlaintext()}, true},
	}
	for _, given := range cases {
		t.Run(given.name, func(t *testing.T) {
			client, err := durablememory.NewClient(append(given.options, token)...)
			if err == nil {
				must(t, client.Close())
			} else if strings.Contains(err.Error(), "secret") {
				t.Error("the error has the token in it")
			}
			equal(t, "allowed", err == nil, given.allowed)
		})
	}
}

func TestContradictionsAreRefused(t *testing.T) {
	contradictions := map[string][]durablememory.Option{
		"https in clear text":   {durablememory.WithAddress("https://memory.example"), durablememory.WithPlaintext()},
		"http with TLS":         {durablememory.WithAddress("http://memory.example"), durablememory.WithTLS(nil)},
		"TLS in clear text":     {durablememory.WithAddress("memory.example:1"), durablememory.WithTLS(nil), durablememory.WithPlaintext()},
		"an address of nothing": {durablememory.WithAddress("https://")},
		"an address of spaces":  {durablememory.WithAddress(" memory.example:1")},
	}
	for name, options := range contradictions {
		t.Run(name, func(t *testing.T) {
			if _, err := durablememory.NewClient(options...); err == nil {
				t.Error("it was taken")
			}
		})
	}
}

func TestWhatNoOptionSaysIsReadFromTheEnvironment(t *testing.T) {
	server := scripted.Start(t)
	t.Setenv("DURABLE_MEMORY_ADDRESS", server.Address)
	t.Setenv("DURABLE_MEMORY_TOKEN", "from-the-environment")
	t.Setenv("DURABLE_MEMORY_TENANT", "acme")
	t.Setenv("DURABLE_MEMORY_PRINCIPAL", "user-1")
	t.Setenv("DURABLE_MEMORY_SCOPE", "notes")
	client := newClient(t, durablememory.WithNamespace(durablememory.Namespace{Scope: "stated"}))
	equal(t, "namespace", client.Namespace(), durablememory.Namespace{Tenant: "acme", Principal: "user-1", Scope: "stated"})
	must(t, rememberIt(t, client, nil))
	asked := server.Asked(remember)[0]
	equal(t, "token", asked.Headers.Get("authorization")[0], "Bearer from-the-environment")
	if agent := asked.Headers.Get("user-agent")[0]; !strings.HasPrefix(agent, "durable-memory-go/") {
		t.Errorf("the client does not say what it is: %s", agent)
	}
}

func TestAPartOfTheNamespaceThatNobodyStatesStaysOpen(t *testing.T) {
	for _, part := range []string{"TENANT", "PRINCIPAL", "SCOPE"} {
		t.Setenv("DURABLE_MEMORY_"+part, "")
	}
	server := scripted.Start(t)
	client := newClient(t, durablememory.WithAddress(server.Address), durablememory.WithNamespace(durablememory.Namespace{Scope: "a"}))
	must(t, rememberIt(t, client, nil))
	sent := scripted.Request[*pb.RememberRequest](t, server, remember, 0).GetNamespace()
	equal(t, "tenant is stated", sent.TenantId != nil, false)
	equal(t, "scope", sent.GetScopeId(), "a")
	other := client.In(durablememory.Namespace{Principal: "user-2"})
	equal(t, "view", other.Namespace(), durablememory.Namespace{Principal: "user-2", Scope: "a"})
}

func TestTheTokenSourceIsAskedForEveryAttempt(t *testing.T) {
	tokens := []string{"first", "second"}
	client, server := scriptedClient(t, durablememory.WithTokenSource(func(context.Context) (string, error) {
		token := tokens[0]
		tokens = tokens[1:]
		return token, nil
	}))
	server.Answers(remember, unavailable, scripted.Reply())
	must(t, rememberIt(t, client, nil))
	for attempt, token := range []string{"Bearer first", "Bearer second"} {
		equal(t, "token", server.Asked(remember)[attempt].Headers.Get("authorization")[0], token)
	}
}

func TestAnErrorOfTheTokenSourceIsReturnedAsItIs(t *testing.T) {
	expired := errors.New("the login has expired")
	client, server := scriptedClient(t, durablememory.WithTokenSource(func(context.Context) (string, error) {
		return "", expired
	}))
	if err := rememberIt(t, client, nil); !errors.Is(err, expired) {
		t.Errorf("expected the source's error, got %v", err)
	}
	equal(t, "attempts", len(server.Asked(remember)), 0)
}

func TestATokenThatNoHeaderCanCarryIsRefusedWithoutBeingTold(t *testing.T) {
	token := ""
	client, server := scriptedClient(t, durablememory.WithTokenSource(func(context.Context) (string, error) { return token, nil }))
	for _, token = range []string{"secret\nsecret", "secret secret", "s\u00e9cret", "\n"} {
		err := rememberIt(t, client, nil)
		var failed *durablememory.Error
		if err == nil || errors.As(err, &failed) || strings.Contains(err.Error(), "cret") {
			t.Errorf("%q: got %v", token, err)
		}
	}
	equal(t, "attempts", len(server.Asked(remember)), 0)
	token = "from-a-file\n"
	must(t, rememberIt(t, client, nil))
	equal(t, "token", server.Asked(remember)[0].Headers.Get("authorization")[0], "Bearer from-a-file")
	token = ""
	must(t, rememberIt(t, client, nil))
	equal(t, "headers without a token", len(server.Asked(remember)[1].Headers.Get("authorization")), 0)
}

type traceKey struct{}

func TestTheTraceContextOfTheCallIsPassedOn(t *testing.T) {
	inject := func(ctx context.Context, headers map[string]string) {
		headers["Traceparent"], _ = ctx.Value(traceKey{}).(string)
	}
	client, server := scriptedClient(t, durablememory.WithHeaders(durablememory.TraceHeaders(inject)))
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	ctx := context.WithValue(t.Context(), traceKey{}, parent)
	_, err := client.Remember(ctx, durablememory.Draft{Content: "x"}, nil)
	must(t, err)
	equal(t, "traceparent", server.Asked(remember)[0].Headers.Get("traceparent")[0], parent)
}

func TestTLSWithCertificatesOfOnesOwn(t *testing.T) {
	certificate, roots := selfSigned(t)
	server := scripted.Start(t, grpc.Creds(credentials.NewServerTLSFromCert(&certificate)))
	client := newClient(t, durablememory.WithAddress("https://"+server.Address), durablememory.WithToken("secret"),
		durablememory.WithTLS(&tls.Config{RootCAs: roots}))
	must(t, rememberIt(t, client, nil))
	equal(t, "token", server.Asked(remember)[0].Headers.Get("authorization")[0], "Bearer secret")

	stranger := newClient(t, durablememory.WithAddress("https://"+server.Address))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := stranger.GetChangeToken(ctx); !errors.Is(err, durablememory.ErrUnavailable) {
		t.Errorf("a certificate that nobody vouches for was trusted: %v", err)
	}
}

func selfSigned(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	parsed, err := x509.ParseCertificate(raw)
	must(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, roots
}

func TestWaitUntilReadyWaitsForAServiceThatStarts(t *testing.T) {
	client, server := scriptedClient(t)
	const info = "SessionService.GetServerInfo"
	server.Answers(info, scripted.Refusal(14, "NOT_SERVING"), scripted.Reply(&pb.GetServerInfoResponse{Version: "1.2.3"}))
	ready, err := client.WaitUntilReady(t.Context())
	must(t, err)
	equal(t, "version", ready.Version, "1.2.3")

	server.Answers(info, scripted.Refusal(16, "CREDENTIALS_INVALID"))
	if _, err := client.WaitUntilReady(t.Context()); !errors.Is(err, durablememory.ReasonCredentialsInvalid) {
		t.Errorf("waiting does not help: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
	defer cancel()
	server.Answers(info, unavailable)
	if _, err := client.WaitUntilReady(ctx); !errors.Is(err, durablememory.ErrUnavailable) {
		t.Errorf("expected an outage: %v", err)
	}
}
