// Command chatturn is one chat turn with memory. Beside durable-memory serve: go run ./examples/chatturn "I like tea."
// What it heard becomes a candidate; once somebody activates that, later turns recall it.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"
	"unicode"

	durablememory "durablememory.dev/go"
)

// askTheModel calls your model here. This stand-in repeats what it was shown, and cites it.
func askTheModel(memories, said string) string {
	if memories == "" {
		return "You said: " + said
	}
	return "You said: " + said + "\nI remember [m1]:\n" + memories
}

func chatTurn(ctx context.Context, memory *durablememory.Memory, said string) (string, error) {
	session, err := memory.OpenSession(ctx, "assistant", &durablememory.OpenSessionOptions{
		Policy:        durablememory.Policy{MaxResults: 5},
		OnUnavailable: durablememory.EmptyWhenUnavailable,
	})
	if err != nil {
		return "", err
	}
	run, err := session.BeginRun(ctx, "", nil)
	if err != nil {
		return "", err
	}
	defer run.Close()
	var recall durablememory.Recall // stays empty where there is nothing to look for, as in a lone thumbs-up
	if strings.ContainsFunc(said, unicode.IsLetter) || strings.ContainsFunc(said, unicode.IsNumber) {
		if recall, err = run.Recall(ctx, said, nil); err != nil {
			return "", err
		}
	}
	fits := durablememory.Render(recall.Hits, &durablememory.RenderOptions{MaxBytes: 4_000})
	admission, err := run.Admit(ctx, fits.Hits, nil)
	if err != nil {
		return "", err
	}
	shown := durablememory.Render(admission.Hits, &durablememory.RenderOptions{MaxBytes: 4_000})
	answer := askTheModel(shown.Text, said)
	_, err = run.RecordUse(ctx, shown.Cited(answer), nil)
	if err == nil {
		heard := durablememory.Draft{Content: said, Evidence: []durablememory.Evidence{run.Evidence(said)}}
		_, err = memory.Propose(ctx, heard, nil)
	}
	if errors.Is(err, durablememory.ErrUnavailable) {
		log.Printf("this turn may not have been kept: %v", err)
		return answer, nil
	}
	return answer, err
}

func run(ctx context.Context, said string) error {
	client, err := durablememory.NewClient(durablememory.WithNamespace(
		durablememory.Namespace{Tenant: "demo", Principal: "user-1", Scope: "chat"}))
	if err != nil {
		return err
	}
	defer client.Close()
	answer, err := chatTurn(ctx, client.Memory, strings.ToValidUTF8(strings.ReplaceAll(said, "\x00", " "), "\uFFFD"))
	fmt.Println(answer)
	return err
}

func main() {
	if err := run(context.Background(), strings.Join(os.Args[1:], " ")); err != nil {
		log.Fatal(err)
	}
}
