package durablememory_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	durablememory "durablememory.dev/go"
	pb "durablememory.dev/go/durablememoryv1"
	"durablememory.dev/go/internal/scripted"
)

const (
	openSession  = "SessionService.OpenSession"
	beginRun     = "SessionService.BeginRun"
	endRun       = "SessionService.EndRun"
	activeRecall = "RecallService.ActiveRecall"
)

var emptyWhenUnavailable = &durablememory.OpenSessionOptions{OnUnavailable: durablememory.EmptyWhenUnavailable}

func openedSession() scripted.Answer {
	return scripted.Reply(&pb.OpenSessionResponse{
		Outcome: pb.OpenSessionOutcome_OPEN_SESSION_OUTCOME_OPENED,
		Session: &pb.Session{
			SessionId:     "assistant",
			BindingDigest: "d1",
			Binding:       &pb.SessionBinding{Namespace: &pb.NamespaceRef{TenantId: new("acme"), PrincipalId: new("user-1"), ScopeId: new("tests")}},
		},
	})
}

func begunRun() scripted.Answer {
	return scripted.Reply(&pb.BeginRunResponse{Run: &pb.Run{SessionId: "assistant", RunId: "turn-1", Incarnation: "i", ContextId: "c1"}})
}

func TestAnOutageFailsARecallUnlessTheCallerChoseOtherwise(t *testing.T) {
	client, server := scriptedClient(t)
	server.Answers(openSession, openedSession())
	session, err := client.OpenSession(t.Context(), "assistant", nil)
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	server.Answers(activeRecall, unavailable)
	if _, err := session.Recall(ctx, "tea", nil); !errors.Is(err, durablememory.ErrUnavailable) {
		t.Errorf("expected an outage: %v", err)
	}
	recall, err := session.Recall(t.Context(), "tea", &durablememory.RecallOptions{OnUnavailable: durablememory.EmptyWhenUnavailable})
	must(t, err)
	equal(t, "unavailable", recall.Unavailable(), true)
	equal(t, "its error is an outage", errors.Is(recall.Err, durablememory.ErrUnavailable), true)
	equal(t, "namespace", recall.Namespace, testNamespace)
}

func TestASessionThatAnOutageKeptFromOpeningIsOpenedByTheNextRecall(t *testing.T) {
	client, server := scriptedClient(t)
	server.Answers(openSession, unavailable)
	session, err := client.OpenSession(t.Context(), "", emptyWhenUnavailable)
	must(t, err)
	_, open := session.Info()
	equal(t, "open", open, false)
	run, err := session.BeginRun(t.Context(), "turn-1", nil)
	must(t, err)
	equal(t, "evidence can name the turn", run.Evidence("x").URI, "session:"+session.ID()+"/turn/turn-1")
	recall, err := run.Recall(t.Context(), "tea", nil)
	must(t, err)
	equal(t, "unavailable", recall.Unavailable(), true)
	equal(t, "what an outage that lasts was asked", len(server.Asked(openSession)), 2)

	must(t, rememberIt(t, client, nil)) // an answer: the outage is over
	server.Answers(openSession, openedSession())
	server.Answers(beginRun, begunRun())
	recall, err = run.Recall(t.Context(), "tea", nil)
	must(t, err)
	equal(t, "unavailable", recall.Unavailable(), false)
	equal(t, "context", run.ContextID(), "c1")
	requests := server.Asked(openSession)
	for _, asked := range requests {
		request := asked.Requests[0].(*pb.OpenSessionRequest)
		equal(t, "session id", request.GetSessionId(), session.ID())
		equal(t, "request id", request.GetRequestId(), requests[0].Requests[0].(*pb.OpenSessionRequest).GetRequestId())
	}
	equal(t, "outcome", session.Outcome(), durablememory.OpenSessionOutcomeOpened)
}

func TestARefusalIsNoOutage(t *testing.T) {
	client, server := scriptedClient(t, durablememory.WithOnUnavailable(durablememory.EmptyWhenUnavailable))
	server.Answers(openSession, openedSession())
	session, err := client.OpenSession(t.Context(), "assistant", nil)
	must(t, err)
	server.Answers(activeRecall, scripted.Refusal(9, "SESSION_CLOSED"))
	if _, err := session.Recall(t.Context(), "tea", nil); !errors.Is(err, durablememory.ReasonSessionClosed) {
		t.Errorf("expected SESSION_CLOSED: %v", err)
	}
}

