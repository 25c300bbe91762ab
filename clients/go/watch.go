package durablememory

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	pb "durablememory.dev/go/durablememoryv1"
)

// WatchOptions is what may be left out of Watch.
type WatchOptions struct {
	// After is where to start: a change token, which also makes sure that it is still the same history; without a
	// history id, just the namespace revision. Default: now.
	After *ChangeToken
	// IncludeNodes asks for the revisions that the changes made.
	IncludeNodes bool
	// GiveUpAfter is how long the service may be out of reach. Default: as long as it takes.
	GiveUpAfter time.Duration
}

// Watch follows a namespace: its changes in order, without gaps, across lost streams and restarts of the service.
type Watch struct {
	memory  *Memory
	options WatchOptions

	mutex    sync.Mutex
	position ChangeToken
	known    bool
}

// Watch watches the namespace.
//
//	for change, err := range memory.Watch(&durablememory.WatchOptions{After: &token}).All(ctx) {
//		if err != nil {
//			return err
//		}
//		token = change.ChangeToken
//	}
func (m *Memory) Watch(options *WatchOptions) *Watch {
	watch := &Watch{memory: m, options: orDefault(options)}
	if after := watch.options.After; after != nil {
		watch.position, watch.known = *after, true
	}
	return watch
}

// Position is up to where everything has been read: keep it to go on from there another time. It is false until the
// first message when the watch was not told where to start.
func (w *Watch) Position() (ChangeToken, bool) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.position, w.known
}

// All is the changes, without end: it ends with an error, of ctx if that ends, or when the loop is left. A lost stream
// is resumed after the last change that was read. Ranging over it again goes on from there. A watch that was not told
// where to start has no position until its first message: what is left or lost before it begins again, at a later now.
//
// Reasons: HISTORY_COMPACTED, HISTORY_CHANGED (start again from a snapshot), REVISION_NOT_FOUND. A gap is
// [ErrIncomplete].
func (w *Watch) All(ctx context.Context) iter.Seq2[WatchedChange, error] {
	return func(yield func(WatchedChange, error) bool) {
		var failures int
		var lostAt time.Time
		for {
			var lost error
			for message, err := range w.memory.stream(ctx, w.request(), 1) {
				if err != nil {
					lost = err
					break
				}
				failures, lostAt = 0, time.Time{}
				change, moved, err := w.read(message.(*pb.WatchNamespaceResponse))
				if err != nil {
					yield(WatchedChange{}, err)
					return
				}
				if moved && !yield(change, nil) {
					return
				}
			}
			if lost != nil && (ctx.Err() != nil || !errors.Is(lost, ErrUnavailable)) {
				yield(WatchedChange{}, lost)
				return
			}
			if lostAt.IsZero() {
				lostAt = time.Now()
			}
			if lost != nil && w.options.GiveUpAfter > 0 && time.Since(lostAt) >= w.options.GiveUpAfter {
				yield(WatchedChange{}, lost)
				return
			}
			failures++
			if !waits(ctx, w.pause(failures, lost)) {
				yield(WatchedChange{}, errors.Join(outOfTime(ctx), lost))
				return
			}
		}
	}
}

// pause is how long to wait before the stream is started again: at least as long as the service said.
func (w *Watch) pause(failures int, lost error) time.Duration {
	pause := policyOf(pb.RepositoryService_WatchNamespace_FullMethodName).retry.backoff(failures)
	var failed *Error
	if errors.As(lost, &failed) {
		return max(pause, failed.RetryAfter)
	}
	return pause
}

func (w *Watch) request() *pb.WatchNamespaceRequest {
	position, known := w.Position()
	request := &pb.WatchNamespaceRequest{IncludeNodes: w.options.IncludeNodes, HistoryId: optional(position.HistoryID)}
	if known {
		request.AfterNamespaceRevision = &position.NamespaceRevision
	}
	return request
}

// read takes a message in. moved is whether it is the next change, and not a heartbeat or a change that was read.
func (w *Watch) read(message *pb.WatchNamespaceResponse) (change WatchedChange, moved bool, err error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	switch event := message.GetEvent().(type) {
	case *pb.WatchNamespaceResponse_Heartbeat:
		token := changeTokenOf(event.Heartbeat.GetChangeToken())
		if w.known {
			token.NamespaceRevision = w.position.NamespaceRevision
		}
		// A watch that began now has a name for that from here on, and can be resumed.
		w.position, w.known = token, true
	case *pb.WatchNamespaceResponse_Change:
		change = watchedChangeOf(event.Change)
		token := change.ChangeToken
		if w.known && token.NamespaceRevision <= w.position.NamespaceRevision {
			return WatchedChange{}, false, nil
		}
		if w.known && token.NamespaceRevision != w.position.NamespaceRevision+1 {
			return WatchedChange{}, false, incomplete(
				"the watch went from namespace revision %d to %d", w.position.NamespaceRevision, token.NamespaceRevision)
		}
		w.position, w.known, moved = token, true, true
	}
	return change, moved, nil
}
