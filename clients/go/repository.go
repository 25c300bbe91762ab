package durablememory

import (
	"context"
	"time"

	pb "durablememory.dev/go/durablememoryv1"
)

// ChangeSetOptions is what may be left out of ApplyChangeSet.
type ChangeSetOptions struct {
	// OccurredAt is when it happened. Default: now.
	OccurredAt time.Time
	// ExpectedNamespaceRevision is what the namespace must be at; nil: not compared.
	ExpectedNamespaceRevision *int64
	// Note is for whoever reads the history later; no secrets, no copy of the content.
	Note      string
	RequestID string
}

// ApplyChangeSet applies 1..128 operations: all of them or none, once.
//
// Reasons: REVISION_CONFLICT, NODE_NOT_FOUND, NODE_ALREADY_EXISTS, NODE_FROZEN, CHANGE_SET_EMPTY, EVIDENCE_REQUIRED,
// INVALID_TRANSITION, RELATION_INVALID, NAMESPACE_TOO_LARGE.
func (m *Memory) ApplyChangeSet(ctx context.Context, operations []Operation, options *ChangeSetOptions) (ChangeSet, error) {
	chosen := orDefault(options)
	var response pb.ApplyChangeSetResponse
	err := m.call(ctx, &pb.ApplyChangeSetRequest{
		RequestId:                 chosen.RequestID,
		Operations:                each(operations, Operation.toProto),
		OccurredAt:                toTimestamp(chosen.OccurredAt),
		ExpectedNamespaceRevision: chosen.ExpectedNamespaceRevision,
		Note:                      chosen.Note,
	}, &response)
	if err != nil {
		return ChangeSet{}, err
	}
	return changeSetOf(response.GetChangeSet()), nil
}

// GetNodeOptions is what may be left out of GetNode.
type GetNodeOptions struct {
	// AtNamespaceRevision is as of when. Default: now.
	AtNamespaceRevision *int64
}

// GetNode reads a node as it is, or as it was at a namespace revision.
//
// Reasons: NODE_NOT_FOUND (also when it did not exist yet), REVISION_NOT_FOUND, HISTORY_COMPACTED.
func (m *Memory) GetNode(ctx context.Context, nodeID string, options *GetNodeOptions) (Node, error) {
	var response pb.GetNodeResponse
	request := &pb.GetNodeRequest{NodeId: nodeID, AtNamespaceRevision: orDefault(options).AtNamespaceRevision}
	if err := m.call(ctx, request, &response); err != nil {
		return Node{}, err
	}
	return nodeOf(response.GetNode()), nil
}

// GetNodesOptions is what may be left out of GetNodes.
type GetNodesOptions struct {
	// AtNamespaceRevision is as of when. Default: now.
	AtNamespaceRevision *int64
	OmitContent         bool
	IncludeSurroundings bool
}

// GetNodes reads up to 128 nodes at one namespace revision, by id; what does not exist is left out.
//
// Reasons: REVISION_NOT_FOUND, HISTORY_COMPACTED.
func (m *Memory) GetNodes(ctx context.Context, nodeIDs []string, options *GetNodesOptions) (map[string]Node, error) {
	chosen := orDefault(options)
	var response pb.BatchGetNodesResponse
	err := m.call(ctx, &pb.BatchGetNodesRequest{
		NodeIds:             nodeIDs,
		AtNamespaceRevision: chosen.AtNamespaceRevision,
		OmitContent:         chosen.OmitContent,
		IncludeSurroundings: chosen.IncludeSurroundings,
	}, &response)
	if err != nil {
		return nil, err
	}
	nodes := make(map[string]Node, len(response.GetNodes()))
	for _, node := range response.GetNodes() {
		nodes[node.GetId()] = nodeOf(node)
	}
	return nodes, nil
}

// ListNodesOptions narrows a list of nodes; all parts must hold.
type ListNodesOptions struct {
	Statuses []NodeStatus
	Kinds    []NodeKind
	Labels   map[string]string
	// AtNamespaceRevision is as of when. Default: now, the same for all pages.
	AtNamespaceRevision *int64
	OmitContent         bool
	IncludeSurroundings bool
	// PageSize is how many to read at once. Default: the server's.
	PageSize int32
}

// ListNodes is the nodes of the namespace in id order, all pages at one namespace revision.
func (m *Memory) ListNodes(options *ListNodesOptions) *Pages[Node] {
	chosen := orDefault(options)
	return &Pages[Node]{func(ctx context.Context, token string) (Page[Node], error) {
		var response pb.ListNodesResponse
		err := m.call(ctx, &pb.ListNodesRequest{
			Statuses:            toEnums[pb.NodeStatus](chosen.Statuses),
			Kinds:               toEnums[pb.NodeKind](chosen.Kinds),
			Labels:              chosen.Labels,
			AtNamespaceRevision: chosen.AtNamespaceRevision,
			OmitContent:         chosen.OmitContent,
			IncludeSurroundings: chosen.IncludeSurroundings,
			PageSize:            chosen.PageSize,
			PageToken:           token,
		}, &response)
		return page(response.GetNodes(), nodeOf, &response, response.GetNextPageToken()), err
	}}
}

