package durablememory

import (
	"context"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
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

// waitedFor is a context that tells when somebody waits with it.
type waitedFor struct {
	context.Context
	tell func()
}

func (c waitedFor) Done() <-chan struct{} {
	c.tell()
	return c.Context.Done()
}

func TestWhoHadLittleTimeAfterAWaitForAnotherCallMakesNoOutageForTheOthers(t *testing.T) {
	for name, given := range map[string]struct {
		waited  bool
		code    codes.Code
		outages bool
	}{
		"late after a wait": {true, codes.DeadlineExceeded, false},
		"late":              {false, codes.DeadlineExceeded, true},
		"down after a wait": {true, codes.Unavailable, true},
	} {
		t.Run(name, func(t *testing.T) {
			made := &calls{patience: time.Hour, pause: time.Hour}
			turns := newGate()
			if given.waited {
				_ = turns.enter(t.Context())
			}
			answer := &Error{Code: given.code, Attempts: 1, outage: true}
			outage, err := made.guarded(t.Context(), EmptyWhenUnavailable, func(ctx context.Context, _ int) error {
				if err := turns.enter(waitedFor{ctx, sync.OnceFunc(turns.leave)}); err != nil {
					return err
				}
				return answer
			})
			if outage != answer || err != nil {
				t.Errorf("expected the answer: %v, %v", outage, err)
			}
			if lasting := made.lastingOutage(); (lasting != nil) != given.outages {
				t.Errorf("the others are told of %v", lasting)
			}
		})
	}
}
