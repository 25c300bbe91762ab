package durablememory

import (
	"fmt"
	"time"

	pb "durablememory.dev/go/durablememoryv1"
)

// Evidence is a reference to a source. The service keeps the reference and the digest, never the body.
type Evidence struct {
	// URI names the source, 1..2,048 bytes, unique in its memory.
	URI  string
	Kind EvidenceKind
	// Body is the source's raw bytes, up to 1 MiB. Nil: Digest is stated instead.
	Body []byte
	// Digest is sha256: and 64 lower-case hexadecimal digits. What the service returns has it, and no body; of a body
	// the service makes it, whatever stands here.
	Digest string
	// OccurredAt is when the source came to be. Default: the time of the change.
	OccurredAt time.Time
}

// SessionTurn is evidence for what was said in a turn: session:<session id>/turn/<run id>.
func SessionTurn(sessionID, runID, body string) Evidence {
	uri := fmt.Sprintf("session:%s/turn/%s", percentEncoded(sessionID), percentEncoded(runID))
	return Evidence{URI: uri, Kind: EvidenceKindSessionTurn, Body: []byte(body)}
}

// UserStatement is evidence for what the user said.
func UserStatement(uri, body string) Evidence {
	return Evidence{URI: uri, Kind: EvidenceKindUserStatement, Body: []byte(body)}
}

// ToolResult is evidence for what a tool returned.
func ToolResult(uri string, body []byte) Evidence {
	return Evidence{URI: uri, Kind: EvidenceKindToolResult, Body: body}
}

// Artifact is evidence for what stands in a file, page or other document.
func Artifact(uri string, body []byte) Evidence {
	return Evidence{URI: uri, Kind: EvidenceKindArtifact, Body: body}
}

func evidenceOf(message *pb.Evidence) Evidence {
	return Evidence{
		URI:        message.GetUri(),
		Kind:       fromEnum[EvidenceKind](message.GetKind()),
		Digest:     message.GetDigest(),
		Body:       message.GetBody(),
		OccurredAt: fromTimestamp(message.GetOccurredAt()),
	}
}

func toEvidence(evidence Evidence) *pb.Evidence {
	message := &pb.Evidence{
		Uri:        evidence.URI,
		Kind:       toEnum[pb.EvidenceKind](evidence.Kind),
		OccurredAt: toTimestamp(evidence.OccurredAt),
	}
	if evidence.Body != nil {
		message.Source = &pb.Evidence_Body{Body: evidence.Body}
	} else if evidence.Digest != "" {
		message.Source = &pb.Evidence_Digest{Digest: evidence.Digest}
	}
	return message
}

// Decision is who decides that a memory may be used, and why; the service makes MANUAL or VERIFICATION evidence of it.
type Decision struct {
	Kind DecisionKind
	// Decider is the person, by default the authenticated caller; or the rule, as rule:<name>@<version>.
	Decider string
	// Note is for whoever reads the history later, up to 1,024 bytes; no secrets, no copy of the content.
	Note string
}

// ManualDecision is that a person looked at it: the authenticated caller.
func ManualDecision(note string) *Decision { return &Decision{Kind: DecisionKindManual, Note: note} }

// RuleDecision is that a named and versioned rule checked it, without a person.
func RuleDecision(name, version, note string) *Decision {
	return &Decision{Kind: DecisionKindVerification, Decider: fmt.Sprintf("rule:%s@%s", name, version), Note: note}
}

func toDecision(decision *Decision) *pb.Decision {
	if decision == nil {
		return nil
	}
	return &pb.Decision{
		Kind:    toEnum[pb.DecisionKind](decision.Kind),
		Decider: decision.Decider,
		Note:    decision.Note,
	}
}
