package dmtest_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	durablememory "durablememory.dev/go"
	"durablememory.dev/go/dmtest"
)

func TestANewServerRemembers(t *testing.T) {
	t.Setenv("DURABLE_MEMORY_TENANT", "of-the-developer") // which is for the developer's own programs
	t.Setenv("DURABLE_MEMORY_SERVER_ADDRESS", "127.0.0.1:1")
	server := dmtest.New(t)
	if _, err := server.Client.Remember(t.Context(), durablememory.Draft{Content: "The office opens at 8."}, nil); err != nil {
		t.Fatal(err)
	}
	other := server.NewClient(t)
	if other.Namespace() == server.Client.Namespace() || other.Namespace().Tenant != "test" {
		t.Errorf("two clients share a namespace: %v", other.Namespace())
	}
	nodes, err := other.ListNodes(nil).Collect(t.Context())
	if err != nil || len(nodes) != 0 {
		t.Errorf("a fresh namespace has %d nodes, %v", len(nodes), err)
	}
}

func TestAClosedServerIsGone(t *testing.T) {
	server, err := dmtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	client := server.NewClient(t)
	for range 2 {
		if err := server.Close(); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := client.ServerInfo(ctx); !errors.Is(err, durablememory.ErrUnavailable) {
		t.Errorf("expected an outage: %v", err)
	}
}

func TestAMissingServerIsAFailureThatSaysWhatToDo(t *testing.T) {
	t.Setenv("DURABLE_MEMORY_SERVER_COMMAND", "no-such-program serve-memory")
	_, err := dmtest.Start()
	if !errors.Is(err, exec.ErrNotFound) || !strings.Contains(err.Error(), "pip install durable-memory") {
		t.Errorf("got %v", err)
	}
}

func TestAServerThatEndsIsAFailureThatSaysWhatItSaid(t *testing.T) {
	t.Setenv("DURABLE_MEMORY_SERVER_COMMAND", "ls --no-such-option")
	_, err := dmtest.Start()
	if err == nil || !strings.Contains(err.Error(), "no-such-option") {
		t.Errorf("got %v", err)
	}
}

func TestAServerMayRecallByMeaning(t *testing.T) {
	memory, ctx := dmtest.New(t, dmtest.WithEmbeddingProvider("local-fast")).Client, t.Context()
	if _, err := memory.Remember(ctx, durablememory.Draft{Content: "The user drinks tea."}, nil); err != nil {
		t.Fatal(err)
	}
	session, err := memory.OpenSession(ctx, "assistant", nil)
	if err != nil {
		t.Fatal(err)
	}
	receipt, err := memory.RefreshSemanticRecall(ctx, session.ID(), nil)
	if err != nil || receipt.IndexedCount != 1 {
		t.Fatalf("indexed %d, %v", receipt.IndexedCount, err)
	}
	recall, err := session.Recall(ctx, "The user drinks tea.", &durablememory.RecallOptions{Mode: durablememory.RecallModeSemantic})
	if err != nil || len(recall.Hits) != 1 || recall.Hits[0].Semantic == nil {
		t.Errorf("found %+v, %v", recall.Hits, err)
	}
}

func TestTheCommandMayBeRelativeToTheTests(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("server", []byte("#!/bin/sh\necho this one ran\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DURABLE_MEMORY_SERVER_COMMAND", "./server")
	if _, err := dmtest.Start(); err == nil || !strings.Contains(err.Error(), "this one ran") {
		t.Errorf("got %v", err)
	}
}
