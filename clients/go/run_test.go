package durablememory_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	durablememory "durablememory.dev/go"
	pb "durablememory.dev/go/durablememoryv1"
	"durablememory.dev/go/internal/scripted"
)

const (
	admitMemories = "RecallService.AdmitMemories"
	recordUse     = "RecallService.RecordUse"
)

// begun is a run of a scripted service, in the assembly c1.
func begun(t *testing.T) (*durablememory.Run, *scripted.Server) {
	t.Helper()
	client, server := scriptedClient(t)
	server.Answers(openSession, openedSession())
	server.Answers(beginRun, begunRun())
	session, err := client.OpenSession(t.Context(), "assistant", nil)
	must(t, err)
	run, err := session.BeginRun(t.Context(), "turn-1", nil)
	must(t, err)
	return run, server
}

func hit(nodeID string) durablememory.Hit {
	return durablememory.Hit{Namespace: testNamespace, Citation: durablememory.Citation{NodeID: nodeID, NodeRevision: 1}}
}

func admittedOutcome(nodeID string) *pb.AdmissionOutcome {
	return &pb.AdmissionOutcome{
		NodeRevision: &pb.NodeRevisionRef{NodeId: nodeID, Revision: 1},
		Verdict:      pb.AdmissionVerdict_ADMISSION_VERDICT_ADMITTED,
	}
}

func refusedOutcome(nodeID string) *pb.AdmissionOutcome {
	return &pb.AdmissionOutcome{
		NodeRevision: &pb.NodeRevisionRef{NodeId: nodeID, Revision: 1},
		Verdict:      pb.AdmissionVerdict_ADMISSION_VERDICT_REFUSED,
		Error:        &pb.ItemError{Reason: pb.ErrorReason_ERROR_REASON_REVISION_CONFLICT, Message: "it has changed"},
	}
}

func TestARunNamesItsProcessAndIsBegunOnce(t *testing.T) {
	run, server := begun(t)
	_, err := run.Recall(t.Context(), "tea", nil)
	must(t, err)
	equal(t, "begun", len(server.Asked(beginRun)), 1)
	request := scripted.Request[*pb.BeginRunRequest](t, server, beginRun, 0)
	equal(t, "run id", request.GetRunId(), "turn-1")
	equal(t, "host instance is stated", request.GetHostInstance() != "", true)
	equal(t, "context of the recall", scripted.Request[*pb.ActiveRecallRequest](t, server, activeRecall, 0).GetContextId(), "c1")
}

func TestEachAdmissionIsRecordedUnderTheContextThatTheOneBeforeReturned(t *testing.T) {
	run, server := begun(t)
	server.Answers(activeRecall, scripted.Reply(&pb.ActiveRecallResponse{
		Result:        &pb.RecallResult{Hits: []*pb.RecallHit{{Citation: &pb.Citation{NodeId: "a", NodeRevision: 1}}}},
		Admissions:    []*pb.AdmissionOutcome{admittedOutcome("a"), refusedOutcome("b")},
		NextContextId: "c2",
	}))
	server.Answers(admitMemories, scripted.Reply(&pb.AdmitMemoriesResponse{
		Outcomes:      []*pb.AdmissionOutcome{refusedOutcome("d"), admittedOutcome("e")},
		NextContextId: "c3",
	}))
	recall, err := run.RecallAndAdmit(t.Context(), "tea", nil)
	must(t, err)
	equal(t, "context", recall.ContextID, "c1")
	equal(t, "hits", len(recall.Hits), 1)
	equal(t, "admissions", len(recall.Admissions), 2)
	if !errors.Is(recall.Admissions[1].Err, durablememory.ReasonRevisionConflict) {
		t.Errorf("the refusal has no reason: %v", recall.Admissions[1].Err)
	}
	admission, err := run.Admit(t.Context(), []durablememory.Hit{hit("d"), hit("e")}, nil)
	must(t, err)
	equal(t, "context", admission.ContextID, "c2")
	equal(t, "context that was sent", scripted.Request[*pb.AdmitMemoriesRequest](t, server, admitMemories, 0).GetContextId(), "c2")
	equal(t, "what may stay", len(admission.Hits), 1)
	equal(t, "what may stay", admission.Hits[0].Citation.NodeID, "e")
	equal(t, "what must leave", len(admission.Refused()), 1)
	equal(t, "next context", run.ContextID(), "c3")
}

