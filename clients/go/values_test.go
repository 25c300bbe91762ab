package durablememory

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	pb "durablememory.dev/go/durablememoryv1"
)

func TestEnumsKeepWhatANewerServerAdds(t *testing.T) {
	for number, name := range map[pb.NodeStatus]NodeStatus{
		pb.NodeStatus_NODE_STATUS_ACTIVE:      NodeStatusActive,
		pb.NodeStatus_NODE_STATUS_TOMBSTONED:  NodeStatusTombstoned,
		pb.NodeStatus_NODE_STATUS_UNSPECIFIED: "",
		77:                                    "UNKNOWN_77",
	} {
		if got := fromEnum[NodeStatus](number); got != name {
			t.Errorf("%v is called %q, not %q", number, got, name)
		}
		if got := toEnum[pb.NodeStatus](name); got != number {
			t.Errorf("%q travels as %v, not %v", name, got, number)
		}
	}
}

func TestANameThatTheEnumDoesNotHaveIsLeftToTheServiceToRefuse(t *testing.T) {
	for _, name := range []NodeStatus{"ACTIV", "active", "UNKNOWN_", "UNKNOWN_x", "NODE_STATUS_ACTIVE"} {
		if got := toEnum[pb.NodeStatus](name); got != invalidNumber {
			t.Errorf("%q travels as %v", name, got)
		}
	}
}

func TestEveryReasonOfTheTableIsOfTheContract(t *testing.T) {
	known := map[Reason]bool{}
	for _, name := range pb.ErrorReason_name {
		known[Reason(strings.TrimPrefix(name, reasonPrefix))] = true
	}
	if len(reasons().rows) < 40 {
		t.Errorf("the table has %d reasons", len(reasons().rows))
	}
	for reason := range reasons().rows {
		if !known[reason] {
			t.Errorf("%s is not of the contract", reason)
		}
	}
	if reasons().domain != "durablememory.dev" {
		t.Errorf("the domain is %q", reasons().domain)
	}
}

func TestItemsOfABatchHaveTheErrorsOfCalls(t *testing.T) {
	err := itemError(&pb.ItemError{Reason: pb.ErrorReason_ERROR_REASON_NODE_NOT_FOUND, Metadata: map[string]string{"node_id": "a"}})
	failed := err.(*Error)
	if failed.Reason != ReasonNodeNotFound || failed.Code.String() != "NotFound" || !failed.Definite || failed.Metadata["node_id"] != "a" {
		t.Errorf("got %+v", failed)
	}
	if newer := itemError(&pb.ItemError{Reason: 999}).(*Error); newer.Reason != "UNKNOWN_999" {
		t.Errorf("a newer reason is called %q", newer.Reason)
	}
	if itemError(nil) != nil {
		t.Error("no error is an error")
	}
}

func TestCitationsAreTextAndBack(t *testing.T) {
	citation := Citation{42, "prefers tea/é:@#", 3, strings.Repeat("9f", 32)}
	text := citation.String()
	if want := "dm1:42:prefers%20tea%2F%C3%A9%3A%40%23@3#" + citation.ContentDigest; text != want {
		t.Errorf("got %s, want %s", text, want)
	}
	parsed, err := ParseCitation(text)
	if err != nil || parsed != citation {
		t.Errorf("got %v, %v", parsed, err)
	}
	for _, wrong := range []string{
		"", "dm1", text + " ", " " + text, strings.Replace(text, "dm1", "dm2", 1), strings.Replace(text, "@3", "@0", 1),
		strings.Replace(text, "9f", "9F", 1), strings.Replace(text, ":42:", ":9999999999999999999:", 1),
		strings.Replace(text, "%20", "%2", 1) + "x",
	} {
		if _, err := ParseCitation(wrong); err == nil {
			t.Errorf("%q was taken", wrong)
		}
	}
}

func TestEvidenceNamesItsSource(t *testing.T) {
	if uri := SessionTurn("a/b", "turn 1", "x").URI; uri != "session:a%2Fb/turn/turn%201" {
		t.Errorf("got %s", uri)
	}
	if sent := toEvidence(UserStatement("u", "")); sent.GetSource() == nil {
		t.Error("an empty body is no source")
	}
	if sent := toEvidence(Evidence{URI: "u", Digest: "sha256:00"}); sent.GetDigest() != "sha256:00" {
		t.Error("the digest is not sent")
	}
	if sent := toEvidence(Evidence{URI: "u"}); sent.GetSource() != nil {
		t.Error("evidence without a source got one")
	}
	if decider := RuleDecision("said-twice", "1", "").Decider; decider != "rule:said-twice@1" {
		t.Errorf("got %s", decider)
	}
}

func TestRelationsAreMadeFromBothEnds(t *testing.T) {
	operations := Relate(Citation{NodeID: "a", NodeRevision: 1}, RelationKindSupersedes, Citation{NodeID: "b", NodeRevision: 2})
	one, other := operations[0].toProto().GetAddRelation(), operations[1].toProto().GetAddRelation()
	if one.GetRelation().GetNodeId() != "b" || other.GetRelation().GetNodeId() != "a" || other.GetExpectedRevision() != 2 ||
		other.GetRelation().GetKind() != pb.RelationKind_RELATION_KIND_SUPERSEDED_BY {
		t.Errorf("got %v and %v", one, other)
	}
	for kind := range pb.RelationKind_name {
		if name := fromEnum[RelationKind](pb.RelationKind(kind)); name.Inverse().Inverse() != name {
			t.Errorf("%s has no inverse", name)
		}
	}
}

func TestARevisionTellsWhatStaysFromWhatIsRemoved(t *testing.T) {
	if (Revision{}).surroundings() != nil {
		t.Error("what is not stated is removed")
	}
	if removed := (Revision{Surroundings: []string{}}).surroundings(); removed == nil || len(removed.GetTexts()) != 0 {
		t.Error("what is to be removed stays")
	}
}

func TestStreamsHaveNoDeadlineAndCallsHaveOne(t *testing.T) {
	for _, called := range methods() {
		if called.serverStream != (called.policy.timeout == 0) {
			t.Errorf("%s has the deadline %v", called.name, called.policy.timeout)
		}
		if repeatable := called.policy.retry != nil; repeatable == called.clientStream {
			t.Errorf("%s can be repeated: %v", called.name, repeatable)
		}
		if called.changes && called.requestID == nil {
			t.Errorf("%s changes something and has no request id", called.name)
		}
	}
}

func TestEveryRequestOfTheContractNamesItsRPC(t *testing.T) {
	count := 0
	protoregistry.GlobalFiles.RangeFilesByPackage("durablememory.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			count += file.Services().Get(i).Methods().Len()
		}
		return true
	})
	if len(methods()) != count {
		t.Errorf("%d requests name %d RPCs", len(methods()), count)
	}
}

func TestIDsAreUniqueAndInOrder(t *testing.T) {
	before := ""
	seen := map[string]bool{}
	for range 1_000 {
		id := newID()
		if len(id) != 36 || id[14] != '7' || seen[id] {
			t.Fatalf("%s is not a new UUID of version 7", id)
		}
		if seen[id] = true; id[:13] < before {
			t.Fatalf("%s is before %s", id, before)
		}
		before = id[:13]
	}
}
