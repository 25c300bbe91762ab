package durablememory

import (
	"cmp"
	"context"
	"sync"

	pb "durablememory.dev/go/durablememoryv1"
)

// Session is a binding of the caller to one namespace and one recall policy. It outlives this value and this process,
// and need not be closed. Goroutines may share it.
type Session struct {
	memory        *Memory
	id            string
	onUnavailable OnUnavailable
	opening       *pb.OpenSessionRequest
	gate          gate // of opening it

	mutex   sync.Mutex
	info    *SessionInfo
	outcome OpenSessionOutcome
}

// ID is the session id.
func (s *Session) ID() string { return s.id }

// Info is the session as the service has it, and false while an outage has kept it from being opened.
func (s *Session) Info() (SessionInfo, bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return orDefault(s.info), s.info != nil
}

// Outcome is whether opening it made a new one; empty for a resumed session, and until it is open.
func (s *Session) Outcome() OpenSessionOutcome {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.outcome
}

// Namespace is the namespace that it is bound to; while it is not open, as far as that was stated.
func (s *Session) Namespace() Namespace {
	if info, open := s.Info(); open {
		return info.Binding.Namespace
	}
	return s.memory.namespace
}

func (s *Session) ensureOpen(ctx context.Context, most int) (SessionInfo, error) {
	if info, open := s.Info(); open {
		return info, nil
	}
	if err := s.gate.enter(ctx); err != nil {
		return SessionInfo{}, err
	}
	defer s.gate.leave()
	if info, open := s.Info(); open {
		return info, nil
	}
	var response pb.OpenSessionResponse
	if err := s.memory.calls.unary(ctx, s.memory.namespace, s.opening, &response, most); err != nil {
		return SessionInfo{}, err
	}
	return s.settle(response.GetSession(), fromEnum[OpenSessionOutcome](response.GetOutcome())), nil
}

func (s *Session) settle(message *pb.Session, outcome OpenSessionOutcome) SessionInfo {
	info := sessionInfoOf(message)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.info, s.outcome = &info, cmp.Or(outcome, s.outcome)
	return info
}

// RecallOptions is what may be left out of a recall.
type RecallOptions struct {
	Filter *RecallFilter
	// Mode replaces the session's.
	Mode                RecallMode
	IncludeSurroundings bool
	// OnUnavailable replaces what the session and the client say.
	OnUnavailable OnUnavailable
	// RequestID identifies a recall that admits; the others change nothing.
	RequestID string
}

func (o RecallOptions) request(sessionID, query string) *pb.ActiveRecallRequest {
	return &pb.ActiveRecallRequest{
		SessionId:           sessionID,
		Query:               query,
		Filter:              stated(o.Filter, RecallFilter.toProto),
		Mode:                toOptionalEnum[pb.RecallMode](o.Mode),
		IncludeSurroundings: o.IncludeSurroundings,
	}
}

// Recall recalls outside a run: nothing is recorded, and so nothing of it may enter a model's input.
//
// Reasons: SESSION_CLOSED, SEMANTIC_UNAVAILABLE, NAMESPACE_TOO_LARGE.
func (s *Session) Recall(ctx context.Context, query string, options *RecallOptions) (Recall, error) {
	chosen := orDefault(options)
	return s.recallOrEmpty(ctx, chosen.OnUnavailable, func(ctx context.Context, most int) (Recall, error) {
		info, err := s.ensureOpen(ctx, most)
		if err != nil {
			return Recall{}, err
		}
		var response pb.ActiveRecallResponse
		err = s.memory.calls.unary(ctx, info.Binding.Namespace, chosen.request(s.id, query), &response, most)
		return recallOf(info.Binding.Namespace, response.GetChangeToken(), response.GetResult()), err
	})
}

// recallOrEmpty does a recall, and answers an outage with an empty one where the caller chose so.
func (s *Session) recallOrEmpty(
	ctx context.Context, choice OnUnavailable, work func(ctx context.Context, most int) (Recall, error),
) (Recall, error) {
	var found Recall
	outage, err := s.memory.calls.guarded(ctx, choice.or(s.onUnavailable), func(ctx context.Context, most int) (err error) {
		found, err = work(ctx, most)
		return err
	})
	switch {
	case err != nil:
		return Recall{}, err
	case outage != nil:
		return Recall{Namespace: s.Namespace(), Err: outage}, nil
	default:
		return found, nil
	}
}

