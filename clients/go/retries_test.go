package durablememory_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	durablememory "durablememory.dev/go"
	pb "durablememory.dev/go/durablememoryv1"
	"durablememory.dev/go/internal/scripted"
)

const remember = "MemoryService.Remember"

var unavailable = scripted.Answer{Code: codes.Unavailable}

func rememberIt(t *testing.T, client *durablememory.Client, options *durablememory.RememberOptions) error {
	t.Helper()
	_, err := client.Remember(t.Context(), durablememory.Draft{Content: "x"}, options)
	return err
}

func TestAnUnavailableServiceIsAskedAgainWithTheSameRequestID(t *testing.T) {
	client, server := scriptedClient(t)
	server.Answers(remember, unavailable, scripted.Refusal(codes.Unavailable, "NOT_SERVING"), scripted.Reply())
	must(t, rememberIt(t, client, nil))
	asked := server.Asked(remember)
	equal(t, "attempts", len(asked), 3)
	first := asked[0].Requests[0].(*pb.RememberRequest).GetRequestId()
	if first == "" {
		t.Error("a change has no request id")
	}
	for _, attempt := range asked {
		equal(t, "request id", attempt.Requests[0].(*pb.RememberRequest).GetRequestId(), first)
	}
}

func TestARequestIDThatTheCallerStatesIsSent(t *testing.T) {
	client, server := scriptedClient(t)
	must(t, rememberIt(t, client, &durablememory.RememberOptions{RequestID: "order-17"}))
	equal(t, "request id", scripted.Request[*pb.RememberRequest](t, server, remember, 0).GetRequestId(), "order-17")
}

func TestEachCallHasARequestIDOfItsOwn(t *testing.T) {
	client, server := scriptedClient(t)
	must(t, rememberIt(t, client, nil))
	must(t, rememberIt(t, client, nil))
	first := scripted.Request[*pb.RememberRequest](t, server, remember, 0).GetRequestId()
	second := scripted.Request[*pb.RememberRequest](t, server, remember, 1).GetRequestId()
	const time = len("01234567-89ab") // their beginning, in milliseconds
	if first == second || first[:time] > second[:time] {
		t.Errorf("request ids are unique and in order of their milliseconds: %s, %s", first, second)
	}
}

func TestNothingElseIsRepeated(t *testing.T) {
	refusals := map[string]scripted.Answer{
		"a conflict":                     scripted.Refusal(codes.Aborted, "REVISION_CONFLICT"),
		"a failed precondition":          scripted.Refusal(codes.FailedPrecondition, "NODE_FROZEN"),
		"a failed precondition with ...": {Code: codes.FailedPrecondition, Reason: "NODE_FROZEN", RetryAfter: time.Millisecond},
		"an internal error":              scripted.Refusal(codes.Internal, "INTERNAL"),
		"a refusal by a proxy":           {Code: codes.PermissionDenied},
		"a limit without a time":         scripted.Refusal(codes.ResourceExhausted, "RATE_LIMITED"),
		"a quota":                        {Code: codes.ResourceExhausted, Reason: "QUOTA_EXCEEDED", RetryAfter: time.Millisecond},
	}
	for name, refusal := range refusals {
		t.Run(name, func(t *testing.T) {
			client, server := scriptedClient(t)
			server.Answers(remember, refusal)
			equal(t, "code", serviceError(t, rememberIt(t, client, nil)).Code, refusal.Code)
			equal(t, "attempts", len(server.Asked(remember)), 1)
		})
	}
}

func TestALimitIsWaitedForAsLongAsTheServiceSays(t *testing.T) {
	for _, reason := range []string{"RATE_LIMITED", "OVERLOADED", "REQUEST_IN_PROGRESS"} {
		t.Run(reason, func(t *testing.T) {
			client, server := scriptedClient(t)
			limited := scripted.Answer{Code: codes.ResourceExhausted, Reason: reason, RetryAfter: 50 * time.Millisecond}
			server.Answers(remember, limited, scripted.Reply())
			started := time.Now()
			must(t, rememberIt(t, client, nil))
			equal(t, "attempts", len(server.Asked(remember)), 2)
			if waited := time.Since(started); waited < 40*time.Millisecond {
				t.Errorf("waited only %v", waited)
			}
		})
	}
}

