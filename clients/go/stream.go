package durablememory

import (
	"context"
	"errors"
	"io"
	"iter"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// CallStream is the messages of the streaming RPC that request belongs to, each of the type that it answers with. It
// is not taken up again when it is lost. Leaving the loop ends the call. The request is not changed.
//
//	for message, err := range memory.CallStream(ctx, &durablememoryv1.SnapshotRequest{}) {
//		response := message.(*durablememoryv1.SnapshotResponse)
//	}
func (m *Memory) CallStream(ctx context.Context, request proto.Message) iter.Seq2[proto.Message, error] {
	return m.stream(ctx, proto.Clone(request), 1)
}

// stream is CallStream for a request that is made for it. attempt counts how often the caller has started this call.
func (m *Memory) stream(ctx context.Context, request proto.Message, attempt int) iter.Seq2[proto.Message, error] {
	return func(yield func(proto.Message, error) bool) {
		response, err := responseOf(request)
		if err != nil {
			yield(nil, err)
			return
		}
		opened, err := m.calls.stream(ctx, m.namespace, request, response, attempt)
		if err != nil {
			yield(nil, err)
			return
		}
		defer opened.close()
		for {
			next := response.ProtoReflect().New().Interface()
			err := opened.next(next)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(next, nil) {
				return
			}
		}
	}
}

// responseOf is an empty message of the type that the RPC of a request answers with.
func responseOf(request proto.Message) (proto.Message, error) {
	called, err := methodOf(request)
	if err != nil {
		return nil, err
	}
	kind, err := protoregistry.GlobalTypes.FindMessageByName(called.response)
	if err != nil {
		return nil, err
	}
	return kind.New().Interface(), nil
}
