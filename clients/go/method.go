package durablememory

import (
	"fmt"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	pb "durablememory.dev/go/durablememoryv1"
)

// method is one RPC, found in the descriptors of the contract.
type method struct {
	full         string // /durablememory.v1.MemoryService/Remember
	name         string // MemoryService.Remember
	response     protoreflect.FullName
	changes      bool                         // it may change anything, and so has a request id
	requestID    protoreflect.FieldDescriptor // nil where there is none
	admit        protoreflect.FieldDescriptor // the field without which the call changes nothing, if there is one
	namespace    protoreflect.FieldDescriptor // nil where there is none
	serverStream bool
	clientStream bool
	policy       callPolicy
}

// methods is every RPC of the contract by the name of its request: each has a request message of its own, so the
// request alone says which RPC is meant.
var methods = sync.OnceValue(func() map[protoreflect.FullName]*method {
	found := map[protoreflect.FullName]*method{}
	contract := pb.File_durablememory_v1_namespace_proto.Package()
	protoregistry.GlobalFiles.RangeFilesByPackage(contract, func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				made := newMethod(service, service.Methods().Get(j))
				found[service.Methods().Get(j).Input().FullName()] = made
			}
		}
		return true
	})
	return found
})

func newMethod(service protoreflect.ServiceDescriptor, described protoreflect.MethodDescriptor) *method {
	full := fmt.Sprintf("/%s/%s", service.FullName(), described.Name())
	options, _ := described.Options().(*descriptorpb.MethodOptions)
	fields := described.Input().Fields()
	return &method{
		full:         full,
		name:         fmt.Sprintf("%s.%s", service.Name(), described.Name()),
		response:     described.Output().FullName(),
		changes:      options.GetIdempotencyLevel() != descriptorpb.MethodOptions_NO_SIDE_EFFECTS,
		requestID:    fields.ByName("request_id"),
		admit:        fields.ByName("admit"),
		namespace:    fields.ByName("namespace"),
		serverStream: described.IsStreamingServer(),
		clientStream: described.IsStreamingClient(),
		policy:       policyOf(full),
	}
}

// methodOf is the RPC that a request belongs to.
func methodOf(request proto.Message) (*method, error) {
	name := request.ProtoReflect().Descriptor().FullName()
	found, ok := methods()[name]
	if !ok {
		return nil, fmt.Errorf("durablememory: %s is no request of the contract", name)
	}
	return found, nil
}

// answering is the RPC that a request belongs to, if it answers with such a response and streams as is expected.
func answering(request, response proto.Message, clientStream, serverStream bool) (*method, error) {
	found, err := methodOf(request)
	if err != nil {
		return nil, err
	}
	if answer := response.ProtoReflect().Descriptor().FullName(); answer != found.response {
		return nil, fmt.Errorf("durablememory: %s answers with %s, not %s", found.name, found.response, answer)
	}
	if found.clientStream != clientStream || found.serverStream != serverStream {
		return nil, fmt.Errorf("durablememory: %s streams in another way", found.name)
	}
	return found, nil
}

// settleRequestID mints the request id of a change that has none. It is empty for a call that changes nothing.
func (m *method) settleRequestID(request proto.Message) string {
	message := request.ProtoReflect()
	if !m.changes || m.requestID == nil || (m.admit != nil && !message.Get(m.admit).Bool()) {
		return ""
	}
	if id := message.Get(m.requestID).String(); id != "" {
		return id
	}
	id := newID()
	message.Set(m.requestID, protoreflect.ValueOfString(id))
	return id
}

// settleNamespace makes the request one for this namespace unless it names one.
func (m *method) settleNamespace(request proto.Message, namespace Namespace) {
	message := request.ProtoReflect()
	if m.namespace != nil && !message.Has(m.namespace) {
		message.Set(m.namespace, protoreflect.ValueOfMessage(namespace.toProto().ProtoReflect()))
	}
}
