package durablememory

import (
	"context"
	"time"

	pb "durablememory.dev/go/durablememoryv1"
)

// RememberOptions is what may be left out of Remember.
type RememberOptions struct {
	// NodeID names the node. Default: a new id.
	NodeID string
	// Decision is who decided. Default: the authenticated caller did (MANUAL).
	Decision *Decision
	// ExpectedNamespaceRevision is what the namespace must be at; nil: not compared.
	ExpectedNamespaceRevision *int64
	RequestID                 string
}

// Remember remembers at once: an ACTIVE memory, without a candidate. Content equal to an ACTIVE one's is UNCHANGED.
//
// Reasons: NODE_ALREADY_EXISTS (the node id is taken), REVISION_CONFLICT (the namespace moved), NAMESPACE_TOO_LARGE.
func (m *Memory) Remember(ctx context.Context, memory Draft, options *RememberOptions) (Remembered, error) {
	chosen := orDefault(options)
	var response pb.RememberResponse
	err := m.call(ctx, &pb.RememberRequest{
		RequestId:                 chosen.RequestID,
		Memory:                    memory.toProto(),
		NodeId:                    optional(chosen.NodeID),
		Decision:                  toDecision(chosen.Decision),
		ExpectedNamespaceRevision: chosen.ExpectedNamespaceRevision,
	}, &response)
	if err != nil {
		return Remembered{}, err
	}
	return Remembered{
		Outcome:     fromEnum[RememberOutcome](response.GetOutcome()),
		Citation:    citationOf(response.GetCitation()),
		ChangeToken: changeTokenOf(response.GetChangeToken()),
	}, nil
}

// PutOptions is what may be left out of Put.
type PutOptions struct {
	// Decision is who decided. Default: the authenticated caller did (MANUAL).
	Decision *Decision
	// RevisionKind is why it changes, if it does. Default: the server's.
	RevisionKind RevisionKind
	// ExpectedRevision is what the node must be at, 0: it must not exist; nil: not compared.
	ExpectedRevision *int64
	RequestID        string
}

// Put makes the node with this id say this, completely, and be ACTIVE: CREATED, REVISED or UNCHANGED.
//
// Reasons: INVALID_FIELD (the node has another kind), REVISION_CONFLICT, NODE_FROZEN, NAMESPACE_TOO_LARGE.
func (m *Memory) Put(ctx context.Context, nodeID string, memory Draft, options *PutOptions) (Put, error) {
	chosen := orDefault(options)
	var response pb.PutMemoryResponse
	err := m.call(ctx, &pb.PutMemoryRequest{
		RequestId:        chosen.RequestID,
		NodeId:           nodeID,
		Memory:           memory.toProto(),
		Decision:         toDecision(chosen.Decision),
		RevisionKind:     toOptionalEnum[pb.RevisionKind](chosen.RevisionKind),
		ExpectedRevision: chosen.ExpectedRevision,
	}, &response)
	if err != nil {
		return Put{}, err
	}
	return Put{
		Outcome:     fromEnum[PutMemoryOutcome](response.GetOutcome()),
		Citation:    citationOf(response.GetCitation()),
		ChangeToken: changeTokenOf(response.GetChangeToken()),
	}, nil
}

// Revision is what changes of a memory. What is nil, or zero, stays.
type Revision struct {
	// Kind is CORRECTION by default.
	Kind    RevisionKind
	Content *string
	// Surroundings replaces them; empty but not nil removes them.
	Surroundings           []string
	Author                 *string
	OccurredAt             time.Time
	Confidence, Importance *float64
	SetLabels              map[string]string
	RemoveLabels           []string
	Evidence               []Evidence
}

func (r Revision) kind() pb.RevisionKind {
	if r.Kind == "" {
		return pb.RevisionKind_REVISION_KIND_CORRECTION
	}
	return toEnum[pb.RevisionKind](r.Kind)
}

func (r Revision) surroundings() *pb.Surroundings {
	if r.Surroundings == nil {
		return nil
	}
	return &pb.Surroundings{Texts: r.Surroundings}
}

// ReviseOptions is what may be left out of Revise.
type ReviseOptions struct {
	// Decision is who decided. Default: the authenticated caller did (MANUAL).
	Decision  *Decision
	RequestID string
}

// Revise changes a memory, named by its exact current citation.
//
// Reasons: NODE_NOT_FOUND, REVISION_CONFLICT (it has changed since), REVISION_NOT_FOUND (the digest differs),
// NODE_FROZEN, CHANGE_SET_EMPTY, NAMESPACE_TOO_LARGE.
func (m *Memory) Revise(ctx context.Context, memory Citable, revision Revision, options *ReviseOptions) (Revised, error) {
	chosen := orDefault(options)
	var response pb.ReviseMemoryResponse
	err := m.call(ctx, &pb.ReviseMemoryRequest{
		RequestId:    chosen.RequestID,
		Citation:     toCitation(memory),
		RevisionKind: revision.kind(),
		Content:      revision.Content,
		Surroundings: revision.surroundings(),
		Author:       revision.Author,
		OccurredAt:   toTimestamp(revision.OccurredAt),
		Confidence:   revision.Confidence,
		Importance:   revision.Importance,
		SetLabels:    revision.SetLabels,
		RemoveLabels: revision.RemoveLabels,
		Evidence:     each(revision.Evidence, toEvidence),
		Decision:     toDecision(chosen.Decision),
	}, &response)
	if err != nil {
		return Revised{}, err
	}
	return Revised{citationOf(response.GetCitation()), changeTokenOf(response.GetChangeToken())}, nil
}