// ListRevisionsOptions is what may be left out of ListRevisions.
type ListRevisionsOptions struct {
	OmitContent bool
	// PageSize is how many to read at once. Default: the server's.
	PageSize int32
}

// ListRevisions is the revisions of a node, oldest first. Reasons: NODE_NOT_FOUND.
func (m *Memory) ListRevisions(nodeID string, options *ListRevisionsOptions) *Pages[Node] {
	chosen := orDefault(options)
	return &Pages[Node]{func(ctx context.Context, token string) (Page[Node], error) {
		var response pb.ListRevisionsResponse
		err := m.call(ctx, &pb.ListRevisionsRequest{
			NodeId:      nodeID,
			OmitContent: chosen.OmitContent,
			PageSize:    chosen.PageSize,
			PageToken:   token,
		}, &response)
		return page(response.GetRevisions(), nodeOf, &response, response.GetNextPageToken()), err
	}}
}

// GetRevision reads one exact revision of a node, however old. [Memory.Get] reads what a citation names, and also says
// what has become of it.
//
// Reasons: NODE_NOT_FOUND, REVISION_NOT_FOUND, CONTENT_ERASED.
func (m *Memory) GetRevision(ctx context.Context, revision NodeRevision) (Node, error) {
	var response pb.GetRevisionResponse
	request := &pb.GetRevisionRequest{Target: &pb.GetRevisionRequest_NodeRevision{NodeRevision: revision.toProto()}}
	if err := m.call(ctx, request, &response); err != nil {
		return Node{}, err
	}
	return nodeOf(response.GetNode()), nil
}

// ListChangeSetsOptions is what may be left out of ListChangeSets.
type ListChangeSetsOptions struct {
	// AfterNamespaceRevision is where to begin. Default: at the first.
	AfterNamespaceRevision int64
	// PageSize is how many to read at once. Default: the server's.
	PageSize int32
}

// ListChangeSets is the change sets after a namespace revision, oldest first. Reasons: HISTORY_COMPACTED.
func (m *Memory) ListChangeSets(options *ListChangeSetsOptions) *Pages[ChangeSet] {
	chosen := orDefault(options)
	return &Pages[ChangeSet]{func(ctx context.Context, token string) (Page[ChangeSet], error) {
		var response pb.ListChangeSetsResponse
		err := m.call(ctx, &pb.ListChangeSetsRequest{
			AfterNamespaceRevision: chosen.AfterNamespaceRevision,
			PageSize:               chosen.PageSize,
			PageToken:              token,
		}, &response)
		return page(response.GetChangeSets(), changeSetOf, &response, response.GetNextPageToken()), err
	}}
}

// GetChangeSet reads the change set that made a namespace revision.
//
// Reasons: REVISION_NOT_FOUND, HISTORY_COMPACTED.
func (m *Memory) GetChangeSet(ctx context.Context, namespaceRevision int64) (ChangeSet, error) {
	return m.changeSet(ctx, &pb.GetChangeSetRequest{
		Selector: &pb.GetChangeSetRequest_NamespaceRevision{NamespaceRevision: namespaceRevision},
	})
}

// GetChangeSetOf reads the change set that a request made, by its bare method, such as Remember, and its request id.
//
// Reasons: REVISION_NOT_FOUND, HISTORY_COMPACTED.
func (m *Memory) GetChangeSetOf(ctx context.Context, method, requestID string) (ChangeSet, error) {
	return m.changeSet(ctx, &pb.GetChangeSetRequest{
		Selector: &pb.GetChangeSetRequest_Key{Key: &pb.ChangeSetKey{Method: method, IdempotencyKey: requestID}},
	})
}

func (m *Memory) changeSet(ctx context.Context, request *pb.GetChangeSetRequest) (ChangeSet, error) {
	var response pb.GetChangeSetResponse
	if err := m.call(ctx, request, &response); err != nil {
		return ChangeSet{}, err
	}
	return changeSetOf(response.GetChangeSet()), nil
}

// GetChangeToken is where the namespace stands.
func (m *Memory) GetChangeToken(ctx context.Context) (ChangeToken, error) {
	var response pb.GetChangeTokenResponse
	if err := m.call(ctx, &pb.GetChangeTokenRequest{}, &response); err != nil {
		return ChangeToken{}, err
	}
	return changeTokenOf(response.GetChangeToken()), nil
}
