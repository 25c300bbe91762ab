package main

import (
	"bytes"
	"context"
	"slices"

	durablememory "durablememory.dev/go"
)

// helper is something that clients offer above single calls. It answers with plain JSON.
type helper = func(ctx context.Context, client *durablememory.Client, given object) (any, error)

var helpers = map[string]helper{
	"main_job":        mainJob,
	"turn":            turn,
	"several":         several,
	"recall_or_empty": recallOrEmpty,
	"iterate_nodes":   iterateNodes,
	"watch":           watch,
	"snapshot":        snapshot,
	"copy":            copyNamespace,
	"refresh":         refresh,
}

// mainJob proposes what was heard, and has a rule activate it.
func mainJob(ctx context.Context, client *durablememory.Client, given object) (any, error) {
	content := text(given, "content")
	evidence := durablememory.SessionTurn(text(given, "session_id"), text(given, "run_id"), content)
	draft := durablememory.Draft{Content: content, Evidence: []durablememory.Evidence{evidence}}
	proposed, err := client.Propose(ctx, draft, nil)
	if err != nil {
		return nil, err
	}
	activated, err := client.Activate(ctx, proposed, durablememory.RuleDecision("conformance", "1", "said so"), nil)
	if err != nil {
		return nil, err
	}
	cited, err := client.Get(ctx, activated)
	if err != nil {
		return nil, err
	}
	kinds := []durablememory.EvidenceKind{}
	for _, item := range cited.Node.Evidence {
		kinds = append(kinds, item.Kind)
	}
	return object{
		"proposed":           proposed.Outcome,
		"activated_revision": activated.Citation.NodeRevision,
		"content":            cited.Node.Content,
		"status":             cited.Node.Status,
		"evidence":           kinds,
	}, nil
}

// turn is a whole turn: recall and admit, render, cite, record use.
func turn(ctx context.Context, client *durablememory.Client, given object) (any, error) {
	session, err := client.OpenSession(ctx, text(given, "session_id"), &durablememory.OpenSessionOptions{
		Policy: durablememory.Policy{MaxResults: int32(number(given, "max_results", 5))},
	})
	if err != nil {
		return nil, err
	}
	run, err := session.BeginRun(ctx, text(given, "run_id"), nil)
	if err != nil {
		return nil, err
	}
	defer run.Close()
	recall, err := run.RecallAndAdmit(ctx, text(given, "query"), nil)
	if err != nil {
		return nil, err
	}
	block := durablememory.Render(recall.Hits, &durablememory.RenderOptions{MaxBytes: number(given, "max_bytes", 16_384)})
	used, err := run.RecordUse(ctx, block.Cited(text(given, "answer")), nil)
	if err != nil {
		return nil, err
	}
	admitted := []bool{}
	for _, outcome := range recall.Admissions {
		admitted = append(admitted, outcome.Admitted())
	}
	return object{
		"hits":     contents(recall.Hits),
		"admitted": admitted,
		"text":     block.Text,
		"cited":    contents(block.Cited(text(given, "answer"))),
		"used":     len(used),
	}, nil
}

// several is a turn over several namespaces: recall in all, admit what fits, record what was used.
func several(ctx context.Context, client *durablememory.Client, given object) (any, error) {
	var runs []*durablememory.Run
	remember, _ := given["remember"].(object)
	for _, scope := range texts(given, "scopes") {
		memory := client.In(durablememory.Namespace{Scope: client.Namespace().Scope + scope})
		for _, content := range texts(remember, scope) {
			if _, err := memory.Remember(ctx, durablememory.Draft{Content: content}, nil); err != nil {
				return nil, err
			}
		}
		session, err := memory.OpenSession(ctx, "several", nil)
		if err != nil {
			return nil, err
		}
		run, err := session.BeginRun(ctx, "turn-1", nil)
		if err != nil {
			return nil, err
		}
		defer run.Close()
		runs = append(runs, run)
	}
	options := &durablememory.RecallAllOptions{MaxResults: number(given, "max_results", 0)}
	recall, err := durablememory.RecallAll(ctx, runs, text(given, "query"), options)
	if err != nil {
		return nil, err
	}
	admission, err := durablememory.AdmitAll(ctx, runs, recall.Hits, nil)
	if err != nil {
		return nil, err
	}
	used, err := durablememory.RecordUseAll(ctx, runs, admission.Hits)
	if err != nil {
		return nil, err
	}
	return object{"hits": contents(recall.Hits), "admitted": contents(admission.Hits), "used": len(used)}, nil
}

