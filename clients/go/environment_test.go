package durablememory_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	durablememory "durablememory.dev/go"
)

// withoutVariables takes those of this machine away until the end of the test.
func withoutVariables(t *testing.T) {
	t.Helper()
	for _, variable := range os.Environ() {
		if name, value, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "DURABLE_MEMORY_") {
			t.Setenv(name, value) // which puts it back
			must(t, os.Unsetenv(name))
		}
	}
}

// The golden cases that the clients of all languages share.
func TestVariables(t *testing.T) {
	text, err := os.ReadFile("../conformance/environment.json")
	must(t, err)
	var cases []struct {
		Name    string            `json:"name"`
		Set     map[string]string `json:"set"`
		Refused string            `json:"refused"`
	}
	must(t, json.Unmarshal(text, &cases))
	for _, given := range cases {
		t.Run(given.Name, func(t *testing.T) {
			withoutVariables(t)
			for name, value := range given.Set {
				t.Setenv(name, value)
			}
			said := ""
			if client, err := durablememory.NewClient(); err != nil {
				said = strings.TrimPrefix(err.Error(), "durablememory: ")
			} else {
				must(t, client.Close())
			}
			equal(t, "refused", said, given.Refused)
		})
	}
}

func TestOnlyAProgramThatLeavesSomethingToTheEnvironmentIsToldOfVariables(t *testing.T) {
	withoutVariables(t)
	t.Setenv("DURABLE_MEMORY_TENNANT", "acme")
	whole := durablememory.Namespace{Tenant: "acme", Principal: "user-1", Scope: "project-a"}
	address, token := durablememory.WithAddress("127.0.0.1:1"), durablememory.WithToken("token")
	namespace := durablememory.WithNamespace(whole)
	client, err := durablememory.NewClient(address, token, namespace)
	must(t, err)
	must(t, client.Close())
	for name, options := range map[string][]durablememory.Option{
		"the address":   {token, namespace},
		"the token":     {address, namespace},
		"the namespace": {address, token},
		"the tenant":    {address, token, durablememory.WithNamespace(durablememory.Namespace{Principal: "user-1", Scope: "project-a"})},
		"the principal": {address, token, durablememory.WithNamespace(durablememory.Namespace{Tenant: "acme", Scope: "project-a"})},
		"the scope":     {address, token, durablememory.WithNamespace(durablememory.Namespace{Tenant: "acme", Principal: "user-1"})},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := durablememory.NewClient(options...); err == nil || !strings.Contains(err.Error(), "DURABLE_MEMORY_TENNANT") {
				t.Errorf("it was not told: %v", err)
			}
		})
	}
}