func TestNoAttemptIsBegunThatTheDeadlineWouldEnd(t *testing.T) {
	client, server := scriptedClient(t)
	server.Answers(remember, scripted.Answer{Code: codes.ResourceExhausted, Reason: "RATE_LIMITED", RetryAfter: 4 * time.Second})
	// It never ends: whoever waited would make the attempt.
	ctx := deadlineOf{t.Context(), func() time.Duration {
		if len(server.Asked(remember)) == 0 {
			return time.Minute
		}
		return time.Second
	}}
	_, err := client.Remember(ctx, durablememory.Draft{Content: "x"}, nil)
	failed := serviceError(t, err)
	equal(t, "reason", failed.Reason, durablememory.ReasonRateLimited)
	equal(t, "retry after", failed.RetryAfter, 4*time.Second)
	equal(t, "attempts", len(server.Asked(remember)), 1)
}

// deadlineOf is a context that says how much time is left.
type deadlineOf struct {
	context.Context
	left func() time.Duration
}

func (d deadlineOf) Deadline() (time.Time, bool) { return time.Now().Add(d.left()), true }

func TestABareCancelledThatNobodyAskedForIsAServerThatStops(t *testing.T) {
	client, server := scriptedClient(t)
	server.Answers(remember, scripted.Answer{Code: codes.Canceled}, scripted.Reply())
	must(t, rememberIt(t, client, nil))
	equal(t, "attempts", len(server.Asked(remember)), 2)
}

func TestWhatIsDefinite(t *testing.T) {
	conflict := scripted.Refusal(codes.Aborted, "REVISION_CONFLICT")
	proxied := conflict
	proxied.Headers = map[string]string{"x-envoy-attempt-count": "3"}
	cases := []struct {
		name     string
		answers  []scripted.Answer
		definite bool
		attempts int
	}{
		{"a refusal of the first attempt", []scripted.Answer{conflict}, true, 1},
		{"a refusal after an attempt that was lost", []scripted.Answer{unavailable, conflict}, false, 2},
		{"a refusal after attempts of a proxy", []scripted.Answer{proxied}, false, 3},
		{"an outcome that the service does not know", []scripted.Answer{{Code: codes.Internal, Reason: "INTERNAL"}}, false, 1},
		{"an answer of somebody else", []scripted.Answer{{Code: codes.PermissionDenied}}, false, 1},
		{"a reason of another domain", []scripted.Answer{{Code: codes.Aborted, Reason: "REVISION_CONFLICT", Domain: "proxy.example"}}, false, 1},
		{"a reason of a newer server", []scripted.Answer{scripted.Refusal(codes.Aborted, "FROM_THE_FUTURE")}, false, 1},
	}
	for _, given := range cases {
		t.Run(given.name, func(t *testing.T) {
			client, server := scriptedClient(t)
			server.Answers(remember, given.answers...)
			failed := serviceError(t, rememberIt(t, client, nil))
			equal(t, "definite", failed.Definite, given.definite)
			equal(t, "attempts", failed.Attempts, given.attempts)
			sent := scripted.Request[*pb.RememberRequest](t, server, remember, 0).GetRequestId()
			equal(t, "request id", failed.RequestID, sent)
		})
	}
}

func TestACallThatChangesNothingHasNoRequestIDAndIsDefinite(t *testing.T) {
	client, server := scriptedClient(t)
	server.Answers("RecallService.PreviewRecall", scripted.Refusal(codes.Internal, "INTERNAL"))
	_, err := client.Preview(t.Context(), "tea", nil)
	failed := serviceError(t, err)
	equal(t, "request id", failed.RequestID, "")
	equal(t, "definite", failed.Definite, true)
}

func TestErrorsAreFoundByTheirReason(t *testing.T) {
	client, server := scriptedClient(t)
	conflict := scripted.Refusal(codes.Aborted, "REVISION_CONFLICT")
	conflict.Metadata = map[string]string{"actual": "4"}
	server.Answers(remember, conflict)
	err := rememberIt(t, client, nil)
	if !errors.Is(err, durablememory.ReasonRevisionConflict) || errors.Is(err, durablememory.ReasonNodeFrozen) {
		t.Errorf("errors.Is does not find the reason alone: %v", err)
	}
	failed := serviceError(t, err)
	equal(t, "metadata", failed.Metadata["actual"], "4")
	equal(t, "method", failed.Method, remember)
	equal(t, "status", failed.GRPCStatus().Code(), codes.Aborted)

	server.Answers(remember, scripted.Refusal(codes.FailedPrecondition, "FROM_THE_FUTURE"))
	if err := rememberIt(t, client, nil); !errors.Is(err, durablememory.Reason("FROM_THE_FUTURE")) {
		t.Errorf("a reason of a newer server is lost: %v", err)
	}
}

