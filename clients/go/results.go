package durablememory

import pb "durablememory.dev/go/durablememoryv1"

// Proposed is what became of a proposal: the new candidate, or the equal memory that is known.
type Proposed struct {
	Outcome     ProposalOutcome
	Citation    Citation
	ChangeToken ChangeToken
}

// Cited is the candidate, or the equal memory.
func (p Proposed) Cited() Citation { return p.Citation }

func proposedOf(response *pb.ProposeCandidatesResponse) []Proposed {
	token := changeTokenOf(response.GetChangeToken())
	return each(response.GetResults(), func(result *pb.ProposalResult) Proposed {
		return Proposed{fromEnum[ProposalOutcome](result.GetOutcome()), citationOf(result.GetCitation()), token}
	})
}

// Activated is what became of a candidate that was to be activated.
type Activated struct {
	Outcome ActivationOutcome
	// Citation is the revision that is ACTIVE now; the zero value if it was refused.
	Citation Citation
	// Err is the [*Error] that says why it was refused, nil if it was not.
	Err         error
	ChangeToken ChangeToken
}

// Cited is the revision that is ACTIVE now.
func (a Activated) Cited() Citation { return a.Citation }

func activatedOf(response *pb.ActivateCandidatesResponse) []Activated {
	token := changeTokenOf(response.GetChangeToken())
	return each(response.GetResults(), func(result *pb.ActivationResult) Activated {
		return Activated{
			Outcome:     fromEnum[ActivationOutcome](result.GetOutcome()),
			Citation:    citationOf(result.GetCitation()),
			Err:         itemError(result.GetError()),
			ChangeToken: token,
		}
	})
}

// Rejected is what became of a candidate that was to be rejected.
type Rejected struct {
	Outcome RejectionOutcome
	// Citation is the TOMBSTONED revision; the zero value if it was refused.
	Citation Citation
	// Err is the [*Error] that says why it was refused, nil if it was not.
	Err         error
	ChangeToken ChangeToken
}

// Cited is the TOMBSTONED revision.
func (r Rejected) Cited() Citation { return r.Citation }

func rejectedOf(response *pb.RejectCandidatesResponse) []Rejected {
	token := changeTokenOf(response.GetChangeToken())
	return each(response.GetResults(), func(result *pb.RejectionResult) Rejected {
		return Rejected{
			Outcome:     fromEnum[RejectionOutcome](result.GetOutcome()),
			Citation:    citationOf(result.GetCitation()),
			Err:         itemError(result.GetError()),
			ChangeToken: token,
		}
	})
}

// Remembered is the new memory, or the equal one that was ACTIVE already.
type Remembered struct {
	Outcome     RememberOutcome
	Citation    Citation
	ChangeToken ChangeToken
}

// Cited is the memory.
func (r Remembered) Cited() Citation { return r.Citation }

// Put is the memory as it is now, and what that took.
type Put struct {
	Outcome     PutMemoryOutcome
	Citation    Citation
	ChangeToken ChangeToken
}

// Cited is the memory.
func (p Put) Cited() Citation { return p.Citation }

// Revised is the new revision.
type Revised struct {
	Citation    Citation
	ChangeToken ChangeToken
}

// Cited is the new revision.
func (r Revised) Cited() Citation { return r.Citation }

// Retired is the ARCHIVED revision.
type Retired struct {
	Citation    Citation
	ChangeToken ChangeToken
}

// Cited is the ARCHIVED revision.
func (r Retired) Cited() Citation { return r.Citation }

// Reactivated is the ACTIVE revision, and whether the memory had to be brought back.
type Reactivated struct {
	Outcome     ReactivateMemoryOutcome
	Citation    Citation
	ChangeToken ChangeToken
}

// Cited is the ACTIVE revision.
func (r Reactivated) Cited() Citation { return r.Citation }

// Superseded is the new, ACTIVE memory, and the SUPERSEDED revision of the old one.
type Superseded struct {
	Citation           Citation
	SupersededCitation Citation
	ChangeToken        ChangeToken
}

// Cited is the new memory.
func (s Superseded) Cited() Citation { return s.Citation }
