package durablememory

import (
	"time"

	pb "durablememory.dev/go/durablememoryv1"
)

// Operation is one step of a change set: [Create], [Activate], [Corroborate], [Revise], [AddRelation],
// [RemoveRelation] or [SetStatus].
type Operation interface {
	toProto() *pb.Operation
}

// Create creates a node: a CANDIDATE, or with MANUAL or VERIFICATION evidence in the draft an ACTIVE one.
type Create struct {
	Memory Draft
	// NodeID names the node. Default: a new id.
	NodeID    string
	Status    NodeStatus
	Relations []Relation
	CreatedAt time.Time
}

func (o Create) toProto() *pb.Operation {
	return &pb.Operation{Operation: &pb.Operation_Create{Create: &pb.CreateOperation{
		NodeId:    optional(o.NodeID),
		Status:    toOptionalEnum[pb.NodeStatus](o.Status),
		Memory:    o.Memory.toProto(),
		Relations: each(o.Relations, toRelation),
		CreatedAt: toTimestamp(o.CreatedAt),
	}}}
}

// Activate makes a CANDIDATE, CONFLICTED or ARCHIVED node ACTIVE, by new MANUAL or VERIFICATION evidence.
type Activate struct {
	NodeID           string
	ExpectedRevision int64
	Evidence         []Evidence
}

func (o Activate) toProto() *pb.Operation {
	return &pb.Operation{Operation: &pb.Operation_Activate{Activate: &pb.ActivateOperation{
		NodeId:           o.NodeID,
		ExpectedRevision: o.ExpectedRevision,
		Evidence:         each(o.Evidence, toEvidence),
	}}}
}

// Corroborate adds evidence and changes nothing else.
type Corroborate struct {
	NodeID           string
	ExpectedRevision int64
	Evidence         []Evidence
}

func (o Corroborate) toProto() *pb.Operation {
	return &pb.Operation{Operation: &pb.Operation_Corroborate{Corroborate: &pb.CorroborateOperation{
		NodeId:           o.NodeID,
		ExpectedRevision: o.ExpectedRevision,
		Evidence:         each(o.Evidence, toEvidence),
	}}}
}

// Revise changes content or annotations.
type Revise struct {
	NodeID           string
	ExpectedRevision int64
	Revision         Revision
}

func (o Revise) toProto() *pb.Operation {
	return &pb.Operation{Operation: &pb.Operation_Revise{Revise: &pb.ReviseOperation{
		NodeId:           o.NodeID,
		ExpectedRevision: o.ExpectedRevision,
		Kind:             o.Revision.kind(),
		Content:          o.Revision.Content,
		Surroundings:     o.Revision.surroundings(),
		Author:           o.Revision.Author,
		OccurredAt:       toTimestamp(o.Revision.OccurredAt),
		Confidence:       o.Revision.Confidence,
		Importance:       o.Revision.Importance,
		SetLabels:        o.Revision.SetLabels,
		RemoveLabels:     o.Revision.RemoveLabels,
		Evidence:         each(o.Revision.Evidence, toEvidence),
	}}}
}

// AddRelation adds one end of a relation; the same change set must add the inverse. [Relate] makes both.
type AddRelation struct {
	NodeID           string
	ExpectedRevision int64
	Relation         Relation
}

func (o AddRelation) toProto() *pb.Operation {
	return &pb.Operation{Operation: &pb.Operation_AddRelation{AddRelation: &pb.AddRelationOperation{
		NodeId:           o.NodeID,
		ExpectedRevision: o.ExpectedRevision,
		Relation:         toRelation(o.Relation),
	}}}
}

// RemoveRelation removes one end of a relation; the same change set must remove the inverse. [Unrelate] makes both.
type RemoveRelation struct {
	NodeID           string
	ExpectedRevision int64
	Relation         Relation
}

func (o RemoveRelation) toProto() *pb.Operation {
	return &pb.Operation{Operation: &pb.Operation_RemoveRelation{RemoveRelation: &pb.RemoveRelationOperation{
		NodeId:           o.NodeID,
		ExpectedRevision: o.ExpectedRevision,
		Relation:         toRelation(o.Relation),
	}}}
}

// SetStatus moves a node to CONFLICTED, SUPERSEDED, ARCHIVED or TOMBSTONED.
type SetStatus struct {
	NodeID           string
	ExpectedRevision int64
	Status           NodeStatus
	Evidence         []Evidence
}

