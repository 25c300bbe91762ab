package durablememory_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	durablememory "durablememory.dev/go"
	pb "durablememory.dev/go/durablememoryv1"
	"durablememory.dev/go/internal/scripted"
)

const (
	watchNamespace = "RepositoryService.WatchNamespace"
	snapshotRPC    = "RepositoryService.Snapshot"
	refreshRPC     = "SemanticService.RefreshSemanticRecall"
	exportRPC      = "TransferService.ExportNamespace"
	importRPC      = "TransferService.ImportNamespace"
)

func nowStamp() *timestamppb.Timestamp { return timestamppb.New(time.Now()) }

func changeAt(revision int64) proto.Message {
	return &pb.WatchNamespaceResponse{Event: &pb.WatchNamespaceResponse_Change{Change: &pb.WatchedChange{
		ChangeToken: &pb.ChangeToken{HistoryId: "h", NamespaceRevision: revision},
	}}}
}

func heartbeatAt(revision int64) proto.Message {
	return &pb.WatchNamespaceResponse{Event: &pb.WatchNamespaceResponse_Heartbeat{Heartbeat: &pb.WatchHeartbeat{
		ChangeToken: &pb.ChangeToken{HistoryId: "h", NamespaceRevision: revision},
	}}}
}

// lost is a stream that is cut off after some messages.
func lost(messages ...proto.Message) scripted.Answer {
	return scripted.Answer{Replies: messages, Code: codes.Unavailable}
}

// firstRevisions is the first changes of a watch.
func firstRevisions(t *testing.T, watch *durablememory.Watch, count int) []int64 {
	t.Helper()
	var revisions []int64
	for change, err := range watch.All(t.Context()) {
		must(t, err)
		if revisions = append(revisions, change.ChangeToken.NamespaceRevision); len(revisions) == count {
			break
		}
	}
	return revisions
}

func TestAWatchGoesOnAfterItsLastChangeWhenItsStreamIsLost(t *testing.T) {
	client, server := scriptedClient(t)
	stopping := scripted.Answer{Replies: []proto.Message{changeAt(6)}, Code: codes.Canceled}
	reset := scripted.Answer{Replies: []proto.Message{changeAt(6)}, Code: codes.Internal} // by a proxy whose server died
	server.Answers(
		watchNamespace,
		lost(changeAt(5)), scripted.Reply(changeAt(5)), stopping, reset, scripted.Reply(changeAt(6), changeAt(7)),
	)
	watch := client.Watch(&durablememory.WatchOptions{After: &durablememory.ChangeToken{HistoryID: "h", NamespaceRevision: 4}})
	for place, revision := range firstRevisions(t, watch, 3) {
		equal(t, "revision", revision, int64(5+place))
	}
	for call, after := range []int64{4, 5, 5, 6, 6} {
		request := scripted.Request[*pb.WatchNamespaceRequest](t, server, watchNamespace, call)
		equal(t, "after", request.GetAfterNamespaceRevision(), after)
		equal(t, "history", request.GetHistoryId(), "h")
	}
	position, _ := watch.Position()
	equal(t, "position", position, durablememory.ChangeToken{HistoryID: "h", NamespaceRevision: 7})
}

func TestAWatchThatBeganNowIsResumedFromThere(t *testing.T) {
	client, server := scriptedClient(t)
	server.Answers(watchNamespace, lost(heartbeatAt(9)), scripted.Reply(changeAt(10)))
	watch := client.Watch(nil)
	if _, known := watch.Position(); known {
		t.Error("a position is known before the first message")
	}
	equal(t, "revision", firstRevisions(t, watch, 1)[0], int64(10))
	first := scripted.Request[*pb.WatchNamespaceRequest](t, server, watchNamespace, 0)
	equal(t, "a start is stated", first.AfterNamespaceRevision != nil, false)
	equal(t, "after", scripted.Request[*pb.WatchNamespaceRequest](t, server, watchNamespace, 1).GetAfterNamespaceRevision(), int64(9))
}

func TestAWatchThatWasLeftBeforeItsFirstMessageBeginsAtALaterNow(t *testing.T) {
	client, server := scriptedClient(t)
	server.Answers(watchNamespace, scripted.Answer{Forever: true}, scripted.Reply(heartbeatAt(3), changeAt(4)))
	watch := client.Watch(nil)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		server.Await(ctx, watchNamespace, 1)
		cancel()
	}()
	if err := lastError(watch.All(ctx)); !errors.Is(err, context.Canceled) {
		t.Errorf("expected the caller's cancellation: %v", err)
	}
	_, known := watch.Position()
	equal(t, "a position", known, false)
	equal(t, "revision", firstRevisions(t, watch, 1)[0], int64(4))
	second := scripted.Request[*pb.WatchNamespaceRequest](t, server, watchNamespace, 1)
	equal(t, "a start is stated", second.AfterNamespaceRevision != nil, false)
}

