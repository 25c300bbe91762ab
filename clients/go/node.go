package durablememory

import (
	"time"

	pb "durablememory.dev/go/durablememoryv1"
)

// Draft is what to remember.
type Draft struct {
	// Content is 1..65,536 bytes of UTF-8.
	Content string
	// Kind is SEMANTIC by default.
	Kind     NodeKind
	Evidence []Evidence
	// Surroundings are up to 4 texts that stood around it at its source, nearest first; they make it easier to find.
	Surroundings []string
	// Author is who said it.
	Author string
	// OccurredAt is when what it tells of happened. Default: the earliest evidence, else now.
	OccurredAt time.Time
	// Confidence and Importance are annotations from 0 to 1 that authorise nothing; nil leaves them to the server.
	Confidence, Importance *float64
	Labels                 map[string]string
}

func (d Draft) toProto() *pb.MemoryDraft {
	kind := pb.NodeKind_NODE_KIND_SEMANTIC
	if d.Kind != "" {
		kind = toEnum[pb.NodeKind](d.Kind)
	}
	return &pb.MemoryDraft{
		Kind:         kind,
		Content:      d.Content,
		Surroundings: d.Surroundings,
		Author:       d.Author,
		OccurredAt:   toTimestamp(d.OccurredAt),
		Confidence:   d.Confidence,
		Importance:   d.Importance,
		Labels:       d.Labels,
		Evidence:     each(d.Evidence, toEvidence),
	}
}

// Relation is a typed link to another node, seen from the node that holds it.
type Relation struct {
	Kind   RelationKind
	NodeID string
}

func relationOf(message *pb.Relation) Relation {
	return Relation{Kind: fromEnum[RelationKind](message.GetKind()), NodeID: message.GetNodeId()}
}

func toRelation(relation Relation) *pb.Relation {
	return &pb.Relation{Kind: toEnum[pb.RelationKind](relation.Kind), NodeId: relation.NodeID}
}

// Node is one revision of one memory.
type Node struct {
	ID       string
	Revision int64
	Kind     NodeKind
	Status   NodeStatus
	// Content is untrusted text: show it to a model as history, by [Render], never as instructions. It is empty where
	// the call asked to omit content.
	Content string
	// Surroundings are there only where the call asked for them.
	Surroundings  []string
	ContentDigest string
	Author        string
	// OccurredAt is zero where nothing is known.
	OccurredAt                        time.Time
	Confidence, Importance            float64
	Evidence                          []Evidence
	Relations                         []Relation
	Labels                            map[string]string
	CreatedAt, UpdatedAt, CommittedAt time.Time
	DecidedBy                         string
	Citation                          Citation
	// ValidFrom is the namespace revision that committed this revision.
	ValidFrom int64
	// SupersededAt is the namespace revision that replaced it, nil while it is the current one.
	SupersededAt *int64
}

// Cited is the citation of this revision.
func (n Node) Cited() Citation { return n.Citation }

func nodeOf(message *pb.Node) Node {
	if message == nil {
		return Node{}
	}
	return Node{
		ID:            message.GetId(),
		Revision:      message.GetRevision(),
		Kind:          fromEnum[NodeKind](message.GetKind()),
		Status:        fromEnum[NodeStatus](message.GetStatus()),
		Content:       message.GetContent(),
		Surroundings:  message.GetSurroundings(),
		ContentDigest: message.GetContentDigest(),
		Author:        message.GetAuthor(),
		OccurredAt:    fromTimestamp(message.GetOccurredAt()),
		Confidence:    message.GetConfidence(),
		Importance:    message.GetImportance(),
		Evidence:      each(message.GetEvidence(), evidenceOf),
		Relations:     each(message.GetRelations(), relationOf),
		Labels:        message.GetLabels(),
		CreatedAt:     fromTimestamp(message.GetCreatedAt()),
		UpdatedAt:     fromTimestamp(message.GetUpdatedAt()),
		CommittedAt:   fromTimestamp(message.GetCommittedAt()),
		DecidedBy:     message.GetDecidedBy(),
		Citation:      citationOf(message.GetCitation()),
		ValidFrom:     message.GetValidFromNamespaceRevision(),
		SupersededAt:  message.SupersededAtNamespaceRevision,
	}
}

// CitedMemory is what a citation names, and what has become of it.
type CitedMemory struct {
	Node            Node
	CurrentCitation Citation
	// CurrentStatus may have changed even where the node still says exactly this.
	CurrentStatus NodeStatus
	ChangeToken   ChangeToken
}

// Cited is the citation of the revision that was asked for.
func (m CitedMemory) Cited() Citation { return m.Node.Citation }

// IsCurrent tells whether the node still says exactly this.
func (m CitedMemory) IsCurrent() bool { return m.Node.SupersededAt == nil }