func TestAUseIsRecordedUnderTheAssemblyThatTheMemoryWasAdmittedTo(t *testing.T) {
	run, server := begun(t)
	server.Answers(admitMemories,
		scripted.Reply(&pb.AdmitMemoriesResponse{Outcomes: []*pb.AdmissionOutcome{admittedOutcome("a")}, NextContextId: "c2"}),
		scripted.Reply(&pb.AdmitMemoriesResponse{Outcomes: []*pb.AdmissionOutcome{admittedOutcome("b")}, NextContextId: "c3"}))
	for _, nodeID := range []string{"a", "b"} {
		_, err := run.Admit(t.Context(), []durablememory.Hit{hit(nodeID)}, nil)
		must(t, err)
	}
	used := func(ids ...string) scripted.Answer {
		response := &pb.RecordUseResponse{}
		for _, id := range ids {
			response.Outcomes = append(response.Outcomes, &pb.UseOutcome{EventId: id, Verdict: pb.UseVerdict_USE_VERDICT_RECORDED})
		}
		return scripted.Reply(response)
	}
	server.Answers(recordUse, used("b", "b"), used("a"), used("never"))
	outcomes, err := run.RecordUse(t.Context(), []durablememory.Hit{hit("b"), hit("a"), hit("b"), hit("never")}, nil)
	must(t, err)
	for place, want := range []string{"b", "a", "b", "never"} {
		equal(t, "outcome", outcomes[place].EventID, want)
	}
	for call, want := range []string{"c2", "c1", "c3"} {
		equal(t, "context", scripted.Request[*pb.RecordUseRequest](t, server, recordUse, call).GetContextId(), want)
	}
	_, err = run.RecordUse(t.Context(), []durablememory.Hit{hit("a"), hit("b")}, &durablememory.RecordUseOptions{RequestID: "r"})
	if err == nil {
		t.Error("one request id was taken for two calls")
	}
}

func TestNothingAdmittedAndNothingUsedTakeNoCall(t *testing.T) {
	run, server := begun(t)
	_, err := run.Admit(t.Context(), nil, nil)
	must(t, err)
	_, err = run.RecordUse(t.Context(), nil, nil)
	must(t, err)
	equal(t, "calls", len(server.Asked(admitMemories))+len(server.Asked(recordUse)), 0)
}

func TestAnAnswerWithAnotherNumberOfOutcomesIsNotTaken(t *testing.T) {
	run, server := begun(t)
	server.Answers(admitMemories, scripted.Reply(&pb.AdmitMemoriesResponse{NextContextId: "c2"}))
	if _, err := run.Admit(t.Context(), []durablememory.Hit{hit("a")}, nil); !errors.Is(err, durablememory.ErrIncomplete) {
		t.Errorf("expected ErrIncomplete: %v", err)
	}
}

func TestCloseEndsTheRunOnceAlsoWhenItsContextHasEnded(t *testing.T) {
	client, server := scriptedClient(t)
	server.Answers(openSession, openedSession())
	server.Answers(beginRun, begunRun())
	ended := &pb.Run{SessionId: "assistant", RunId: "turn-1", EndedAt: nowStamp()}
	server.Answers(endRun, scripted.Reply(&pb.EndRunResponse{Run: ended}))
	session, err := client.OpenSession(t.Context(), "assistant", nil)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	run, err := session.BeginRun(ctx, "turn-1", nil)
	must(t, err)
	cancel()
	must(t, run.Close())
	must(t, run.Close())
	equal(t, "ended", len(server.Asked(endRun)), 1)
	equal(t, "incarnation", scripted.Request[*pb.EndRunRequest](t, server, endRun, 0).GetIncarnation(), "i")
}

func TestClosingARunThatNeverBeganTakesNoCall(t *testing.T) {
	client, server := scriptedClient(t)
	server.Answers(openSession, unavailable)
	session, err := client.OpenSession(t.Context(), "assistant", emptyWhenUnavailable)
	must(t, err)
	run, err := session.BeginRun(t.Context(), "", nil)
	must(t, err)
	must(t, run.Close())
	equal(t, "ended", len(server.Asked(endRun)), 0)
}

