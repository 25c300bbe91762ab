package durablememory

import (
	"time"

	pb "durablememory.dev/go/durablememoryv1"
)

// AdmissionOutcome is what happened to one memory that was to enter a model's input.
type AdmissionOutcome struct {
	NodeRevision NodeRevision
	Verdict      AdmissionVerdict
	Citation     Citation // the zero value if it was refused
	EventID      string
	// Err is the [*Error] that says why it was refused, and must leave the input.
	Err error
}

// Admitted tells whether it may stay.
func (o AdmissionOutcome) Admitted() bool { return o.Verdict == AdmissionVerdictAdmitted }

func admissionOutcomeOf(message *pb.AdmissionOutcome) AdmissionOutcome {
	return AdmissionOutcome{
		NodeRevision: nodeRevisionOf(message.GetNodeRevision()),
		Verdict:      fromEnum[AdmissionVerdict](message.GetVerdict()),
		Citation:     citationOf(message.GetCitation()),
		EventID:      message.GetEventId(),
		Err:          itemError(message.GetError()),
	}
}

// Admission is what may stay in a model's input and what must leave it.
type Admission struct {
	// Hits may stay, in the order given.
	Hits []Hit
	// Outcomes has one outcome for each hit that was given, in order.
	Outcomes []AdmissionOutcome
	// ContextID is the assembly that they were admitted to; empty for several runs.
	ContextID   string
	ChangeToken ChangeToken
	// Err is why nothing may stay: the service could not answer, and the caller chose to go on without.
	Err error
}

// Unavailable tells whether nothing was admitted, because the service could not answer.
func (a Admission) Unavailable() bool { return a.Err != nil }

// Refused is what must leave the input.
func (a Admission) Refused() []AdmissionOutcome {
	var refused []AdmissionOutcome
	for _, outcome := range a.Outcomes {
		if !outcome.Admitted() {
			refused = append(refused, outcome)
		}
	}
	return refused
}

// UseOutcome is what happened to one use that was to be recorded.
type UseOutcome struct {
	Verdict  UseVerdict
	Citation Citation // the zero value if it was refused
	EventID  string
	// Err is the [*Error] that says why it was refused.
	Err error
}

// Recorded tells whether it is on record.
func (o UseOutcome) Recorded() bool { return o.Verdict == UseVerdictRecorded }

func useOutcomeOf(message *pb.UseOutcome) UseOutcome {
	return UseOutcome{
		Verdict:  fromEnum[UseVerdict](message.GetVerdict()),
		Citation: citationOf(message.GetCitation()),
		EventID:  message.GetEventId(),
		Err:      itemError(message.GetError()),
	}
}

// UsageSummary is how often one node revision entered a model's input, and how often it was used. The times are zero
// where it never did.
type UsageSummary struct {
	NodeRevision   NodeRevision
	AdmissionCount int64
	UseCount       int64
	LastAdmittedAt time.Time
	LastUsedAt     time.Time
}

func usageSummaryOf(message *pb.UsageSummary) UsageSummary {
	return UsageSummary{
		NodeRevision:   nodeRevisionOf(message.GetNodeRevision()),
		AdmissionCount: message.GetAdmissionCount(),
		UseCount:       message.GetUseCount(),
		LastAdmittedAt: fromTimestamp(message.GetLastAdmittedAt()),
		LastUsedAt:     fromTimestamp(message.GetLastUsedAt()),
	}
}