func (o SetStatus) toProto() *pb.Operation {
	return &pb.Operation{Operation: &pb.Operation_SetStatus{SetStatus: &pb.SetStatusOperation{
		NodeId:           o.NodeID,
		ExpectedRevision: o.ExpectedRevision,
		Status:           toEnum[pb.NodeStatus](o.Status),
		Evidence:         each(o.Evidence, toEvidence),
	}}}
}

// Inverse is what a relation is, seen from its other end; empty for a kind that this version does not know.
func (k RelationKind) Inverse() RelationKind {
	switch k {
	case RelationKindSupersedes:
		return RelationKindSupersededBy
	case RelationKindSupersededBy:
		return RelationKindSupersedes
	case RelationKindConflictsWith, RelationKindRelatedTo:
		return k
	}
	return ""
}

// Relate is both ends of a new relation between two nodes, at the revisions that are cited.
func Relate(node Citable, kind RelationKind, other Citable) []Operation {
	from, to := node.Cited(), other.Cited()
	return []Operation{
		AddRelation{from.NodeID, from.NodeRevision, Relation{kind, to.NodeID}},
		AddRelation{to.NodeID, to.NodeRevision, Relation{kind.Inverse(), from.NodeID}},
	}
}

// Unrelate is both ends of a relation that is to go, of two nodes at the revisions that are cited.
func Unrelate(node Citable, kind RelationKind, other Citable) []Operation {
	from, to := node.Cited(), other.Cited()
	return []Operation{
		RemoveRelation{from.NodeID, from.NodeRevision, Relation{kind, to.NodeID}},
		RemoveRelation{to.NodeID, to.NodeRevision, Relation{kind.Inverse(), from.NodeID}},
	}
}

// NodeChange is what a change set did to one node.
type NodeChange struct {
	Citation       Citation
	RevisionDigest string
	Operations     []OperationKind
	// StatusBefore is empty when the change set created the node.
	StatusBefore   NodeStatus
	StatusAfter    NodeStatus
	ContentChanged bool
}

// Cited is the revision that the change set made.
func (c NodeChange) Cited() Citation { return c.Citation }

func nodeChangeOf(message *pb.NodeChange) NodeChange {
	return NodeChange{
		Citation:       citationOf(message.GetCitation()),
		RevisionDigest: message.GetRevisionDigest(),
		Operations:     fromEnums[OperationKind](message.GetOperations()),
		StatusBefore:   fromEnum[NodeStatus](message.GetStatusBefore()),
		StatusAfter:    fromEnum[NodeStatus](message.GetStatusAfter()),
		ContentChanged: message.GetContentChanged(),
	}
}

// ChangeSet is one committed change set. It names what changed and never holds text.
type ChangeSet struct {
	Namespace         Namespace
	NamespaceRevision int64
	Method            string
	IdempotencyKey    string
	OccurredAt        time.Time
	CommittedAt       time.Time
	Caller            string
	Changes           []NodeChange
	Note              string
	Digest            string
	ChainDigest       string
}

func changeSetOf(message *pb.ChangeSet) ChangeSet {
	return ChangeSet{
		Namespace:         namespaceOf(message.GetNamespace()),
		NamespaceRevision: message.GetNamespaceRevision(),
		Method:            message.GetMethod(),
		IdempotencyKey:    message.GetIdempotencyKey(),
		OccurredAt:        fromTimestamp(message.GetOccurredAt()),
		CommittedAt:       fromTimestamp(message.GetCommittedAt()),
		Caller:            message.GetCaller(),
		Changes:           each(message.GetChanges(), nodeChangeOf),
		Note:              message.GetNote(),
		Digest:            message.GetDigest(),
		ChainDigest:       message.GetChainDigest(),
	}
}

// WatchedChange is one change of a watched namespace: where it took the namespace, what changed, and the revisions that
// it made.
type WatchedChange struct {
	// ChangeToken is where to go on from, another time.
	ChangeToken ChangeToken
	ChangeSet   ChangeSet
	// Nodes are there if the watch asked for them; where they would not fit into one message, without content.
	Nodes []Node
}

func watchedChangeOf(message *pb.WatchedChange) WatchedChange {
	return WatchedChange{
		ChangeToken: changeTokenOf(message.GetChangeToken()),
		ChangeSet:   changeSetOf(message.GetChangeSet()),
		Nodes:       each(message.GetNodes(), nodeOf),
	}
}