func TestWhoCanGoWithoutMemoryWaitsTwoSecondsForIt(t *testing.T) {
	t.Parallel()
	client, server := scriptedClient(t)
	server.Answers(openSession, openedSession())
	session, err := client.OpenSession(t.Context(), "assistant", emptyWhenUnavailable)
	must(t, err)
	equal(t, "the patience of a client", durablememory.UsualPatience, 2*time.Second)
	client.SetPatience(durablememory.UsualPatience)
	server.Answers(activeRecall, scripted.Answer{Forever: true})
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // later than that, as a handler of requests has
	defer cancel()
	recall, err := session.Recall(ctx, "tea", nil)
	must(t, err)
	equal(t, "unavailable", recall.Unavailable(), true)
	for _, asked := range server.Asked(activeRecall) {
		if asked.Left == 0 || asked.Left > 2*time.Second {
			t.Errorf("an attempt had %v", asked.Left)
		}
	}
	recall, err = session.Recall(ctx, "tea", nil)
	must(t, err)
	equal(t, "attempts while the outage lasts", serviceError(t, recall.Err).Attempts, 0)
}

func TestWhoWaitsForSomebodyElsesCallGoesWithoutMemoryToo(t *testing.T) {
	t.Parallel()
	client, server := scriptedClient(t)
	server.Answers(openSession, openedSession())
	server.Answers(beginRun, begunRun())
	session, err := client.OpenSession(t.Context(), "assistant", emptyWhenUnavailable)
	must(t, err)
	run, err := session.BeginRun(t.Context(), "turn-1", nil)
	must(t, err)
	client.SetPatience(300 * time.Millisecond)
	server.Answers(activeRecall, scripted.Answer{Forever: true})
	var group sync.WaitGroup
	for range 3 { // of which the others wait for the first one's assembly
		group.Go(func() {
			recall, err := run.RecallAndAdmit(t.Context(), "tea", nil)
			if err != nil || !recall.Unavailable() {
				t.Errorf("not an empty recall: %+v, %v", recall, err)
			}
		})
	}
	group.Wait()
}

func TestACallerWhoLeavesDoesNotMakeAnOutageForTheOthers(t *testing.T) {
	client, server := scriptedClient(t)
	server.Answers(openSession, openedSession())
	session, err := client.OpenSession(t.Context(), "assistant", emptyWhenUnavailable)
	must(t, err)
	server.Answers(activeRecall, scripted.Answer{Forever: true})
	gone, cancel := context.WithCancel(t.Context())
	go func() {
		server.Await(gone, activeRecall, 1)
		cancel()
	}()
	if _, err := session.Recall(gone, "tea", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("expected the caller's cancellation: %v", err)
	}
	hurried, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	recall, err := session.Recall(hurried, "tea", nil)
	must(t, err)
	equal(t, "unavailable", recall.Unavailable(), true)

	server.Answers(activeRecall, scripted.Reply())
	recall, err = session.Recall(t.Context(), "tea", nil)
	must(t, err)
	equal(t, "unavailable for the others", recall.Unavailable(), false)
}

func TestAWaitForAnotherCallIsNoOutageForTheOthers(t *testing.T) {
	t.Parallel()
	client, server := scriptedClient(t)
	server.Answers(openSession, openedSession())
	server.Answers(beginRun, begunRun())
	session, err := client.OpenSession(t.Context(), "assistant", nil)
	must(t, err)
	run, err := session.BeginRun(t.Context(), "turn-1", nil)
	must(t, err)
	server.Answers(activeRecall, scripted.Answer{Forever: true}, scripted.Reply())
	patient, stop := context.WithTimeout(t.Context(), time.Hour)
	var group sync.WaitGroup
	group.Go(func() { _, _ = run.RecallAndAdmit(patient, "tea", nil) })
	server.Await(t.Context(), activeRecall, 1)
	goOn := &durablememory.RecallOptions{OnUnavailable: durablememory.EmptyWhenUnavailable}
	client.SetPatience(100 * time.Millisecond)
	waited, err := run.RecallAndAdmit(t.Context(), "tea", goOn)
	client.SetPatience(time.Minute)
	must(t, err)
	equal(t, "attempts of the one that waited", serviceError(t, waited.Err).Attempts, 0)
	recall, err := session.Recall(t.Context(), "tea", goOn)
	stop()
	group.Wait()
	must(t, err)
	equal(t, "unavailable for the others", recall.Unavailable(), false)
}

func TestWhoIsToldOfALastingOutageSentNothing(t *testing.T) {
	client, server := scriptedClient(t)
	server.Answers(openSession, openedSession())
	server.Answers(beginRun, begunRun())
	session, err := client.OpenSession(t.Context(), "assistant", emptyWhenUnavailable)
	must(t, err)
	run, err := session.BeginRun(t.Context(), "turn-1", nil)
	must(t, err)
	server.Answers(activeRecall, unavailable)
	first, err := run.RecallAndAdmit(t.Context(), "tea", nil)
	must(t, err)
	equal(t, "definite for the one that called", serviceError(t, first.Err).Definite, false)
	second, err := session.Recall(t.Context(), "tea", nil)
	must(t, err)
	failed := serviceError(t, second.Err)
	equal(t, "an outage", errors.Is(failed, durablememory.ErrUnavailable), true)
	equal(t, "definite", failed.Definite, true)
	equal(t, "attempts", failed.Attempts, 0)
	equal(t, "request id", failed.RequestID, "")
	equal(t, "method", failed.Method, "")
}
