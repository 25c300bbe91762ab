package durablememory

import (
	"cmp"
	"context"
	"errors"
	"sync"

	pb "durablememory.dev/go/durablememoryv1"
)

// Run is one invocation of an agent, to which admissions and uses belong. It keeps track of context ids: each admission
// is one assembly of a model's input. Goroutines may share it.
type Run struct {
	session        *Session
	id             string
	beginRequestID string
	values         context.Context // what BeginRun's context carries, without its end: for Close
	gate           gate            // of beginning, and of one assembly after the other

	mutex      sync.Mutex
	info       *RunInfo
	outcome    BeginRunOutcome
	contextID  string
	admittedIn map[NodeRevision]string
}

// ID is the run id.
func (r *Run) ID() string { return r.id }

// Session is the session of the run.
func (r *Run) Session() *Session { return r.session }

// Namespace is the namespace of the run's session.
func (r *Run) Namespace() Namespace { return r.session.Namespace() }

// Info is the run as the service had it last, and false while an outage has kept it from beginning.
func (r *Run) Info() (RunInfo, bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return orDefault(r.info), r.info != nil
}

// Outcome is whether an incarnation of another process was ended for it; empty until it has begun.
func (r *Run) Outcome() BeginRunOutcome {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.outcome
}

// ContextID is what the next admission is recorded under. It changes with every admission, and is empty until the run
// has begun.
func (r *Run) ContextID() string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.contextID
}

// Evidence is evidence for what was said in this turn, to propose memories with.
func (r *Run) Evidence(body string) Evidence { return SessionTurn(r.session.id, r.id, body) }

func (r *Run) ensureBegun(ctx context.Context, most int) (RunInfo, error) {
	if info, begun := r.Info(); begun { // and does not wait for somebody else's assembly
		return info, nil
	}
	if err := r.gate.enter(ctx); err != nil {
		return RunInfo{}, err
	}
	defer r.gate.leave()
	if info, begun := r.Info(); begun {
		return info, nil
	}
	session, err := r.session.ensureOpen(ctx, most)
	if err != nil {
		return RunInfo{}, err
	}
	var response pb.BeginRunResponse
	err = r.calls().unary(ctx, session.Binding.Namespace, &pb.BeginRunRequest{
		RequestId:    r.beginRequestID,
		SessionId:    session.SessionID,
		RunId:        &r.id,
		HostInstance: hostInstance(),
	}, &response, most)
	if err != nil {
		return RunInfo{}, err
	}
	info := runInfoOf(response.GetRun())
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.info, r.contextID, r.outcome = &info, info.ContextID, fromEnum[BeginRunOutcome](response.GetOutcome())
	return info, nil
}

func (r *Run) calls() *calls { return r.session.memory.calls }

// End ends the run: this incarnation of it, never one that another process began. It does nothing for a run that has
// not begun.
func (r *Run) End(ctx context.Context) (RunInfo, error) { return r.end(ctx, asTheyTake) }

// Close ends the run unless it has ended, also where the context that it began with has. It takes at most two seconds.
// Its error may be ignored: the service ends an idle run by itself.
func (r *Run) Close() error {
	if info, begun := r.Info(); !begun || !info.EndedAt.IsZero() {
		return nil
	}
	ctx, cancel := context.WithTimeout(r.values, r.calls().patience)
	defer cancel()
	_, err := r.end(ctx, patienceAttempts)
	return err
}

func (r *Run) end(ctx context.Context, most int) (RunInfo, error) {
	info, begun := r.Info()
	if !begun {
		return RunInfo{}, nil
	}
	var response pb.EndRunResponse
	err := r.calls().unary(ctx, r.Namespace(), &pb.EndRunRequest{
		SessionId:   info.SessionID,
		RunId:       info.RunID,
		Incarnation: info.Incarnation,
	}, &response, most)
	if err != nil {
		return RunInfo{}, err
	}
	ended := runInfoOf(response.GetRun())
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.info = &ended
	return ended, nil
}