func TestWhichErrorsSayThatTheServiceCannotAnswer(t *testing.T) {
	client, server := scriptedClient(t)
	for answer, outage := range map[*scripted.Answer]bool{
		{Code: codes.ResourceExhausted, Reason: "OVERLOADED"}:     true,
		{Code: codes.DeadlineExceeded}:                            true,
		{Code: codes.ResourceExhausted, Reason: "QUOTA_EXCEEDED"}: false,
		{Code: codes.Internal, Reason: "INTERNAL"}:                false,
		{Code: codes.Internal}:                                    true, // of a proxy: the service gives its reason
	} {
		server.Answers(remember, *answer)
		err := rememberIt(t, client, nil)
		equal(t, err.Error(), errors.Is(err, durablememory.ErrUnavailable), outage)
	}
}

func TestEveryCallHasADeadlineThatTheCallerMayReplace(t *testing.T) {
	client, server := scriptedClient(t)
	must(t, rememberIt(t, client, nil))
	if left := server.Asked(remember)[0].Left; left <= 0 || left > 10*time.Second {
		t.Errorf("the deadline by default is 10 s, not %v", left)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	_, err := client.Remember(ctx, durablememory.Draft{Content: "x"}, nil)
	must(t, err)
	if left := server.Asked(remember)[1].Left; left < time.Minute {
		t.Errorf("the caller's deadline is not the call's: %v", left)
	}
}

func TestACallWhoseContextHasEndedIsNotSentAndHasChangedNothing(t *testing.T) {
	client, server := scriptedClient(t)
	late, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	gone, leave := context.WithCancel(t.Context())
	leave()
	for ctx, cause := range map[context.Context]error{late: context.DeadlineExceeded, gone: context.Canceled} {
		_, remembering := client.Remember(ctx, durablememory.Draft{Content: "x"}, nil)
		_, importing := client.ImportNamespace(ctx, strings.NewReader(""), nil)
		for method, err := range map[string]error{
			remember: remembering, importRPC: importing, exportRPC: client.ExportNamespace(ctx, io.Discard),
		} {
			failed := serviceError(t, err)
			equal(t, "attempts of "+method, failed.Attempts, 0)
			equal(t, "definite", failed.Definite, true)
			equal(t, "request id", failed.RequestID, "")
			equal(t, "its cause is "+cause.Error(), errors.Is(err, cause), true)
			equal(t, "an outage", errors.Is(err, durablememory.ErrUnavailable), cause == context.DeadlineExceeded)
			equal(t, "asked", len(server.Asked(method)), 0)
		}
	}
}

func TestADeadlineEndsACallOnce(t *testing.T) {
	for within := 200 * time.Millisecond; ; within *= 10 {
		client, server := scriptedClient(t)
		server.Answers(remember, scripted.Answer{Forever: true})
		ctx, cancel := context.WithTimeout(t.Context(), within)
		_, err := client.Remember(ctx, durablememory.Draft{Content: "x"}, nil)
		cancel()
		failed := serviceError(t, err)
		equal(t, "reason", failed.Reason, durablememory.ReasonDeadlineExceeded)
		equal(t, "definite", failed.Definite, false)
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, durablememory.ErrUnavailable) {
			t.Errorf("neither the context's error nor an outage: %v", err)
		}
		if attempts := len(server.Asked(remember)); attempts > 0 || within > time.Minute { // it had time to arrive
			equal(t, "attempts", attempts, 1)
			return
		}
	}
}

func TestACancelledCallEndsAndIsNotRepeated(t *testing.T) {
	client, server := scriptedClient(t)
	server.Answers(remember, scripted.Answer{Forever: true})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		server.Await(ctx, remember, 1)
		cancel()
	}()
	_, err := client.Remember(ctx, durablememory.Draft{Content: "x"}, nil)
	if !errors.Is(err, context.Canceled) || errors.Is(err, durablememory.ErrUnavailable) {
		t.Errorf("the caller's own wish is no outage: %v", err)
	}
	equal(t, "attempts", len(server.Asked(remember)), 1)
}

