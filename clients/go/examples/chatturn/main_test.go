package main

import (
	"os"
	"strings"
	"testing"
	"time"

	durablememory "durablememory.dev/go"
	"durablememory.dev/go/dmtest"
	"durablememory.dev/go/internal/patience"
)

func TestMain(m *testing.M) {
	patience.Timeout = time.Minute // how soon the server answers is not what these tests judge
	m.Run()
}

func TestWhatOneTurnHearsALaterTurnRecallsOnceItIsActive(t *testing.T) {
	memory, ctx := dmtest.New(t).Client, t.Context()
	answer, err := chatTurn(ctx, memory.Memory, "I'd rather have tea.")
	if err != nil || strings.Contains(answer, "I remember") {
		t.Fatalf("the first turn remembers: %q, %v", answer, err)
	}
	candidates, err := memory.ListCandidates(nil).Collect(ctx)
	if err != nil || len(candidates) != 1 {
		t.Fatalf("%d candidates, %v", len(candidates), err)
	}
	if _, err := memory.Activate(ctx, candidates[0], durablememory.ManualDecision(""), nil); err != nil {
		t.Fatal(err)
	}
	answer, err = chatTurn(ctx, memory.Memory, "tea or coffee?")
	if err != nil || !strings.Contains(answer, "I'd rather have tea.</memory>") {
		t.Fatalf("the second turn does not remember: %q, %v", answer, err)
	}
	usage, err := memory.Usage(nil).Collect(ctx)
	if err != nil || len(usage) != 1 || usage[0].UseCount != 1 {
		t.Fatalf("the use is not on record: %v, %v", usage, err)
	}
}

func TestATurnGoesOnWithoutMemory(t *testing.T) {
	nowhere, err := durablememory.NewClient(durablememory.WithAddress("127.0.0.1:1"))
	if err != nil {
		t.Fatal(err)
	}
	defer nowhere.Close()
	answer, err := chatTurn(t.Context(), nowhere.Memory, "hello")
	if err != nil || answer != "You said: hello" {
		t.Errorf("got %q, %v", answer, err)
	}
}

func TestATurnThatNothingCanBeLookedUpForIsOneToo(t *testing.T) {
	memory, ctx := dmtest.New(t).Client, t.Context()
	answer, err := chatTurn(ctx, memory.Memory, "👍")
	if err != nil || answer != "You said: 👍" {
		t.Fatalf("got %q, %v", answer, err)
	}
	candidates, err := memory.ListCandidates(nil).Collect(ctx)
	if err != nil || len(candidates) != 1 {
		t.Fatalf("%d candidates, %v", len(candidates), err)
	}
}

func TestTheExampleIsShort(t *testing.T) {
	source, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(source), "\n"); lines >= 80 {
		t.Errorf("it has %d lines", lines)
	}
}
