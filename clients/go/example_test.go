package durablememory_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	durablememory "durablememory.dev/go"
)

func askTheModel(_ context.Context, memories, question string) (string, error) {
	return "Tea [m1].", nil
}

func Example() {
	ctx := context.Background()
	memory, err := durablememory.NewClient(durablememory.WithNamespace(durablememory.Namespace{
		Tenant: "acme", Principal: "user-1", Scope: "project-a",
	}))
	if err != nil {
		log.Fatal(err)
	}
	defer memory.Close()

	// A turn recalls, shows the model what may enter its input, and records what the answer used.
	session, err := memory.OpenSession(ctx, "assistant", nil)
	if err != nil {
		log.Fatal(err)
	}
	run, err := session.BeginRun(ctx, "turn-17", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer run.Close()
	recall, err := run.RecallAndAdmit(ctx, "what does the user drink?", nil)
	if err != nil {
		log.Fatal(err)
	}
	block := durablememory.Render(recall.Hits, &durablememory.RenderOptions{MaxBytes: 4_000})
	answer, err := askTheModel(ctx, block.Text, "what does the user drink?")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := run.RecordUse(ctx, block.Cited(answer), nil); err != nil {
		log.Fatal(err)
	}
}

func ExampleMemory_Propose() {
	var memory *durablememory.Memory // of a client
	ctx := context.Background()

	// An agent proposes what it heard. A candidate is never recalled ...
	proposed, err := memory.Propose(ctx, durablememory.Draft{
		Content:  "The user prefers tea to coffee.",
		Evidence: []durablememory.Evidence{durablememory.SessionTurn("assistant", "turn-16", "I'd rather have tea.")},
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	// ... until somebody who may decide does so: a person, or a named rule.
	if _, err := memory.Activate(ctx, proposed, durablememory.RuleDecision("said-twice", "1", ""), nil); err != nil {
		log.Fatal(err)
	}
}

func ExampleError() {
	var memory *durablememory.Memory // of a client
	var hit durablememory.Hit        // of a recall

	change := durablememory.Revision{Content: new("The user prefers green tea.")}
	_, err := memory.Revise(context.Background(), hit, change, nil)
	var failed *durablememory.Error
	if errors.Is(err, durablememory.ReasonRevisionConflict) && errors.As(err, &failed) {
		fmt.Println("changed meanwhile, to revision", failed.Metadata["actual"])
	}
}

func ExampleMemory_ListNodes() {
	var memory *durablememory.Memory // of a client

	active := &durablememory.ListNodesOptions{Statuses: []durablememory.NodeStatus{durablememory.NodeStatusActive}}
	for node, err := range memory.ListNodes(active).All(context.Background()) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(node.Citation, node.Content)
	}
}

func ExampleMemory_Watch() {
	var memory *durablememory.Memory // of a client
	var token durablememory.ChangeToken

	watch := memory.Watch(&durablememory.WatchOptions{After: &token, IncludeNodes: true})
	for change, err := range watch.All(context.Background()) {
		if err != nil {
			log.Fatal(err)
		}
		token = change.ChangeToken
	}
}

func ExampleRecallAll() {
	var user, project *durablememory.Run // of sessions in two namespaces
	ctx := context.Background()

	runs := []*durablememory.Run{user, project}
	recall, err := durablememory.RecallAll(ctx, runs, "tea", &durablememory.RecallAllOptions{MaxResults: 8})
	if err != nil {
		log.Fatal(err)
	}
	block := durablememory.Render(recall.Hits, nil)
	admission, err := durablememory.AdmitAll(ctx, runs, block.Hits, nil)
	if err != nil {
		log.Fatal(err)
	}
	shown := durablememory.Render(admission.Hits, nil)
	answer, err := askTheModel(ctx, shown.Text, "tea?")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := durablememory.RecordUseAll(ctx, runs, shown.Cited(answer)); err != nil {
		log.Fatal(err)
	}
}

func ExampleMemory_ExportNamespace() {
	var memory *durablememory.Memory // of a client

	file, err := os.Create("memory.jsonl")
	if err != nil {
		log.Fatal(err)
	}
	if err := errors.Join(memory.ExportNamespace(context.Background(), file), file.Close()); err != nil {
		log.Fatal(err)
	}
}