// recallOrEmpty is a recall whose caller goes on without memory when the service cannot answer.
func recallOrEmpty(ctx context.Context, client *durablememory.Client, given object) (any, error) {
	session, err := client.OpenSession(ctx, "assistant", &durablememory.OpenSessionOptions{
		OnUnavailable: durablememory.EmptyWhenUnavailable,
	})
	if err != nil {
		return nil, err
	}
	recall, err := session.Recall(ctx, text(given, "query"), nil)
	if err != nil {
		return nil, err
	}
	return object{"hits": contents(recall.Hits), "unavailable": recall.Unavailable()}, nil
}

// iterateNodes is all nodes by the iterator, which reads the pages.
func iterateNodes(ctx context.Context, client *durablememory.Client, given object) (any, error) {
	found := []string{}
	pageSize := int32(number(given, "page_size", 0))
	for node, err := range client.ListNodes(&durablememory.ListNodesOptions{PageSize: pageSize}).All(ctx) {
		if err != nil {
			return nil, err
		}
		found = append(found, node.Content)
	}
	return found, nil
}

// watch is the first changes after a namespace revision, from a watch that resumes when its stream is lost.
func watch(ctx context.Context, client *durablememory.Client, given object) (any, error) {
	revisions := []int64{}
	after := durablememory.ChangeToken{NamespaceRevision: int64(number(given, "after", 0))}
	for change, err := range client.Watch(&durablememory.WatchOptions{After: &after}).All(ctx) {
		if err != nil {
			return nil, err
		}
		revisions = append(revisions, change.ChangeToken.NamespaceRevision)
		if len(revisions) == number(given, "count", 0) {
			break
		}
	}
	return revisions, nil
}

// snapshot is the nodes of a snapshot, checked against its footer.
func snapshot(ctx context.Context, client *durablememory.Client, _ object) (any, error) {
	taken := client.Snapshot(nil)
	nodes, err := taken.Collect(ctx)
	if err != nil {
		return nil, err
	}
	return object{"nodes": sortedContents(nodes), "count": taken.NodeCount}, nil
}

// copyNamespace exports the namespace, imports it on another server, and reads what is there.
func copyNamespace(ctx context.Context, client *durablememory.Client, given object) (any, error) {
	var export bytes.Buffer
	if err := client.ExportNamespace(ctx, &export); err != nil {
		return nil, err
	}
	target, err := durablememory.NewClient(
		durablememory.WithAddress(text(given, "to")), durablememory.WithNamespace(client.Namespace()),
	)
	if err != nil {
		return nil, err
	}
	defer target.Close()
	imported, err := target.ImportNamespace(ctx, &export, nil)
	if err != nil {
		return nil, err
	}
	nodes, err := target.ListNodes(nil).Collect(ctx)
	if err != nil {
		return nil, err
	}
	return object{"nodes": sortedContents(nodes), "namespace_revision": imported.ChangeToken.NamespaceRevision}, nil
}

// refresh brings the vector index up to date and waits for the receipt.
func refresh(ctx context.Context, client *durablememory.Client, _ object) (any, error) {
	session, err := client.OpenSession(ctx, "assistant", nil)
	if err != nil {
		return nil, err
	}
	receipt, err := client.RefreshSemanticRecall(ctx, session.ID(), nil)
	if err != nil {
		return nil, err
	}
	status, err := client.GetIndexStatus(ctx)
	if err != nil {
		return nil, err
	}
	return object{"active_count": receipt.ActiveCount, "unindexed": status.UnindexedActiveCount}, nil
}

func contents(hits []durablememory.Hit) []string {
	found := []string{}
	for _, hit := range hits {
		found = append(found, hit.Content)
	}
	return found
}

func sortedContents(nodes []durablememory.Node) []string {
	found := []string{}
	for _, node := range nodes {
		found = append(found, node.Content)
	}
	slices.Sort(found)
	return found
}

func text(given object, name string) string {
	value, _ := given[name].(string)
	return value
}

func texts(given object, name string) []string {
	values, _ := given[name].([]any)
	var found []string
	for _, value := range values {
		if value, ok := value.(string); ok {
			found = append(found, value)
		}
	}
	return found
}

// number is a whole number of JSON, or the default where it is not stated.
func number(given object, name string, otherwise int) int {
	if value, ok := given[name].(float64); ok {
		return int(value)
	}
	return otherwise
}