func TestGoroutinesThatShareARunAssembleOneAfterTheOther(t *testing.T) {
	run, server := begun(t)
	var answers []scripted.Answer
	const count = 20
	for i := range count {
		answers = append(answers, scripted.Reply(&pb.ActiveRecallResponse{NextContextId: fmt.Sprintf("c%d", i+2)}))
	}
	server.Answers(activeRecall, answers...)
	var group sync.WaitGroup
	for range count {
		group.Go(func() {
			if _, err := run.RecallAndAdmit(t.Context(), "tea", nil); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for call := range count {
		sent := scripted.Request[*pb.ActiveRecallRequest](t, server, activeRecall, call).GetContextId()
		equal(t, "context", sent, fmt.Sprintf("c%d", call+1))
	}
}

func TestRebindingExpectsWhatTheSessionIsBoundTo(t *testing.T) {
	client, server := scriptedClient(t)
	server.Answers(openSession, openedSession())
	session, err := client.OpenSession(t.Context(), "assistant", nil)
	must(t, err)
	const rebind = "SessionService.RebindSession"
	server.Answers(rebind, scripted.Reply(&pb.RebindSessionResponse{Session: &pb.Session{BindingDigest: "d2"}}))
	for range 2 {
		_, err = session.Rebind(t.Context(), durablememory.Policy{MaxResults: 3, MinScore: new(0.0)}, nil)
		must(t, err)
	}
	for call, digest := range []string{"d1", "d2"} {
		request := scripted.Request[*pb.RebindSessionRequest](t, server, rebind, call)
		equal(t, "expected", request.GetExpectedBindingDigest(), digest)
		equal(t, "a zero that is stated is sent", request.GetPolicy().MinScore != nil, true)
		equal(t, "what is not stated is left to the server", request.GetPolicy().RelatedLookups == nil, true)
	}
}

// severalRuns is runs of two namespaces over one scripted service.
func severalRuns(t *testing.T) ([]*durablememory.Run, *scripted.Server) {
	t.Helper()
	client, server := scriptedClient(t)
	opened := func(scope string) scripted.Answer {
		namespace := &pb.NamespaceRef{TenantId: new("acme"), PrincipalId: new("user-1"), ScopeId: &scope}
		return scripted.Reply(&pb.OpenSessionResponse{Session: &pb.Session{Binding: &pb.SessionBinding{Namespace: namespace}}})
	}
	server.Answers(openSession, opened("user"), opened("project"))
	server.Answers(beginRun, begunRun())
	var runs []*durablememory.Run
	for _, scope := range []string{"user", "project"} {
		session, err := client.In(durablememory.Namespace{Scope: scope}).OpenSession(t.Context(), "assistant", nil)
		must(t, err)
		run, err := session.BeginRun(t.Context(), "turn-1", nil)
		must(t, err)
		runs = append(runs, run)
	}
	return runs, server
}

func TestSeveralNamespacesTakeTurnsByRank(t *testing.T) {
	runs, server := severalRuns(t)
	server.Answers(activeRecall, scripted.Reply(&pb.ActiveRecallResponse{Result: &pb.RecallResult{
		Hits: []*pb.RecallHit{{Content: "1"}, {Content: "2"}},
	}}))
	recall, err := durablememory.RecallAll(t.Context(), runs, "tea", &durablememory.RecallAllOptions{MaxResults: 3})
	must(t, err)
	equal(t, "parts", len(recall.Parts), 2)
	equal(t, "hits", len(recall.Hits), 3)
	for place, want := range []struct{ scope, content string }{{"user", "1"}, {"project", "1"}, {"user", "2"}} {
		equal(t, "scope", recall.Hits[place].Namespace.Scope, want.scope)
		equal(t, "content", recall.Hits[place].Content, want.content)
	}
	equal(t, "unavailable", recall.Unavailable(), false)
}

func TestEachHitIsAdmittedInTheRunOfItsNamespace(t *testing.T) {
	runs, server := severalRuns(t)
	server.Answers(admitMemories, scripted.Reply(&pb.AdmitMemoriesResponse{
		Outcomes: []*pb.AdmissionOutcome{admittedOutcome("a")}, NextContextId: "c2",
	}))
	of := func(scope string) durablememory.Hit {
		found := hit("a")
		found.Namespace.Scope = scope
		return found
	}
	admission, err := durablememory.AdmitAll(t.Context(), runs, []durablememory.Hit{of("project"), of("user")}, nil)
	must(t, err)
	equal(t, "what may stay, in the order given", admission.Hits[0].Namespace.Scope, "project")
	equal(t, "what may stay", len(admission.Hits), 2)
	server.Answers(recordUse, scripted.Reply(&pb.RecordUseResponse{Outcomes: []*pb.UseOutcome{{}}}))
	outcomes, err := durablememory.RecordUseAll(t.Context(), runs, admission.Hits)
	must(t, err)
	equal(t, "uses", len(outcomes), 2)
	if _, err := durablememory.AdmitAll(t.Context(), runs, []durablememory.Hit{of("elsewhere")}, nil); err == nil {
		t.Error("a hit of a namespace that no run is of was taken")
	}
}

func TestANamespaceOutOfReachHasNoHits(t *testing.T) {
	runs, server := severalRuns(t)
	found := scripted.Reply(&pb.ActiveRecallResponse{Result: &pb.RecallResult{Hits: []*pb.RecallHit{{Content: "1"}}}})
	// Whichever run asks first finds it; the other one gets no answer.
	server.Answers(activeRecall, found, unavailable)
	recall, err := durablememory.RecallAll(t.Context(), runs, "tea", &durablememory.RecallAllOptions{
		RecallOptions: durablememory.RecallOptions{OnUnavailable: durablememory.EmptyWhenUnavailable},
	})
	must(t, err)
	equal(t, "hits", len(recall.Hits), 1)
	equal(t, "unavailable", recall.Unavailable(), true)
	equal(t, "its error is an outage", errors.Is(recall.Err(), durablememory.ErrUnavailable), true)
}

func TestTheErrorOfOneNamespaceEndsTheOthers(t *testing.T) {
	runs, server := severalRuns(t)
	server.Answers(activeRecall, scripted.Refusal(codes.FailedPrecondition, "SESSION_CLOSED"), scripted.Answer{Forever: true})
	if _, err := durablememory.RecallAll(t.Context(), runs, "tea", nil); !errors.Is(err, durablememory.ReasonSessionClosed) {
		t.Errorf("expected the first error: %v", err)
	}
}

func TestABeginningWhoseOutcomeIsUnknownCanBeRepeated(t *testing.T) {
	client, server := scriptedClient(t)
	server.Answers(openSession, openedSession())
	session, err := client.OpenSession(t.Context(), "assistant", nil)
	must(t, err)
	server.Answers(beginRun, scripted.Answer{Code: codes.Unknown}, begunRun())
	_, err = session.BeginRun(t.Context(), "turn-1", nil)
	failed := serviceError(t, err)
	equal(t, "definite", failed.Definite, false)
	_, err = session.BeginRun(t.Context(), "turn-1", &durablememory.BeginRunOptions{RequestID: failed.RequestID})
	must(t, err)
	for call := range 2 {
		equal(t, "request id", scripted.Request[*pb.BeginRunRequest](t, server, beginRun, call).GetRequestId(), failed.RequestID)
	}
}

func TestARecallDoesNotWaitForAnAssembly(t *testing.T) {
	run, server := begun(t)
	server.Answers(admitMemories, scripted.Answer{Forever: true})
	assembling, stop := context.WithTimeout(t.Context(), time.Hour)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = run.Admit(assembling, []durablememory.Hit{hit("a")}, nil)
	}()
	server.Await(t.Context(), admitMemories, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := run.Recall(ctx, "tea", nil)
	select {
	case <-ended:
		t.Error("the assembly has ended")
	default:
	}
	stop()
	<-ended
	must(t, err)
}

func TestAUseOfSeveralAssembliesMayHaveBeenRecordedInPart(t *testing.T) {
	run, server := begun(t)
	server.Answers(admitMemories, scripted.Reply(&pb.AdmitMemoriesResponse{
		Outcomes: []*pb.AdmissionOutcome{admittedOutcome("a")}, NextContextId: "c2",
	}))
	_, err := run.Admit(t.Context(), []durablememory.Hit{hit("a")}, nil)
	must(t, err)
	refused := scripted.Refusal(codes.FailedPrecondition, "SESSION_CLOSED")
	server.Answers(recordUse, scripted.Reply(&pb.RecordUseResponse{Outcomes: []*pb.UseOutcome{{}}}), refused)
	_, err = run.RecordUse(t.Context(), []durablememory.Hit{hit("a"), hit("b")}, nil)
	equal(t, "definite after another was recorded", serviceError(t, err).Definite, false)
	_, err = run.RecordUse(t.Context(), []durablememory.Hit{hit("a")}, nil)
	equal(t, "definite alone", serviceError(t, err).Definite, true)
}

func TestAnAdmissionInSeveralRunsMayHaveBeenDoneInPart(t *testing.T) {
	runs, server := severalRuns(t)
	server.Answers(admitMemories, scripted.Refusal(codes.FailedPrecondition, "SESSION_CLOSED"))
	server.Answers(recordUse, scripted.Refusal(codes.FailedPrecondition, "SESSION_CLOSED"))
	hits := []durablememory.Hit{hit("a"), hit("b")}
	for i, run := range runs {
		hits[i].Namespace = run.Namespace()
	}
	_, err := durablememory.AdmitAll(t.Context(), runs, hits, nil)
	equal(t, "definite", serviceError(t, err).Definite, false)
	_, err = durablememory.RecordUseAll(t.Context(), runs, hits)
	equal(t, "definite", serviceError(t, err).Definite, false)
	_, err = durablememory.RecordUseAll(t.Context(), runs, hits[:1])
	equal(t, "definite in one run", serviceError(t, err).Definite, true)
}

// limited is an answer after which a call is repeated a little later.
var limited = scripted.Answer{Code: codes.ResourceExhausted, Reason: "RATE_LIMITED", RetryAfter: 300 * time.Millisecond}

func TestTheStepsOfACallShareItsDeadlineAlsoTheOneByDefault(t *testing.T) {
	fail := &durablememory.RecallOptions{OnUnavailable: durablememory.FailWhenUnavailable}
	hits := []durablememory.Hit{hit("a")}
	calls := map[string]func(context.Context, *durablememory.Session, *durablememory.Run) error{
		activeRecall: func(ctx context.Context, _ *durablememory.Session, run *durablememory.Run) error {
			_, err := run.Recall(ctx, "tea", fail)
			return err
		},
		admitMemories: func(ctx context.Context, _ *durablememory.Session, run *durablememory.Run) error {
			_, err := run.Admit(ctx, hits, &durablememory.AdmitOptions{OnUnavailable: fail.OnUnavailable})
			return err
		},
		recordUse: func(ctx context.Context, _ *durablememory.Session, run *durablememory.Run) error {
			_, err := run.RecordUse(ctx, hits, nil)
			return err
		},
		"RecallService.ExplainRecall": func(ctx context.Context, session *durablememory.Session, _ *durablememory.Run) error {
			_, err := session.Explain(ctx, "a", "tea", nil)
			return err
		},
		"SessionService.RebindSession": func(ctx context.Context, session *durablememory.Session, _ *durablememory.Run) error {
			_, err := session.Rebind(ctx, durablememory.Policy{}, nil)
			return err
		},
	}
	for method, call := range calls {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			client, server := scriptedClient(t)
			server.Answers(openSession, unavailable, unavailable, limited, openedSession())
			session, err := client.OpenSession(t.Context(), "assistant", emptyWhenUnavailable)
			must(t, err)
			server.Answers(beginRun, limited, begunRun())
			run, err := session.BeginRun(t.Context(), "turn-1", nil)
			must(t, err)
			server.Answers(admitMemories, scripted.Reply(&pb.AdmitMemoriesResponse{Outcomes: []*pb.AdmissionOutcome{admittedOutcome("a")}}))
			server.Answers(recordUse, scripted.Reply(&pb.RecordUseResponse{Outcomes: []*pb.UseOutcome{{}}}))

			must(t, call(t.Context(), session, run))

			left := server.Asked(openSession)[2].Left
			for _, step := range []string{beginRun, method} {
				asked := server.Asked(step)
				if len(asked) == 0 {
					continue // it needs no run
				}
				if asked[0].Left > left-200*time.Millisecond { // the step before had to wait for longer
					t.Errorf("%s had %v of %v", step, asked[0].Left, left)
				}
				left = asked[0].Left
			}
			equal(t, "asked", len(server.Asked(method)), 1)
		})
	}
}

func TestUsesOfSeveralAssembliesShareADeadline(t *testing.T) {
	run, server := begun(t)
	server.Answers(admitMemories, scripted.Reply(&pb.AdmitMemoriesResponse{
		Outcomes: []*pb.AdmissionOutcome{admittedOutcome("a")}, NextContextId: "c2",
	}))
	_, err := run.Admit(t.Context(), []durablememory.Hit{hit("a")}, nil)
	must(t, err)
	server.Answers(recordUse, limited, scripted.Reply(&pb.RecordUseResponse{Outcomes: []*pb.UseOutcome{{}}}))
	_, err = run.RecordUse(t.Context(), []durablememory.Hit{hit("a"), hit("b")}, nil)
	must(t, err)
	asked := server.Asked(recordUse)
	if left := asked[len(asked)-1].Left; left > 9_800*time.Millisecond {
		t.Errorf("the second assembly had %v", left)
	}
}
