package durablememory

import (
	"context"
	"iter"

	pb "durablememory.dev/go/durablememoryv1"
)

// SnapshotOptions is what may be left out of Snapshot.
type SnapshotOptions struct {
	// Statuses is which nodes. Default: the server's.
	Statuses []NodeStatus
	// AtNamespaceRevision is as of when. Default: now.
	AtNamespaceRevision *int64
	OmitContent         bool
}

// Snapshot is the complete view of a namespace at one revision. The fields are known once All has ended without an
// error; equal node state has an equal digest, in any store. It is for one goroutine.
type Snapshot struct {
	Namespace    Namespace
	ChangeToken  ChangeToken
	Statuses     []NodeStatus
	NodeCount    int64
	ContentBytes int64
	Digest       string

	memory  *Memory
	options SnapshotOptions
}

// Snapshot is the complete view of the namespace at one revision, node by node. It is read by ranging over All.
func (m *Memory) Snapshot(options *SnapshotOptions) *Snapshot {
	return &Snapshot{memory: m, options: orDefault(options)}
}

// All is the nodes, in id order. Only one that ends without an error was a snapshot: it is compared with what the
// service says that it sent, and fails with [ErrIncomplete].
//
// Reasons: SNAPSHOT_TOO_LARGE, REVISION_NOT_FOUND, HISTORY_COMPACTED.
func (s *Snapshot) All(ctx context.Context) iter.Seq2[Node, error] {
	request := &pb.SnapshotRequest{
		Statuses:            toEnums[pb.NodeStatus](s.options.Statuses),
		AtNamespaceRevision: s.options.AtNamespaceRevision,
		OmitContent:         s.options.OmitContent,
	}
	return func(yield func(Node, error) bool) {
		var header *pb.SnapshotHeader
		var footer *pb.SnapshotFooter
		var nodes, contentBytes int64
		for message, err := range s.memory.stream(ctx, request, 1) {
			if err != nil {
				yield(Node{}, err)
				return
			}
			if footer != nil {
				yield(Node{}, incomplete("the snapshot goes on after its footer"))
				return
			}
			switch part := message.(*pb.SnapshotResponse).GetMessage().(type) {
			case *pb.SnapshotResponse_Header:
				header = part.Header
			case *pb.SnapshotResponse_Node:
				nodes++
				contentBytes += int64(len(part.Node.GetContent()))
				if !yield(nodeOf(part.Node), nil) {
					return
				}
			case *pb.SnapshotResponse_Footer:
				footer = part.Footer
			}
		}
		if err := s.compare(header, footer, nodes, contentBytes); err != nil {
			yield(Node{}, err)
		}
	}
}

// Collect is all nodes at once, complete.
func (s *Snapshot) Collect(ctx context.Context) ([]Node, error) { return collected(s.All(ctx)) }

func (s *Snapshot) compare(header *pb.SnapshotHeader, footer *pb.SnapshotFooter, nodes, contentBytes int64) error {
	if header == nil || footer == nil {
		return incomplete("the snapshot ended before its footer")
	}
	if footer.GetNodeCount() != nodes {
		return incomplete("the snapshot has %d nodes, of which %d arrived", footer.GetNodeCount(), nodes)
	}
	if !s.options.OmitContent && footer.GetContentBytes() != contentBytes {
		return incomplete("the snapshot has %d bytes of content, of which %d arrived", footer.GetContentBytes(), contentBytes)
	}
	s.Namespace = namespaceOf(header.GetNamespace())
	s.ChangeToken = changeTokenOf(header.GetChangeToken())
	s.Statuses = fromEnums[NodeStatus](header.GetStatuses())
	s.NodeCount, s.ContentBytes, s.Digest = nodes, footer.GetContentBytes(), footer.GetDigest()
	return nil
}
