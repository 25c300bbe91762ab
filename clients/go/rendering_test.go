package durablememory_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	durablememory "durablememory.dev/go"
)

type renderingCases struct {
	Render []struct {
		Name     string    `json:"name"`
		Hits     []hitCase `json:"hits"`
		MaxBytes int       `json:"max_bytes"`
		Text     string    `json:"text"`
		Counts   [3]int    `json:"counts"`
	} `json:"render"`
	Cited []struct {
		Answer string `json:"answer"`
		Hits   int    `json:"hits"`
		Places []int  `json:"places"`
	} `json:"cited"`
}

type hitCase struct {
	Content    string    `json:"content"`
	Kind       string    `json:"kind"`
	Author     string    `json:"author"`
	OccurredAt time.Time `json:"occurred_at"`
	Disputed   bool      `json:"disputed"`
	Namespace  []string  `json:"namespace"`
}

func (c hitCase) hit() durablememory.Hit {
	found := durablememory.Hit{
		Content:    c.Content,
		Kind:       durablememory.NodeKindSemantic,
		Author:     c.Author,
		OccurredAt: c.OccurredAt,
		Disputed:   c.Disputed,
		Namespace:  durablememory.Namespace{Tenant: "acme", Principal: "user-1", Scope: "project-a"},
	}
	if c.Kind != "" {
		found.Kind = durablememory.NodeKind(c.Kind)
	}
	if c.Namespace != nil {
		found.Namespace = durablememory.Namespace{Tenant: c.Namespace[0], Principal: c.Namespace[1], Scope: c.Namespace[2]}
	}
	return found
}

// The golden cases that the clients of all languages share.
func readRenderingCases(t *testing.T) renderingCases {
	t.Helper()
	text, err := os.ReadFile("../conformance/rendering.json")
	must(t, err)
	var cases renderingCases
	must(t, json.Unmarshal(text, &cases))
	return cases
}

func TestRenderingGivesByteForByteWhatItGivesInEveryLanguage(t *testing.T) {
	for _, given := range readRenderingCases(t).Render {
		t.Run(given.Name, func(t *testing.T) {
			var hits []durablememory.Hit
			for _, row := range given.Hits {
				hits = append(hits, row.hit())
			}
			block := durablememory.Render(hits, &durablememory.RenderOptions{MaxBytes: given.MaxBytes})
			equal(t, "text", block.String(), given.Text)
			equal(t, "counts", [3]int{len(block.Hits), len(block.Shortened), len(block.Omitted)}, given.Counts)
			equal(t, "complete", block.Complete(), given.Counts[1]+given.Counts[2] == 0)
			if len(block.Text) > given.MaxBytes {
				t.Errorf("%d bytes are more than %d", len(block.Text), given.MaxBytes)
			}
		})
	}
}

func TestWhatAnAnswerCitesIsFoundAsInEveryLanguage(t *testing.T) {
	for _, given := range readRenderingCases(t).Cited {
		t.Run(given.Answer, func(t *testing.T) {
			block := durablememory.Rendering{}
			for rank := range given.Hits {
				block.Hits = append(block.Hits, durablememory.Hit{Rank: int32(rank + 1)})
			}
			cited := block.Cited(given.Answer)
			equal(t, "hits", len(cited), len(given.Places))
			for place, found := range cited {
				equal(t, "place", int(found.Rank), given.Places[place])
			}
		})
	}
}

func TestTextThatIsNotUTF8IsRenderedAllTheSame(t *testing.T) {
	block := durablememory.Render([]durablememory.Hit{{Content: "[\xff\xfem1]"}}, nil)
	equal(t, "complete", block.Complete(), true)
}

func TestWhatIsAddedToARenderingDoesNotChangeTheHitsGiven(t *testing.T) {
	hits := make([]durablememory.Hit, 2, 3)
	hits[0].Content, hits[1].Content = strings.Repeat("tea ", 200), "coffee"
	spare := hits[:3]
	for _, maxBytes := range []int{16_384, 700} {
		block := durablememory.Render(hits, &durablememory.RenderOptions{MaxBytes: maxBytes})
		for _, part := range [][]durablememory.Hit{block.Hits, block.Shortened, block.Omitted} {
			_ = append(part, durablememory.Hit{Content: "added"})
		}
		equal(t, "complete", block.Complete(), maxBytes > 700)
		equal(t, "the second", hits[1].Content, "coffee")
		equal(t, "beyond them", spare[2].Content, "")
	}
}
