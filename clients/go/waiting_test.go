package durablememory

import (
	"context"
	"testing"
	"time"
)

// All of these would last an hour if they did not end for the reason that they are about.
func TestAWaitEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan bool)
	go func() { ended <- waits(ctx, time.Hour) }()
	cancel()
	if <-ended {
		t.Error("a wait that was cancelled is taken for one that passed")
	}
}

func TestAWaitThatWouldOutlastItsDeadlineIsNotBegun(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
	defer cancel()
	if waits(ctx, time.Hour) {
		t.Error("there is no time left after it")
	}
}