// Recall is the ACTIVE memories that fit a query, best first. Nothing is recorded: Admit what you use before the model
// sees it.
//
// Reasons: SESSION_CLOSED, RUN_ENDED, SEMANTIC_UNAVAILABLE, NAMESPACE_TOO_LARGE.
func (r *Run) Recall(ctx context.Context, query string, options *RecallOptions) (Recall, error) {
	chosen := orDefault(options)
	return r.session.recallOrEmpty(ctx, chosen.OnUnavailable, func(ctx context.Context, most int) (Recall, error) {
		if _, err := r.ensureBegun(ctx, most); err != nil {
			return Recall{}, err
		}
		request := chosen.request(r.session.id, query)
		request.ContextId = new(r.ContextID())
		var response pb.ActiveRecallResponse
		err := r.calls().unary(ctx, r.Namespace(), request, &response, most)
		return recallOf(r.Namespace(), response.GetChangeToken(), response.GetResult()), err
	})
}

// RecallAndAdmit is Recall, and what is found is recorded as entering the model's input, in the same call. Only what
// was admitted is among the hits.
func (r *Run) RecallAndAdmit(ctx context.Context, query string, options *RecallOptions) (Recall, error) {
	chosen := orDefault(options)
	return r.session.recallOrEmpty(ctx, chosen.OnUnavailable, func(ctx context.Context, most int) (Recall, error) {
		var found Recall
		err := r.assembling(ctx, most, func(contextID string) (string, []AdmissionOutcome, error) {
			request := chosen.request(r.session.id, query)
			request.RequestId, request.Admit, request.ContextId = chosen.RequestID, true, &contextID
			var response pb.ActiveRecallResponse
			if err := r.calls().unary(ctx, r.Namespace(), request, &response, most); err != nil {
				return "", nil, err
			}
			found = recallOf(r.Namespace(), response.GetChangeToken(), response.GetResult())
			found.Admissions, found.ContextID = each(response.GetAdmissions(), admissionOutcomeOf), contextID
			return response.GetNextContextId(), found.Admissions, nil
		})
		return found, err
	})
}

// AdmitOptions is what may be left out of Admit and AdmitAll.
type AdmitOptions struct {
	// OnUnavailable replaces what the session and the client say. With EmptyWhenUnavailable, nothing is admitted in an
	// outage.
	OnUnavailable OnUnavailable
	// RequestID identifies the admission in one run.
	RequestID string
}

// Admit records that these hits enter the model's input; the hits of the answer are those that may. Only what is still
// the current ACTIVE revision is admitted; what is refused must leave the input. No hits: no call.
//
// Reasons: SESSION_CLOSED, RUN_ENDED.
func (r *Run) Admit(ctx context.Context, hits []Hit, options *AdmitOptions) (Admission, error) {
	if len(hits) == 0 {
		return Admission{}, nil
	}
	chosen := orDefault(options)
	var admission Admission
	choice := chosen.OnUnavailable.or(r.session.onUnavailable)
	outage, err := r.calls().guarded(ctx, choice, func(ctx context.Context, most int) error {
		return r.assembling(ctx, most, func(contextID string) (string, []AdmissionOutcome, error) {
			var response pb.AdmitMemoriesResponse
			err := r.calls().unary(ctx, r.Namespace(), &pb.AdmitMemoriesRequest{
				RequestId: chosen.RequestID,
				SessionId: r.session.id,
				ContextId: contextID,
				Items: each(hits, func(hit Hit) *pb.AdmissionItem {
					return &pb.AdmissionItem{NodeRevision: toRevisionRef(hit)}
				}),
			}, &response, most)
			if err != nil {
				return "", nil, err
			}
			outcomes := each(response.GetOutcomes(), admissionOutcomeOf)
			if len(outcomes) != len(hits) {
				return "", nil, incomplete("%d outcomes of %d hits", len(outcomes), len(hits))
			}
			token := changeTokenOf(response.GetChangeToken())
			admission = Admission{Hits: admitted(hits, outcomes), Outcomes: outcomes, ContextID: contextID, ChangeToken: token}
			return response.GetNextContextId(), outcomes, nil
		})
	})
	switch {
	case err != nil:
		return Admission{}, err
	case outage != nil:
		return Admission{Err: outage}, nil
	default:
		return admission, nil
	}
}

