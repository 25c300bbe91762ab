package durablememory

import (
	"context"

	pb "durablememory.dev/go/durablememoryv1"
)

// ProposeOptions is what may be left out of Propose and ProposeMany.
type ProposeOptions struct {
	// NodeID names the node of a single proposal. Default: a new id.
	NodeID string
	// Repropose makes a new candidate of what was rejected before.
	Repropose bool
	RequestID string
}

// Propose proposes a memory, with at least one reference of evidence. It is a candidate, and never recalled, until
// somebody with that right activates it. An equal candidate gets the evidence instead (CORROBORATED), an equal ACTIVE
// memory is named (ALREADY_ACTIVE), and what was rejected before stays rejected (PREVIOUSLY_REJECTED).
//
// Reasons: NODE_ALREADY_EXISTS (the node id is taken by other content).
func (m *Memory) Propose(ctx context.Context, memory Draft, options *ProposeOptions) (Proposed, error) {
	chosen := orDefault(options)
	proposal := &pb.CandidateProposal{NodeId: optional(chosen.NodeID), Memory: memory.toProto()}
	proposed, err := m.propose(ctx, []*pb.CandidateProposal{proposal}, chosen)
	return first(proposed, err)
}

// ProposeMany proposes up to 128 memories that commit together; one result each, in order.
func (m *Memory) ProposeMany(ctx context.Context, memories []Draft, options *ProposeOptions) ([]Proposed, error) {
	proposals := each(memories, func(memory Draft) *pb.CandidateProposal {
		return &pb.CandidateProposal{Memory: memory.toProto()}
	})
	return m.propose(ctx, proposals, orDefault(options))
}

func (m *Memory) propose(ctx context.Context, proposals []*pb.CandidateProposal, chosen ProposeOptions) ([]Proposed, error) {
	var response pb.ProposeCandidatesResponse
	err := m.call(ctx, &pb.ProposeCandidatesRequest{
		RequestId: chosen.RequestID,
		Proposals: proposals,
		Repropose: chosen.Repropose,
	}, &response)
	return proposedOf(&response), err
}

// ListCandidatesOptions narrows a list of candidates; all parts must hold.
type ListCandidatesOptions struct {
	Kinds               []NodeKind
	Labels              map[string]string
	IncludeSurroundings bool
	// PageSize is how many to read at once. Default: the server's.
	PageSize int32
}

// ListCandidates is the candidates of the namespace, in id order.
func (m *Memory) ListCandidates(options *ListCandidatesOptions) *Pages[Node] {
	chosen := orDefault(options)
	return &Pages[Node]{func(ctx context.Context, token string) (Page[Node], error) {
		var response pb.ListCandidatesResponse
		err := m.call(ctx, &pb.ListCandidatesRequest{
			Kinds:               toEnums[pb.NodeKind](chosen.Kinds),
			Labels:              chosen.Labels,
			IncludeSurroundings: chosen.IncludeSurroundings,
			PageSize:            chosen.PageSize,
			PageToken:           token,
		}, &response)
		return page(response.GetCandidates(), nodeOf, &response, response.GetNextPageToken()), err
	}}
}

// DecideOptions is what may be left out of Activate and Reject.
type DecideOptions struct {
	Evidence  []Evidence
	RequestID string
}

// Activate makes the candidate ACTIVE, at exactly the revision that the decider saw.
//
// Reasons: EVIDENCE_REQUIRED (no decision), NODE_NOT_FOUND, REVISION_CONFLICT, INVALID_TRANSITION (it is no
// candidate), NAMESPACE_TOO_LARGE.
func (m *Memory) Activate(
	ctx context.Context, candidate Citable, decision *Decision, options *DecideOptions,
) (Activated, error) {
	activated, err := first(m.ActivateMany(ctx, []Citable{candidate}, decision, options))
	if err == nil {
		err = activated.Err
	}
	return activated, err
}

// ActivateMany makes up to 128 candidates ACTIVE by one decision; one result each, in order, with the error of those
// that are refused.
func (m *Memory) ActivateMany(
	ctx context.Context, candidates []Citable, decision *Decision, options *DecideOptions,
) ([]Activated, error) {
	chosen := orDefault(options)
	var response pb.ActivateCandidatesResponse
	err := m.call(ctx, &pb.ActivateCandidatesRequest{
		RequestId: chosen.RequestID,
		Items:     each(candidates, toRevisionRef),
		Decision:  toDecision(decision),
		Evidence:  each(chosen.Evidence, toEvidence),
	}, &response)
	return activatedOf(&response), err
}

// Reject rejects the candidate: it becomes TOMBSTONED, and equal proposals stay rejected from then on.
//
// Reasons: EVIDENCE_REQUIRED (no decision), NODE_NOT_FOUND, REVISION_CONFLICT, INVALID_TRANSITION (it is no
// candidate).
func (m *Memory) Reject(ctx context.Context, candidate Citable, decision *Decision, options *DecideOptions) (Rejected, error) {
	rejected, err := first(m.RejectMany(ctx, []Citable{candidate}, decision, options))
	if err == nil {
		err = rejected.Err
	}
	return rejected, err
}

// RejectMany rejects up to 128 candidates by one decision; one result each, in order, with the error of those that
// are refused.
func (m *Memory) RejectMany(
	ctx context.Context, candidates []Citable, decision *Decision, options *DecideOptions,
) ([]Rejected, error) {
	chosen := orDefault(options)
	var response pb.RejectCandidatesResponse
	err := m.call(ctx, &pb.RejectCandidatesRequest{
		RequestId: chosen.RequestID,
		Items:     each(candidates, toRevisionRef),
		Decision:  toDecision(decision),
		Evidence:  each(chosen.Evidence, toEvidence),
	}, &response)
	return rejectedOf(&response), err
}

// first is the one result of a batch of one.
func first[T any](results []T, err error) (T, error) {
	if err == nil && len(results) != 1 {
		err = incomplete("%d results of a call with one item", len(results))
	}
	if err != nil {
		return *new(T), err
	}
	return results[0], nil
}
