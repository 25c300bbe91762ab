package durablememory

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec that is wrapped here
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// checkEncodable refuses a request that has no form on the wire, before anything of it is sent: the library would call
// that INTERNAL, as it calls what a proxy reports of a server that died.
func checkEncodable(request proto.Message) error {
	_, err := proto.Marshal(request)
	if err == nil {
		return nil
	}
	refused := &Error{Reason: ReasonInvalidField, Code: codes.InvalidArgument, Definite: true}
	if field := notUnicode(request.ProtoReflect()); field != "" {
		refused.Message = field + " is not valid UTF-8"
		refused.Metadata = map[string]string{"field": field}
	} else {
		refused.Message = "the request cannot be encoded: " + err.Error()
	}
	return refused
}

// notUnicode is the path of the first text in a message that is not UTF-8, such as memory.labels[key]; empty if there
// is none.
func notUnicode(message protoreflect.Message) string {
	found := ""
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		name := string(field.Name())
		switch {
		case field.IsList():
			for i := 0; i < value.List().Len() && found == ""; i++ {
				found = notUnicodeValue(field, value.List().Get(i), fmt.Sprintf("%s[%d]", name, i))
			}
		case field.IsMap():
			value.Map().Range(func(key protoreflect.MapKey, item protoreflect.Value) bool {
				if !utf8.ValidString(key.String()) {
					found = name
				} else {
					found = notUnicodeValue(field.MapValue(), item, fmt.Sprintf("%s[%s]", name, key.String()))
				}
				return found == ""
			})
		default:
			found = notUnicodeValue(field, value, name)
		}
		return found == ""
	})
	return found
}

func notUnicodeValue(field protoreflect.FieldDescriptor, value protoreflect.Value, path string) string {
	switch {
	case field.Kind() == protoreflect.StringKind && !utf8.ValidString(value.String()):
		return path
	case field.Message() != nil:
		if inner := notUnicode(value.Message()); inner != "" {
			return path + "." + inner
		}
	}
	return ""
}

// answerCodec is the codec of one call. It remembers that an answer could not be decoded, which the error of the
// library does not say.
type answerCodec struct {
	encoding.CodecV2
	undecodable bool
}

func newAnswerCodec() *answerCodec { return &answerCodec{CodecV2: encoding.GetCodecV2("proto")} }

// Unmarshal decodes an answer.
func (c *answerCodec) Unmarshal(data mem.BufferSlice, into any) error {
	err := c.CodecV2.Unmarshal(data, into)
	c.undecodable = c.undecodable || err != nil
	return err
}

// Name is empty, as the content type on the wire is to stay application/grpc.
func (c *answerCodec) Name() string { return "" }

const (
	resetMessage   = "stream terminated by RST_STREAM"
	libraryMessage = "grpc: "
)

// ofPeer tells whether a status came over the wire, and was not made by the library on this side: for want of a codec,
// of a header that can be sent, of an answer that can be decompressed. A status comes with headers, a stream that is
// reset may have none; for what remains, the library has only its messages to tell by.
func ofPeer(state *status.Status, headers []metadata.MD) bool {
	if strings.HasPrefix(state.Message(), resetMessage) {
		return true
	}
	answered := false
	for _, header := range headers {
		answered = answered || len(header) > 0
	}
	return answered && !strings.HasPrefix(state.Message(), libraryMessage)
}