// ExplainOptions is what may be left out of Explain.
type ExplainOptions struct {
	Filter *RecallFilter
	// Mode replaces the session's.
	Mode RecallMode
}

// Explain says why a node is, or is not, among the hits of a recall in this session. Reasons: NODE_NOT_FOUND.
func (s *Session) Explain(ctx context.Context, nodeID, query string, options *ExplainOptions) (Explanation, error) {
	chosen := orDefault(options)
	ctx, cancel := withinACall(ctx)
	defer cancel()
	info, err := s.ensureOpen(ctx, asTheyTake)
	if err != nil {
		return Explanation{}, err
	}
	var response pb.ExplainRecallResponse
	err = s.memory.calls.unary(ctx, info.Binding.Namespace, &pb.ExplainRecallRequest{
		SessionId: s.id,
		NodeId:    nodeID,
		Query:     query,
		Filter:    stated(chosen.Filter, RecallFilter.toProto),
		Mode:      toOptionalEnum[pb.RecallMode](chosen.Mode),
	}, &response, asTheyTake)
	if err != nil {
		return Explanation{}, err
	}
	return explanationOf(&response), nil
}

// RebindOptions is what may be left out of Rebind.
type RebindOptions struct {
	// ExpectedBindingDigest is what it must be bound to. Default: what this value says.
	ExpectedBindingDigest string
	RequestID             string
}

// Rebind binds the session to another policy. What is left out takes the server's default, not the old value.
//
// Reasons: BINDING_DRIFT, if it is no longer bound to what is expected.
func (s *Session) Rebind(ctx context.Context, policy Policy, options *RebindOptions) (SessionInfo, error) {
	chosen := orDefault(options)
	ctx, cancel := withinACall(ctx)
	defer cancel()
	info, err := s.ensureOpen(ctx, asTheyTake)
	if err != nil {
		return SessionInfo{}, err
	}
	var response pb.RebindSessionResponse
	err = s.memory.calls.unary(ctx, info.Binding.Namespace, &pb.RebindSessionRequest{
		RequestId:             chosen.RequestID,
		SessionId:             s.id,
		ExpectedBindingDigest: cmp.Or(chosen.ExpectedBindingDigest, info.BindingDigest),
		Policy:                policy.toProto(),
	}, &response, asTheyTake)
	if err != nil {
		return SessionInfo{}, err
	}
	return s.settle(response.GetSession(), ""), nil
}

// BeginRunOptions is what may be left out of BeginRun.
type BeginRunOptions struct {
	// RequestID identifies the beginning of a run that is named: with it, this process can repeat one whose outcome it
	// did not learn.
	RequestID string
}

// BeginRun begins a run: one turn, task or process of an agent. Close it.
//
//	run, err := session.BeginRun(ctx, "turn-7", nil)
//	if err != nil {
//		return err
//	}
//	defer run.Close()
//
// A run id that another process left open is taken over; an empty one mints a new one. With EmptyWhenUnavailable, a
// service out of reach does not fail this call: the run is begun by the first call that reaches it.
//
// Reasons: RUN_IDENTITY_CONFLICT, if this process has a run with this id open already; SESSION_CLOSED.
func (s *Session) BeginRun(ctx context.Context, runID string, options *BeginRunOptions) (*Run, error) {
	run := &Run{
		session:        s,
		id:             cmp.Or(runID, newID()), // minted here, so that evidence can name it even in an outage
		beginRequestID: cmp.Or(orDefault(options).RequestID, newID()),
		values:         context.WithoutCancel(ctx),
		gate:           newGate(),
		admittedIn:     map[NodeRevision]string{},
	}
	_, err := s.memory.calls.guarded(ctx, s.onUnavailable, func(ctx context.Context, most int) error {
		_, err := run.ensureBegun(ctx, most)
		return err
	})
	if err != nil {
		return nil, err
	}
	return run, nil
}
