package durablememory_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	durablememory "durablememory.dev/go"
	"durablememory.dev/go/dmtest"
	"durablememory.dev/go/internal/patience"
)

var shared struct {
	sync.Once
	server *dmtest.Server
	err    error
}

// realMemory is a client of a real server, in a namespace of its own. All tests share the server.
func realMemory(t *testing.T) *durablememory.Client {
	t.Helper()
	shared.Do(func() { shared.server, shared.err = dmtest.Start() })
	must(t, shared.err)
	return shared.server.NewClient(t)
}

func TestMain(m *testing.M) {
	// What a test does while an outage lasts, and what must be answered, has the time that it takes.
	patience.Timeout, patience.Pause = time.Minute, time.Hour
	code := m.Run()
	if shared.server != nil {
		if err := shared.server.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func TestTheMainJob(t *testing.T) {
	memory, ctx := realMemory(t), t.Context()
	session, err := memory.OpenSession(ctx, "assistant", &durablememory.OpenSessionOptions{
		Policy: durablememory.Policy{MaxResults: 5},
	})
	must(t, err)
	run, err := session.BeginRun(ctx, "turn-1", nil)
	must(t, err)
	defer run.Close()

	proposed, err := memory.Propose(ctx, durablememory.Draft{
		Content:  "The user prefers tea.",
		Evidence: []durablememory.Evidence{run.Evidence("I'd rather have tea.")},
	}, nil)
	must(t, err)
	equal(t, "outcome", proposed.Outcome, durablememory.ProposalOutcomeCreated)
	recall, err := run.Recall(ctx, "what does the user prefer?", nil)
	must(t, err)
	equal(t, "candidates that are recalled", len(recall.Hits), 0)

	if _, err := memory.Activate(ctx, proposed, nil, nil); !errors.Is(err, durablememory.ReasonEvidenceRequired) {
		t.Errorf("expected EVIDENCE_REQUIRED: %v", err)
	}
	_, err = memory.Activate(ctx, proposed, durablememory.RuleDecision("said-twice", "1", "asked the user"), nil)
	must(t, err)
	recall, err = run.RecallAndAdmit(ctx, "what does the user prefer?", nil)
	must(t, err)
	block := durablememory.Render(recall.Hits, nil)
	equal(t, "hits", len(block.Hits), 1)
	equal(t, "mode", recall.ModeUsed, durablememory.RecallModeLexical)
	equal(t, "why by words only", recall.Degradation.Reason, durablememory.DegradationReasonSemanticNotConfigured)
	uses, err := run.RecordUse(ctx, block.Cited("Tea [m1]."), nil)
	must(t, err)
	equal(t, "recorded", uses[0].Recorded(), true)
	usage, err := memory.Usage(nil).Collect(ctx)
	must(t, err)
	equal(t, "uses", usage[0].UseCount, int64(1))
	equal(t, "admissions", usage[0].AdmissionCount, int64(1))

	explanation, err := session.Explain(ctx, proposed.Citation.NodeID, "coffee", nil)
	must(t, err)
	equal(t, "exclusion", explanation.Exclusion, durablememory.RecallExclusionNoMatch)
	ended, err := run.End(ctx)
	must(t, err)
	equal(t, "state", ended.State, durablememory.RunStateEnded)
}

func TestAMemoryIsWrittenRevisedAndFollowed(t *testing.T) {
	memory, ctx := realMemory(t), t.Context()
	when := time.Date(2026, 3, 1, 9, 0, 0, 123_456_000, time.UTC)
	put, err := memory.Put(ctx, "office", durablememory.Draft{
		Content:    "お茶 🍵 <at> 8",
		Kind:       durablememory.NodeKindProcedural,
		Author:     "user",
		OccurredAt: when,
		Confidence: new(0.0),
		Labels:     map[string]string{"type": "habit"},
	}, nil)
	must(t, err)
	revised, err := memory.Revise(ctx, put, durablememory.Revision{Content: new("At 9.")}, nil)
	must(t, err)
	_, err = memory.Revise(ctx, put, durablememory.Revision{Content: new("At 10.")}, nil)
	if !errors.Is(err, durablememory.ReasonRevisionConflict) || serviceError(t, err).Metadata["actual"] != "2" {
		t.Errorf("expected REVISION_CONFLICT with the actual revision: %v", err)
	}
	cited, err := memory.Get(ctx, put)
	must(t, err)
	equal(t, "content", cited.Node.Content, "お茶 🍵 <at> 8")
	equal(t, "current", cited.IsCurrent(), false)
	equal(t, "time", cited.Node.OccurredAt, when)
	equal(t, "a zero that was stated", cited.Node.Confidence, 0)
	equal(t, "kind", cited.Node.Kind, durablememory.NodeKindProcedural)
	equal(t, "citation of now", cited.CurrentCitation, revised.Citation)
	parsed, err := durablememory.ParseCitation(cited.CurrentCitation.String())
	must(t, err)
	retired, err := memory.Retire(ctx, parsed, nil)
	must(t, err)
	again, err := memory.Reactivate(ctx, retired, nil)
	must(t, err)
	superseded, err := memory.Supersede(ctx, again, durablememory.Draft{Content: "There is a key."}, nil)
	must(t, err)
	node, err := memory.GetNode(ctx, superseded.Citation.NodeID, nil)
	must(t, err)
	equal(t, "relation", node.Relations[0], durablememory.Relation{Kind: durablememory.RelationKindSupersedes, NodeID: "office"})
	revisions, err := memory.ListRevisions("office", nil).Collect(ctx)
	must(t, err)
	equal(t, "revisions", len(revisions), 5)
	first, err := memory.GetRevision(ctx, durablememory.NodeRevision{NodeID: "office", Revision: 1})
	must(t, err)
	equal(t, "first", first.Citation, put.Citation)

	after := durablememory.ChangeToken{HistoryID: put.ChangeToken.HistoryID, NamespaceRevision: 1}
	revision := int64(1)
	for change, err := range memory.Watch(&durablememory.WatchOptions{After: &after, IncludeNodes: true}).All(ctx) {
		must(t, err)
		revision++
		equal(t, "revision", change.ChangeToken.NamespaceRevision, revision)
		if change.ChangeToken == superseded.ChangeToken {
			equal(t, "nodes", len(change.Nodes), 2)
			break
		}
	}
}

func TestAChangeSetIsAtomicAndASnapshotComplete(t *testing.T) {
	memory, ctx := realMemory(t), t.Context()
	decided := durablememory.UserStatement("order:17", "yes")
	decided.Kind = durablememory.EvidenceKindManual
	draft := func(content string) durablememory.Draft {
		return durablememory.Draft{Content: content, Evidence: []durablememory.Evidence{decided}}
	}
	active := durablememory.NodeStatusActive
	made, err := memory.ApplyChangeSet(ctx, []durablememory.Operation{
		durablememory.Create{NodeID: "a", Memory: draft("One."), Status: active},
		durablememory.Create{NodeID: "b", Memory: draft("Two."), Status: active},
	}, &durablememory.ChangeSetOptions{RequestID: "both", Note: "two at once", ExpectedNamespaceRevision: new(int64(0))})
	must(t, err)
	equal(t, "changes", len(made.Changes), 2)
	related, err := memory.ApplyChangeSet(ctx, durablememory.Relate(
		made.Changes[0], durablememory.RelationKindRelatedTo, made.Changes[1],
	), nil)
	must(t, err)
	equal(t, "operation", related.Changes[0].Operations[0], durablememory.OperationKindAddRelation)
	again, err := memory.GetChangeSetOf(ctx, "ApplyChangeSet", "both")
	must(t, err)
	equal(t, "digest", again.Digest, made.Digest)
	changeSets, err := memory.ListChangeSets(nil).Collect(ctx)
	must(t, err)
	equal(t, "change sets", len(changeSets), 2)

	snapshot := memory.Snapshot(nil)
	nodes, err := snapshot.Collect(ctx)
	must(t, err)
	equal(t, "nodes", len(nodes), 2)
	equal(t, "revision", snapshot.ChangeToken.NamespaceRevision, related.NamespaceRevision)
	listed, err := memory.ListNodes(&durablememory.ListNodesOptions{PageSize: 1}).Collect(ctx)
	must(t, err)
	equal(t, "listed", len(listed), 2)
	found, err := memory.GetNodes(ctx, []string{"a", "nobody"}, nil)
	must(t, err)
	equal(t, "found", len(found), 1)
}

func TestEachItemOfABatchHasItsOwnOutcome(t *testing.T) {
	memory, ctx := realMemory(t), t.Context()
	evidence := []durablememory.Evidence{durablememory.ToolResult("tool:1", []byte("x"))}
	proposed, err := memory.ProposeMany(ctx, []durablememory.Draft{
		{Content: "One.", Evidence: evidence}, {Content: "Two.", Evidence: evidence},
	}, nil)
	must(t, err)
	items := append(durablememory.Citables(proposed[:1]), durablememory.Citation{NodeID: "nobody", NodeRevision: 1})
	activated, err := memory.ActivateMany(ctx, items, durablememory.ManualDecision("looked at them"), nil)
	must(t, err)
	equal(t, "first", activated[0].Outcome, durablememory.ActivationOutcomeActivated)
	if !errors.Is(activated[1].Err, durablememory.ReasonNodeNotFound) {
		t.Errorf("expected NODE_NOT_FOUND: %v", activated[1].Err)
	}
	rejected, err := memory.Reject(ctx, proposed[1], durablememory.ManualDecision(""), nil)
	must(t, err)
	equal(t, "second", rejected.Outcome, durablememory.RejectionOutcomeRejected)
	candidates, err := memory.ListCandidates(nil).Collect(ctx)
	must(t, err)
	equal(t, "candidates", len(candidates), 0)
}

func TestASessionIsResumedByWhatItIsBoundTo(t *testing.T) {
	memory, ctx := realMemory(t), t.Context()
	opened, err := memory.OpenSession(ctx, "assistant", nil)
	must(t, err)
	info, _ := opened.Info()
	_, err = memory.ResumeSession(ctx, "assistant", info.BindingDigest, nil)
	must(t, err)
	resumed, err := memory.ResumeSessionAs(ctx, "assistant", info.Binding, nil)
	must(t, err)
	rebound, err := resumed.Rebind(ctx, durablememory.Policy{MaxResults: 3}, nil)
	must(t, err)
	equal(t, "max results", rebound.Binding.MaxResults, 3)
	if _, err := memory.ResumeSessionAs(ctx, "assistant", info.Binding, nil); !errors.Is(err, durablememory.ReasonBindingDrift) {
		t.Errorf("expected BINDING_DRIFT: %v", err)
	}
	sessions, err := memory.ListSessions(nil).Collect(ctx)
	must(t, err)
	equal(t, "sessions", len(sessions), 1)
	closed, err := memory.CloseSession(ctx, "assistant", nil)
	must(t, err)
	equal(t, "state", closed.State, durablememory.SessionStateClosed)
	if _, err := resumed.Recall(ctx, "tea", nil); !errors.Is(err, durablememory.ReasonSessionClosed) {
		t.Errorf("expected SESSION_CLOSED: %v", err)
	}
}

func TestARequestIDIsAnsweredOnce(t *testing.T) {
	memory, ctx := realMemory(t), t.Context()
	options := &durablememory.RememberOptions{RequestID: "order-17/preference"}
	first, err := memory.Remember(ctx, durablememory.Draft{Content: "Tea."}, options)
	must(t, err)
	second, err := memory.Remember(ctx, durablememory.Draft{Content: "Tea."}, options)
	must(t, err)
	equal(t, "the first answer", second, first)
	_, err = memory.Remember(ctx, durablememory.Draft{Content: "Coffee."}, options)
	if !errors.Is(err, durablememory.ReasonIdempotencyKeyReused) {
		t.Errorf("expected IDEMPOTENCY_KEY_REUSED: %v", err)
	}
}

func TestANamespaceMovesToAnotherServer(t *testing.T) {
	memory, ctx := realMemory(t), t.Context()
	for _, content := range []string{"One.", "Two."} {
		_, err := memory.Remember(ctx, durablememory.Draft{Content: content}, nil)
		must(t, err)
	}
	var export bytes.Buffer
	must(t, memory.ExportNamespace(ctx, &export))
	other := dmtest.New(t).NewClient(t, durablememory.WithNamespace(memory.Namespace()))
	imported, err := other.ImportNamespace(ctx, &export, nil)
	must(t, err)
	equal(t, "nodes", imported.Nodes, int64(2))
	var contents []string
	for node, err := range other.ListNodes(nil).All(ctx) {
		must(t, err)
		contents = append(contents, node.Content)
	}
	slices.Sort(contents)
	equal(t, "contents", fmt.Sprint(contents), "[One. Two.]")
}

func TestWithoutAGenerationTheIndexSaysSo(t *testing.T) {
	memory, ctx := realMemory(t), t.Context()
	if _, err := memory.GetIndexStatus(ctx); !errors.Is(err, durablememory.ReasonSemanticUnavailable) {
		t.Errorf("expected SEMANTIC_UNAVAILABLE: %v", err)
	}
	info, err := memory.ServerInfo(ctx)
	must(t, err)
	equal(t, "limit", info.Limits.MaxBatchItems, 128)
	equal(t, "idle time is known", info.Limits.RunIdleTimeout > 0, true)
	if !slices.Contains(info.RecallModes, durablememory.RecallModeLexical) {
		t.Errorf("modes: %v", info.RecallModes)
	}
}

func TestACancelledContextFailsACallOfARealServer(t *testing.T) {
	memory := realMemory(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := memory.GetChangeToken(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("expected context.Canceled: %v", err)
	}
}