// RetireOptions is what may be left out of Retire.
type RetireOptions struct {
	Evidence []Evidence
	// Decision is who decided. Default: the authenticated caller did (MANUAL).
	Decision  *Decision
	RequestID string
}

// Retire takes an ACTIVE memory out of recall: it becomes ARCHIVED. Nothing is deleted.
//
// Reasons: NODE_NOT_FOUND, REVISION_CONFLICT, REVISION_NOT_FOUND, INVALID_TRANSITION.
func (m *Memory) Retire(ctx context.Context, memory Citable, options *RetireOptions) (Retired, error) {
	chosen := orDefault(options)
	var response pb.RetireMemoryResponse
	err := m.call(ctx, &pb.RetireMemoryRequest{
		RequestId: chosen.RequestID,
		Citation:  toCitation(memory),
		Evidence:  each(chosen.Evidence, toEvidence),
		Decision:  toDecision(chosen.Decision),
	}, &response)
	if err != nil {
		return Retired{}, err
	}
	return Retired{citationOf(response.GetCitation()), changeTokenOf(response.GetChangeToken())}, nil
}

// ReactivateOptions is what may be left out of Reactivate.
type ReactivateOptions struct {
	Evidence []Evidence
	// Decision is who decided. Default: the authenticated caller did (MANUAL).
	Decision  *Decision
	RequestID string
}

// Reactivate brings an ARCHIVED memory back into recall, or decides for a CONFLICTED one.
//
// Reasons: NODE_NOT_FOUND, REVISION_CONFLICT, REVISION_NOT_FOUND, INVALID_TRANSITION, NAMESPACE_TOO_LARGE.
func (m *Memory) Reactivate(ctx context.Context, memory Citable, options *ReactivateOptions) (Reactivated, error) {
	chosen := orDefault(options)
	var response pb.ReactivateMemoryResponse
	err := m.call(ctx, &pb.ReactivateMemoryRequest{
		RequestId: chosen.RequestID,
		Citation:  toCitation(memory),
		Evidence:  each(chosen.Evidence, toEvidence),
		Decision:  toDecision(chosen.Decision),
	}, &response)
	if err != nil {
		return Reactivated{}, err
	}
	return Reactivated{
		Outcome:     fromEnum[ReactivateMemoryOutcome](response.GetOutcome()),
		Citation:    citationOf(response.GetCitation()),
		ChangeToken: changeTokenOf(response.GetChangeToken()),
	}, nil
}

// SupersedeOptions is what may be left out of Supersede.
type SupersedeOptions struct {
	// NodeID names the new node. Default: a new id.
	NodeID string
	// Decision is who decided. Default: the authenticated caller did (MANUAL).
	Decision  *Decision
	RequestID string
}

// Supersede replaces a memory by a new one, atomically, each naming the other.
//
// Reasons: NODE_NOT_FOUND, REVISION_CONFLICT, REVISION_NOT_FOUND, INVALID_TRANSITION, NODE_ALREADY_EXISTS,
// NAMESPACE_TOO_LARGE.
func (m *Memory) Supersede(
	ctx context.Context, memory Citable, replacement Draft, options *SupersedeOptions,
) (Superseded, error) {
	chosen := orDefault(options)
	var response pb.SupersedeMemoryResponse
	err := m.call(ctx, &pb.SupersedeMemoryRequest{
		RequestId: chosen.RequestID,
		Citation:  toCitation(memory),
		Memory:    replacement.toProto(),
		NodeId:    optional(chosen.NodeID),
		Decision:  toDecision(chosen.Decision),
	}, &response)
	if err != nil {
		return Superseded{}, err
	}
	return Superseded{
		Citation:           citationOf(response.GetCitation()),
		SupersededCitation: citationOf(response.GetSupersededCitation()),
		ChangeToken:        changeTokenOf(response.GetChangeToken()),
	}, nil
}

// Get reads exactly what a citation names, however old, and what has become of it.
//
// Reasons: NODE_NOT_FOUND, REVISION_NOT_FOUND (no such revision, or its digest differs), CONTENT_ERASED.
func (m *Memory) Get(ctx context.Context, citation Citable) (CitedMemory, error) {
	var response pb.GetMemoryResponse
	if err := m.call(ctx, &pb.GetMemoryRequest{Citation: toCitation(citation)}, &response); err != nil {
		return CitedMemory{}, err
	}
	return CitedMemory{
		Node:            nodeOf(response.GetNode()),
		CurrentCitation: citationOf(response.GetCurrentCitation()),
		CurrentStatus:   fromEnum[NodeStatus](response.GetCurrentStatus()),
		ChangeToken:     changeTokenOf(response.GetChangeToken()),
	}, nil
}

// orDefault is the options that were given; nil is none.
func orDefault[O any](options *O) O {
	if options == nil {
		return *new(O)
	}
	return *options
}
