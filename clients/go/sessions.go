package durablememory

import (
	"cmp"
	"context"

	pb "durablememory.dev/go/durablememoryv1"
)

// OpenSessionOptions is what may be left out of OpenSession.
type OpenSessionOptions struct {
	// Policy is how to recall; what is left out takes the server's defaults, once, here.
	Policy Policy
	// OnUnavailable holds for everything that recalls in the session. With EmptyWhenUnavailable, a service out of reach
	// does not fail this call: the session is opened by the first recall that reaches it.
	OnUnavailable OnUnavailable
	RequestID     string
}

// OpenSession opens a session, or gets the open one with this id if it was opened by an equal call. An empty id mints a
// new one.
//
// Reasons: BINDING_DRIFT (the id is open, by another request), SESSION_CLOSED, SEMANTIC_UNAVAILABLE.
func (m *Memory) OpenSession(ctx context.Context, sessionID string, options *OpenSessionOptions) (*Session, error) {
	chosen := orDefault(options)
	session := m.session(cmp.Or(sessionID, newID()), chosen.OnUnavailable)
	// Whoever opens it later, after an outage, repeats this very request.
	session.opening = &pb.OpenSessionRequest{
		RequestId: cmp.Or(chosen.RequestID, newID()),
		SessionId: &session.id,
		Policy:    chosen.Policy.toProto(),
	}
	_, err := m.calls.guarded(ctx, chosen.OnUnavailable, func(ctx context.Context, most int) error {
		_, err := session.ensureOpen(ctx, most)
		return err
	})
	if err != nil {
		return nil, err
	}
	return session, nil
}

// ResumeSessionOptions is what may be left out of ResumeSession and ResumeSessionAs.
type ResumeSessionOptions struct {
	// OnUnavailable holds for everything that recalls in the session.
	OnUnavailable OnUnavailable
}

// ResumeSession gets an open session, if it is bound to exactly what has this digest (SessionInfo.BindingDigest).
//
// Reasons: SESSION_NOT_FOUND, SESSION_CLOSED, BINDING_DRIFT, SEMANTIC_UNAVAILABLE.
func (m *Memory) ResumeSession(
	ctx context.Context, sessionID, bindingDigest string, options *ResumeSessionOptions,
) (*Session, error) {
	return m.resume(ctx, &pb.ResumeSessionRequest{
		SessionId: sessionID,
		Expected:  &pb.ResumeSessionRequest_BindingDigest{BindingDigest: bindingDigest},
	}, options)
}

// ResumeSessionAs gets an open session, if this is what it is bound to. The reasons are those of ResumeSession;
// BINDING_DRIFT names the fields that differ.
func (m *Memory) ResumeSessionAs(
	ctx context.Context, sessionID string, binding SessionBinding, options *ResumeSessionOptions,
) (*Session, error) {
	return m.resume(ctx, &pb.ResumeSessionRequest{
		SessionId: sessionID,
		Expected:  &pb.ResumeSessionRequest_Binding{Binding: binding.toProto()},
	}, options)
}

func (m *Memory) resume(ctx context.Context, request *pb.ResumeSessionRequest, options *ResumeSessionOptions) (*Session, error) {
	var response pb.ResumeSessionResponse
	if err := m.call(ctx, request, &response); err != nil {
		return nil, err
	}
	session := m.session(request.GetSessionId(), orDefault(options).OnUnavailable)
	session.info = new(sessionInfoOf(response.GetSession()))
	return session, nil
}

func (m *Memory) session(id string, choice OnUnavailable) *Session {
	return &Session{memory: m, id: id, onUnavailable: choice.or(m.calls.onUnavailable), gate: newGate()}
}

// GetSession reads a session, open or closed. Reasons: SESSION_NOT_FOUND.
func (m *Memory) GetSession(ctx context.Context, sessionID string) (SessionInfo, error) {
	var response pb.GetSessionResponse
	if err := m.call(ctx, &pb.GetSessionRequest{SessionId: sessionID}, &response); err != nil {
		return SessionInfo{}, err
	}
	return sessionInfoOf(response.GetSession()), nil
}

// ListOptions is what may be left out of a listing without filters.
type ListOptions struct {
	// PageSize is how many to read at once. Default: the server's.
	PageSize int32
}

// ListSessions is all sessions of the namespace, in id order.
func (m *Memory) ListSessions(options *ListOptions) *Pages[SessionInfo] {
	chosen := orDefault(options)
	return &Pages[SessionInfo]{func(ctx context.Context, token string) (Page[SessionInfo], error) {
		var response pb.ListSessionsResponse
		err := m.call(ctx, &pb.ListSessionsRequest{PageSize: chosen.PageSize, PageToken: token}, &response)
		return page(response.GetSessions(), sessionInfoOf, &response, response.GetNextPageToken()), err
	}}
}

// CloseSessionOptions is what may be left out of CloseSession.
type CloseSessionOptions struct {
	RequestID string
}

// CloseSession closes a session for ever: calls in it and its runs are refused from then on. To merely stop using it, do
// nothing. Closing a closed one is no error.
//
// Reasons: SESSION_NOT_FOUND.
func (m *Memory) CloseSession(ctx context.Context, sessionID string, options *CloseSessionOptions) (SessionInfo, error) {
	var response pb.CloseSessionResponse
	request := &pb.CloseSessionRequest{SessionId: sessionID, RequestId: orDefault(options).RequestID}
	if err := m.call(ctx, request, &response); err != nil {
		return SessionInfo{}, err
	}
	return sessionInfoOf(response.GetSession()), nil
}
