// Command conformance makes the calls of conformance cases with the Go client: a case a line in, its outcomes a line
// out. clients/conformance/README.md describes both.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	durablememory "durablememory.dev/go"
	pb "durablememory.dev/go/durablememoryv1"
)

// order is one case.
type order struct {
	Case      string            `json:"case"`
	Address   string            `json:"address"`
	Token     string            `json:"token"`
	Namespace map[string]string `json:"namespace"`
	Saved     map[string]any    `json:"saved"`
	Steps     []step            `json:"steps"`
}

type step struct {
	Call      string            `json:"call"`
	Stream    string            `json:"stream"`
	Helper    string            `json:"helper"`
	Request   map[string]any    `json:"request"`
	Arguments map[string]any    `json:"arguments"`
	TimeoutMS *int              `json:"timeout_ms"`
	Cancel    string            `json:"cancel"`
	Save      map[string]string `json:"save"`
	Read      int               `json:"read"`
}

type object = map[string]any

func main() {
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		outcomes, err := run(line, lines)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		answer, err := json.Marshal(object{"outcomes": outcomes})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Printf("%s\n", answer)
	}
}

// run does the case of a line. A call that is to be cancelled is so when the next line has come.
func run(line []byte, lines *bufio.Reader) ([]any, error) {
	var given order
	if err := json.Unmarshal(line, &given); err != nil {
		return nil, err
	}
	client, err := durablememory.NewClient(
		durablememory.WithAddress(given.Address),
		durablememory.WithToken(given.Token),
		durablememory.WithNamespace(durablememory.Namespace{
			Tenant:    given.Namespace["tenant"],
			Principal: given.Namespace["principal"],
			Scope:     given.Namespace["scope"],
		}),
	)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	saved := given.Saved
	if saved == nil {
		saved = object{}
	}
	var outcomes []any
	for _, step := range given.Steps {
		outcome, err := outcomeOf(client, step, saved, lines)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", given.Case, err)
		}
		outcomes = append(outcomes, outcome)
		for name, path := range step.Save {
			saved[name] = at(outcome["ok"], path)
		}
	}
	return outcomes, nil
}

// outcomeOf is what came of a step. Its error is one of this program.
func outcomeOf(client *durablememory.Client, step step, saved object, lines *bufio.Reader) (object, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if step.TimeoutMS != nil {
		limited, stop := context.WithTimeout(ctx, time.Duration(*step.TimeoutMS)*time.Millisecond)
		defer stop()
		ctx = limited
	}
	told := make(chan struct{})
	if step.Cancel == "" {
		close(told)
	} else {
		go func() {
			defer close(told)
			_, _ = lines.ReadBytes('\n')
			cancel()
		}()
	}
	answer, err := answerOf(ctx, client, step, saved)
	<-told
	var failed *durablememory.Error
	switch {
	case err == nil:
		return object{"ok": answer}, nil
	case errors.Is(err, context.Canceled):
		return object{"cancelled": true}, nil
	case errors.As(err, &failed):
		return object{"error": errorJSON(failed)}, nil
	default:
		return nil, err
	}
}

func answerOf(ctx context.Context, client *durablememory.Client, step step, saved object) (any, error) {
	if step.Helper != "" {
		helper, known := helpers[step.Helper]
		if !known {
			return nil, fmt.Errorf("no helper %q", step.Helper)
		}
		given, _ := replaced(step.Arguments, saved).(object)
		return helper(ctx, client, given)
	}
	request, response, err := messagesOf(step.Call + step.Stream)
	if err != nil {
		return nil, err
	}
	fields, err := json.Marshal(replaced(step.Request, saved))
	if err != nil {
		return nil, err
	}
	if step.Request != nil {
		if err := protojson.Unmarshal(fields, request); err != nil {
			return nil, err
		}
	}
	if step.Call != "" {
		if err := client.Call(ctx, request, response); err != nil {
			return nil, err
		}
		return plain(response)
	}
	messages := []any{}
	for message, err := range client.CallStream(ctx, request) {
		if err != nil {
			return nil, err
		}
		fields, err := plain(message)
		if err != nil {
			return nil, err
		}
		messages = append(messages, fields)
		if len(messages) == step.Read {
			break
		}
	}
	return messages, nil
}

// messagesOf is empty messages of an RPC, by Service.Method.
func messagesOf(name string) (request, response proto.Message, err error) {
	contract := pb.File_durablememory_v1_namespace_proto.Package()
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(contract.Append(protoreflect.Name(name[:strings.Index(name, ".")])))
	if err != nil {
		return nil, nil, err
	}
	_, bare, _ := strings.Cut(name, ".")
	described := found.(protoreflect.ServiceDescriptor).Methods().ByName(protoreflect.Name(bare))
	if described == nil {
		return nil, nil, fmt.Errorf("no RPC %s", name)
	}
	asked, err := protoregistry.GlobalTypes.FindMessageByName(described.Input().FullName())
	if err != nil {
		return nil, nil, err
	}
	answered, err := protoregistry.GlobalTypes.FindMessageByName(described.Output().FullName())
	if err != nil {
		return nil, nil, err
	}
	return asked.New().Interface(), answered.New().Interface(), nil
}

func errorJSON(failed *durablememory.Error) object {
	var reason any
	if failed.Reason != "" {
		reason = failed.Reason
	}
	metadata := failed.Metadata
	if metadata == nil {
		metadata = map[string]string{}
	}
	return object{
		"code":           codeName(failed.Code),
		"reason":         reason,
		"metadata":       metadata,
		"definite":       failed.Definite,
		"attempts":       failed.Attempts,
		"has_request_id": failed.RequestID != "",
	}
}

// codeName is the name that the contract writes, such as FAILED_PRECONDITION.
func codeName(code codes.Code) string {
	var name strings.Builder
	for i, char := range code.String() {
		if i > 0 && 'A' <= char && char <= 'Z' {
			name.WriteByte('_')
		}
		name.WriteRune(char)
	}
	upper := strings.ToUpper(name.String())
	if code == codes.Canceled {
		return "CANCELLED"
	}
	return upper
}

// plain is a message as JSON of the original field names.
func plain(message proto.Message) (any, error) {
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(message)
	if err != nil {
		return nil, err
	}
	return json.RawMessage(text), nil
}

// replaced is the value with each $name in it replaced by what was saved under that name.
func replaced(value any, saved object) any {
	switch value := value.(type) {
	case string:
		if name, found := strings.CutPrefix(value, "$"); found {
			return saved[name]
		}
	case object:
		made := object{}
		for key, member := range value {
			made[key] = replaced(member, saved)
		}
		return made
	case []any:
		made := make([]any, len(value))
		for i, member := range value {
			made[i] = replaced(member, saved)
		}
		return made
	}
	return value
}

// at is the part of an answer at a path, such as run.context_id or results.0.citation.
func at(value any, path string) any {
	if raw, ok := value.(json.RawMessage); ok {
		value = nil
		if json.Unmarshal(raw, &value) != nil {
			return nil
		}
	}
	for _, part := range strings.Split(path, ".") {
		switch inner := value.(type) {
		case object:
			value = inner[part]
		case []any:
			index, err := strconv.Atoi(part)
			if err != nil || index >= len(inner) {
				return nil
			}
			value = inner[index]
		}
	}
	return value
}