func TestCancellingEndsTheWaitForAnotherAttempt(t *testing.T) {
	client, server := scriptedClient(t)
	server.Answers(remember, scripted.Answer{Code: codes.ResourceExhausted, Reason: "OVERLOADED", RetryAfter: 5 * time.Second})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		server.Await(ctx, remember, 1)
		cancel()
	}()
	_, err := client.Remember(ctx, durablememory.Draft{Content: "x"}, nil)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("not ended by the caller: %v", err)
	}
	equal(t, "attempts", len(server.Asked(remember)), 1)
}

func TestCallTakesAnyRPCAndLeavesTheRequestAlone(t *testing.T) {
	client, server := scriptedClient(t)
	server.Answers("RepositoryService.GetNode", scripted.Reply(&pb.GetNodeResponse{Node: &pb.Node{Id: "a", Kind: 77}}))
	request := &pb.GetNodeRequest{NodeId: "a"}
	var response pb.GetNodeResponse
	must(t, client.Call(t.Context(), request, &response))
	equal(t, "kind", response.GetNode().GetKind(), pb.NodeKind(77))
	if !proto.Equal(request, &pb.GetNodeRequest{NodeId: "a"}) {
		t.Errorf("the caller's request was changed: %v", request)
	}
	sent := scripted.Request[*pb.GetNodeRequest](t, server, "RepositoryService.GetNode", 0).GetNamespace()
	equal(t, "tenant", sent.GetTenantId(), testNamespace.Tenant)
	equal(t, "scope", sent.GetScopeId(), testNamespace.Scope)

	elsewhere := &pb.GetNodeRequest{Namespace: &pb.NamespaceRef{ScopeId: proto.String("other")}}
	must(t, client.Call(t.Context(), elsewhere, &response))
	sent = scripted.Request[*pb.GetNodeRequest](t, server, "RepositoryService.GetNode", 1).GetNamespace()
	equal(t, "scope of a request that names it", sent.GetScopeId(), "other")
}

func TestMessagesThatBelongToNoRPCAreRefusedHere(t *testing.T) {
	client, _ := scriptedClient(t)
	if client.Call(t.Context(), &pb.GetNodeRequest{}, &pb.RememberResponse{}) == nil {
		t.Error("an answer of another RPC was taken")
	}
	if client.Call(t.Context(), &pb.Node{}, &pb.GetNodeResponse{}) == nil {
		t.Error("a message that is no request was taken")
	}
	if client.Call(t.Context(), &pb.SnapshotRequest{}, &pb.SnapshotResponse{}) == nil {
		t.Error("a stream was called as if it were none")
	}
}

func TestACallOfAClosedClientFailsAtOnce(t *testing.T) {
	client, server := scriptedClient(t)
	must(t, client.Close())
	if err := rememberIt(t, client, nil); !errors.Is(err, durablememory.ErrClosed) {
		t.Errorf("expected ErrClosed, got %v", err)
	}
	equal(t, "attempts", len(server.Asked(remember)), 0)
}

func TestWhatKeepsACallFromBeingRepeatedDoesNotHideWhatBecameOfIt(t *testing.T) {
	noToken := errors.New("no token")
	calls := map[string]func(client *durablememory.Client) error{
		remember: func(client *durablememory.Client) error { return rememberIt(t, client, nil) },
		"SemanticService.RefreshSemanticRecall": func(client *durablememory.Client) error {
			_, err := client.RefreshSemanticRecall(t.Context(), "a", nil)
			return err
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			asked := 0
			client, server := scriptedClient(t, durablememory.WithTokenSource(func(context.Context) (string, error) {
				if asked++; asked > 1 {
					return "", noToken
				}
				return "token", nil
			}))
			server.Answers(name, unavailable)
			err := call(client)
			failed := serviceError(t, err)
			equal(t, "attempts", failed.Attempts, 1)
			equal(t, "has a request id", failed.RequestID != "", true)
			equal(t, "definite", failed.Definite, false)
			equal(t, "cause", errors.Is(err, noToken), true)
		})
	}
}
