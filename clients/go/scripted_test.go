package durablememory_test

import (
	"errors"
	"testing"

	durablememory "durablememory.dev/go"
	"durablememory.dev/go/internal/scripted"
)

var testNamespace = durablememory.Namespace{Tenant: "acme", Principal: "user-1", Scope: "tests"}

// scriptedClient is a client of a service that answers as the test says.
func scriptedClient(t *testing.T, options ...durablememory.Option) (*durablememory.Client, *scripted.Server) {
	t.Helper()
	server := scripted.Start(t)
	own := []durablememory.Option{durablememory.WithAddress(server.Address), durablememory.WithNamespace(testNamespace)}
	return newClient(t, append(own, options...)...), server
}

func newClient(t *testing.T, options ...durablememory.Option) *durablememory.Client {
	t.Helper()
	client, err := durablememory.NewClient(options...)
	must(t, err)
	t.Cleanup(func() { must(t, client.Close()) })
	return client
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// serviceError is the error as one of the service.
func serviceError(t *testing.T, err error) *durablememory.Error {
	t.Helper()
	var failed *durablememory.Error
	if !errors.As(err, &failed) {
		t.Fatalf("expected an error of the service, got %v", err)
	}
	return failed
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