func admitted(hits []Hit, outcomes []AdmissionOutcome) []Hit {
	var may []Hit
	for i, outcome := range outcomes {
		if outcome.Admitted() {
			may = append(may, hits[i])
		}
	}
	return may
}

// assembling does one assembly after the other: each has the context id that the one before it returned.
func (r *Run) assembling(
	ctx context.Context, most int, assemble func(contextID string) (next string, outcomes []AdmissionOutcome, err error),
) error {
	if _, err := r.ensureBegun(ctx, most); err != nil {
		return err
	}
	if err := r.gate.enter(ctx); err != nil {
		return err
	}
	defer r.gate.leave()
	contextID := r.ContextID()
	next, outcomes, err := assemble(contextID)
	if err != nil {
		return err
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, outcome := range outcomes {
		if outcome.Admitted() {
			r.admittedIn[outcome.NodeRevision] = contextID
		}
	}
	r.contextID = next
	return nil
}

// RecordUseOptions is what may be left out of RecordUse and RecordUseOf.
type RecordUseOptions struct {
	// RequestID is for memories of one assembly: those of several take several calls, which cannot share it.
	RequestID string
}

// RecordUse records that the answer cited these memories, or that the agent acted on them; one outcome each, in order.
// Each use is recorded under the assembly that the memory was admitted to in this run, so a repetition counts once.
// Memories of several assemblies take one call each. Nothing used: no call.
//
// Reasons: SESSION_CLOSED.
func (r *Run) RecordUse(ctx context.Context, used []Hit, options *RecordUseOptions) ([]UseOutcome, error) {
	return r.RecordUseOf(ctx, Citables(used), options)
}

// RecordUseOf is RecordUse for whatever has a citation.
func (r *Run) RecordUseOf(ctx context.Context, used []Citable, options *RecordUseOptions) ([]UseOutcome, error) {
	if len(used) == 0 {
		return nil, nil
	}
	ctx, cancel := withinACall(ctx)
	defer cancel()
	if _, err := r.ensureBegun(ctx, asTheyTake); err != nil {
		return nil, err
	}
	requestID := orDefault(options).RequestID
	assemblies := r.byAssembly(used)
	if requestID != "" && len(assemblies) > 1 {
		return nil, errors.New("durablememory: memories of several assemblies take several calls, which cannot share a request id")
	}
	outcomes := make([]UseOutcome, len(used))
	for done, assembly := range assemblies {
		var response pb.RecordUseResponse
		err := r.calls().unary(ctx, r.Namespace(), &pb.RecordUseRequest{
			RequestId: requestID,
			SessionId: r.session.id,
			ContextId: assembly.contextID,
			Items: each(assembly.places, func(place int) *pb.UseEvent {
				return &pb.UseEvent{Target: &pb.UseEvent_Citation{Citation: toCitation(used[place])}}
			}),
		}, &response, asTheyTake)
		if err != nil {
			return nil, ofSeveral(err, done > 0)
		}
		if len(response.GetOutcomes()) != len(assembly.places) {
			return nil, incomplete("%d outcomes of %d uses", len(response.GetOutcomes()), len(assembly.places))
		}
		for i, place := range assembly.places {
			outcomes[place] = useOutcomeOf(response.GetOutcomes()[i])
		}
	}
	return outcomes, nil
}

// assembly is which of some memories were admitted under a context id.
type assembly struct {
	contextID string
	places    []int
}

// byAssembly sorts memories by where they were admitted; what was not counts for the next assembly.
func (r *Run) byAssembly(used []Citable) []assembly {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var assemblies []assembly
	index := map[string]int{}
	for place, cited := range used {
		contextID := cmp.Or(r.admittedIn[cited.Cited().revision()], r.contextID)
		at, known := index[contextID]
		if !known {
			at = len(assemblies)
			index[contextID] = at
			assemblies = append(assemblies, assembly{contextID: contextID})
		}
		assemblies[at].places = append(assemblies[at].places, place)
	}
	return assemblies
}