func TestAGapInAWatchIsAnError(t *testing.T) {
	client, server := scriptedClient(t)
	server.Answers(watchNamespace, scripted.Reply(changeAt(1), changeAt(3)))
	err := lastError(client.Watch(&durablememory.WatchOptions{After: &durablememory.ChangeToken{}}).All(t.Context()))
	if !errors.Is(err, durablememory.ErrIncomplete) {
		t.Errorf("expected ErrIncomplete: %v", err)
	}
}

func TestAWatchWaitsAsLongAsTheServiceSays(t *testing.T) {
	client, server := scriptedClient(t)
	overloaded := scripted.Answer{Code: codes.ResourceExhausted, Reason: "OVERLOADED", RetryAfter: 400 * time.Millisecond}
	server.Answers(watchNamespace, overloaded, scripted.Reply(changeAt(1)))
	started := time.Now()
	firstRevisions(t, client.Watch(&durablememory.WatchOptions{After: &durablememory.ChangeToken{}}), 1)
	if waited := time.Since(started); waited < 400*time.Millisecond {
		t.Errorf("waited only %v", waited)
	}
}

func TestAWatchEndsForWhatWaitingDoesNotHelp(t *testing.T) {
	client, server := scriptedClient(t)
	server.Answers(watchNamespace, scripted.Refusal(codes.FailedPrecondition, "HISTORY_CHANGED"))
	if err := lastError(client.Watch(nil).All(t.Context())); !errors.Is(err, durablememory.ReasonHistoryChanged) {
		t.Errorf("expected HISTORY_CHANGED: %v", err)
	}
	server.Answers(watchNamespace, unavailable)
	impatient := client.Watch(&durablememory.WatchOptions{GiveUpAfter: time.Nanosecond})
	if err := lastError(impatient.All(t.Context())); !errors.Is(err, durablememory.ErrUnavailable) {
		t.Errorf("expected an outage: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	server.Answers(watchNamespace, scripted.Answer{Forever: true})
	calls := len(server.Asked(watchNamespace))
	go func() {
		server.Await(ctx, watchNamespace, calls+1)
		cancel()
	}()
	if err := lastError(client.Watch(nil).All(ctx)); !errors.Is(err, context.Canceled) {
		t.Errorf("expected the caller's cancellation: %v", err)
	}
}

func lastError[T any](sequence func(func(T, error) bool)) error {
	var last error
	sequence(func(_ T, err error) bool {
		last = err
		return true
	})
	return last
}

func snapshotOf(nodeCount, contentBytes int64, contents ...string) []proto.Message {
	messages := []proto.Message{&pb.SnapshotResponse{Message: &pb.SnapshotResponse_Header{
		Header: &pb.SnapshotHeader{ChangeToken: &pb.ChangeToken{NamespaceRevision: 3}},
	}}}
	for _, content := range contents {
		messages = append(messages, &pb.SnapshotResponse{Message: &pb.SnapshotResponse_Node{Node: &pb.Node{Content: content}}})
	}
	return append(messages, &pb.SnapshotResponse{Message: &pb.SnapshotResponse_Footer{
		Footer: &pb.SnapshotFooter{NodeCount: nodeCount, ContentBytes: contentBytes, Digest: "d"},
	}})
}

func TestASnapshotIsComparedWithItsFooter(t *testing.T) {
	whole := snapshotOf(2, 5, "ab", "é1")
	cases := map[string]struct {
		messages []proto.Message
		complete bool
	}{
		"whole":                  {whole, true},
		"without its footer":     {whole[:3], false},
		"without its header":     {whole[1:], false},
		"with a node less":       {snapshotOf(2, 5, "ab"), false},
		"with a byte less":       {snapshotOf(2, 5, "ab", "é"), false},
		"going on after the end": {append(append([]proto.Message{}, whole...), whole[1]), false},
	}
	for name, given := range cases {
		t.Run(name, func(t *testing.T) {
			client, server := scriptedClient(t)
			server.Answers(snapshotRPC, scripted.Reply(given.messages...))
			snapshot := client.Snapshot(nil)
			nodes, err := snapshot.Collect(t.Context())
			if given.complete {
				must(t, err)
				equal(t, "nodes", len(nodes), 2)
				equal(t, "digest", snapshot.Digest, "d")
				equal(t, "change token", snapshot.ChangeToken.NamespaceRevision, int64(3))
			} else if !errors.Is(err, durablememory.ErrIncomplete) {
				t.Errorf("expected ErrIncomplete: %v", err)
			}
		})
	}
}

func TestARefreshThatIsLostIsTakenUpWithTheSameRequestID(t *testing.T) {
	client, server := scriptedClient(t)
	progress := &pb.RefreshSemanticRecallResponse{Message: &pb.RefreshSemanticRecallResponse_Progress{
		Progress: &pb.RefreshProgress{Phase: pb.RefreshPhase_REFRESH_PHASE_EMBEDDING, Done: 1, Total: 2},
	}}
	receipt := &pb.RefreshSemanticRecallResponse{Message: &pb.RefreshSemanticRecallResponse_Receipt{
		Receipt: &pb.RefreshReceipt{IndexRevision: 7},
	}}
	server.Answers(refreshRPC, lost(progress), scripted.Reply(progress, receipt))
	var steps []durablememory.RefreshProgress
	received, err := client.RefreshSemanticRecall(t.Context(), "assistant", &durablememory.RefreshOptions{
		OnProgress: func(step durablememory.RefreshProgress) { steps = append(steps, step) },
	})
	must(t, err)
	equal(t, "index revision", received.IndexRevision, int64(7))
	equal(t, "steps", len(steps), 2)
	equal(t, "phase", steps[0].Phase, durablememory.RefreshPhaseEmbedding)
	asked := server.Asked(refreshRPC)
	equal(t, "attempts", len(asked), 2)
	equal(t, "deadline", asked[0].Left, time.Duration(0))
	equal(t, "request id", asked[0].Requests[0].(*pb.RefreshSemanticRecallRequest).GetRequestId(),
		asked[1].Requests[0].(*pb.RefreshSemanticRecallRequest).GetRequestId())

	server.Answers(refreshRPC, scripted.Reply(progress))
	if _, err := client.RefreshSemanticRecall(t.Context(), "assistant", nil); !errors.Is(err, durablememory.ErrIncomplete) {
		t.Errorf("expected ErrIncomplete: %v", err)
	}
	server.Answers(refreshRPC, unavailable, scripted.Refusal(codes.Aborted, "LEASE_HELD"))
	_, err = client.RefreshSemanticRecall(t.Context(), "assistant", nil)
	failed := serviceError(t, err)
	equal(t, "reason", failed.Reason, durablememory.ReasonLeaseHeld)
	equal(t, "attempts", failed.Attempts, 2)
	equal(t, "definite", failed.Definite, false)
}

func exportOf(records int) []*pb.ExportRecord {
	made := []*pb.ExportRecord{{Record: &pb.ExportRecord_Header{Header: &pb.ExportHeader{FormatVersion: 1, ServerVersion: "<&>"}}}}
	for range records {
		made = append(made, &pb.ExportRecord{Record: &pb.ExportRecord_NodeRevision{NodeRevision: &pb.Node{Content: "お茶 🍵"}}})
	}
	return append(made, &pb.ExportRecord{Record: &pb.ExportRecord_Footer{Footer: &pb.ExportFooter{Digest: "d"}}})
}

func TestAnExportIsTextThatAnImportTakes(t *testing.T) {
	client, server := scriptedClient(t)
	records := exportOf(600)
	server.Answers(exportRPC, scripted.Reply(&pb.ExportNamespaceResponse{Records: records[:10]}, &pb.ExportNamespaceResponse{Records: records[10:]}))
	var export, again bytes.Buffer
	must(t, client.ExportNamespace(t.Context(), &export))
	must(t, client.ExportNamespace(t.Context(), &again))
	equal(t, "what is exported twice is the same", export.String(), again.String())
	lines := strings.Split(strings.TrimSuffix(export.String(), "\n"), "\n")
	equal(t, "lines", len(lines), len(records))
	equal(t, "first line", lines[0], `{"header":{"format_version":1,"server_version":"<&>"}}`)
	equal(t, "second line", lines[1], `{"node_revision":{"content":"お茶 🍵"}}`)

	server.Answers(importRPC, scripted.Reply(&pb.ImportNamespaceResponse{Counts: &pb.TransferCounts{Nodes: 600}}))
	imported, err := client.ImportNamespace(t.Context(), &export, &durablememory.ImportOptions{RequestID: "import-1"})
	must(t, err)
	equal(t, "nodes", imported.Nodes, int64(600))
	requests := server.Asked(importRPC)[0].Requests
	first := requests[0].(*pb.ImportNamespaceRequest)
	equal(t, "request id", first.GetRequestId(), "import-1")
	equal(t, "tenant", first.GetNamespace().GetTenantId(), "acme")
	var sent []*pb.ExportRecord
	for _, request := range requests {
		chunk := request.(*pb.ImportNamespaceRequest).GetRecords()
		if len(chunk) > 256 {
			t.Errorf("a request has %d records", len(chunk))
		}
		sent = append(sent, chunk...)
	}
	equal(t, "records", len(sent), len(records))
	for place := range records {
		if !proto.Equal(records[place], sent[place]) {
			t.Fatalf("record %d differs: %v", place, sent[place])
		}
	}
}

func TestAnExportWithoutItsFooterIsNone(t *testing.T) {
	client, server := scriptedClient(t)
	server.Answers(exportRPC, scripted.Reply(&pb.ExportNamespaceResponse{Records: exportOf(1)[:2]}))
	if err := client.ExportNamespace(t.Context(), &bytes.Buffer{}); !errors.Is(err, durablememory.ErrIncomplete) {
		t.Errorf("expected ErrIncomplete: %v", err)
	}
}

func TestALineThatIsNoRecordEndsTheImportAndIsNotQuoted(t *testing.T) {
	client, _ := scriptedClient(t)
	for _, line := range []string{"a secret, not JSON", `{"content":"a secret"}`, "{}"} {
		_, err := client.ImportNamespace(t.Context(), strings.NewReader(`{"footer":{}}`+"\n"+line), nil)
		if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%q: %v", line, err)
		}
	}
}

func TestAnImportIsSentOnceAndItsErrorHasTheRequestID(t *testing.T) {
	client, server := scriptedClient(t)
	server.Answers(importRPC, unavailable)
	_, err := client.ImportNamespace(t.Context(), strings.NewReader(`{"footer":{}}`), nil)
	failed := serviceError(t, err)
	equal(t, "attempts", len(server.Asked(importRPC)), 1)
	equal(t, "request id", failed.RequestID, scripted.Request[*pb.ImportNamespaceRequest](t, server, importRPC, 0).GetRequestId())
	equal(t, "definite", failed.Definite, false)
}

func TestAListingReadsPagesAsTheyAreNeeded(t *testing.T) {
	client, server := scriptedClient(t)
	const list = "RepositoryService.ListNodes"
	pages := []scripted.Answer{
		scripted.Reply(&pb.ListNodesResponse{Nodes: []*pb.Node{{Id: "a"}, {Id: "b"}}, NextPageToken: "p2"}),
		scripted.Reply(&pb.ListNodesResponse{Nodes: []*pb.Node{{Id: "c"}}, ChangeToken: &pb.ChangeToken{NamespaceRevision: 8}}),
	}
	server.Answers(list, pages...)
	listing := client.ListNodes(&durablememory.ListNodesOptions{Statuses: []durablememory.NodeStatus{durablememory.NodeStatusActive}})
	equal(t, "calls before the first item", len(server.Asked(list)), 0)
	for node, err := range listing.All(t.Context()) {
		must(t, err)
		if node.ID == "b" {
			break
		}
	}
	equal(t, "calls before the second page is needed", len(server.Asked(list)), 1)
	server.Answers(list, pages...)
	nodes, err := listing.Collect(t.Context())
	must(t, err)
	equal(t, "nodes", len(nodes), 3)
	equal(t, "page token", scripted.Request[*pb.ListNodesRequest](t, server, list, 2).GetPageToken(), "p2")
	page, err := listing.Page(t.Context(), "p2")
	must(t, err)
	equal(t, "what it answers for", page.ChangeToken.NamespaceRevision, int64(8))

	server.Answers(list, pages[0], scripted.Refusal(codes.InvalidArgument, "INVALID_PAGE_TOKEN"))
	if nodes, err := listing.Collect(t.Context()); !errors.Is(err, durablememory.ReasonInvalidPageToken) || nodes != nil {
		t.Errorf("expected INVALID_PAGE_TOKEN and nothing: %v, %v", nodes, err)
	}
}
