"""Staging: a change set becomes new revisions, or a refusal that says which operation is to blame."""

from dataclasses import replace
from datetime import timedelta

import pytest

from durable_memory.domain import staging
from durable_memory.domain.change_set import (
    Activate,
    ChangeSet,
    Corroborate,
    Create,
    RemoveRelation,
    Revise,
    ReviseMode,
    chain,
)
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.evidence import EvidenceKind
from durable_memory.domain.node import NodeStatus, Relation, RelationKind, content_digest
from tests.conformance.samples import (
    NOW,
    activate,
    corroborate,
    create,
    decision_evidence,
    evidence,
    relate,
    revise,
    set_status,
)

SKEW = timedelta(minutes=5)
SECOND = timedelta(seconds=1)


def refused(stage, *operations, **options) -> DomainError:
    """The refusal of a change set, which must have changed nothing."""
    before = (stage.head, dict(stage.nodes))
    with pytest.raises(DomainError) as caught:
        stage.apply(*operations, **options)
    assert (stage.head, stage.nodes) == before
    return caught.value


# The set as a whole


def test_all_operations_on_a_node_name_its_revision_and_make_one_new_one(stage):
    stage.apply(create("n"))
    staged = stage.apply(corroborate("n", 1, "e"), revise("n", 1, "other"), activate("n", 1))
    (revision,) = staged.revisions
    assert (revision.revision, revision.valid_from, revision.status) == (2, 2, NodeStatus.ACTIVE)
    (change,) = staged.record.changes
    assert change.operations == ("corroborate", "revise", "activate")
    assert (change.status_before, change.status_after) == (NodeStatus.CANDIDATE, NodeStatus.ACTIVE)


def test_a_stale_revision_is_refused_with_the_actual_one(stage):
    stage.apply(create("n"), create("m"))
    stage.apply(corroborate("n", 1, "e"))
    error = refused(stage, corroborate("m", 1, "e"), corroborate("n", 1, "f"))
    assert error.reason is Reason.REVISION_CONFLICT
    assert error.metadata == {"node_id": "n", "expected": "1", "actual": "2", "operation_index": "1"}


def test_an_absent_node_is_refused_and_an_existing_one_is_not_created_again(stage):
    error = refused(stage, create("a"), corroborate("n", 1, "e"))
    assert (error.reason, error.metadata["operation_index"]) == (Reason.NODE_NOT_FOUND, "1")
    stage.apply(create("n"))
    error = refused(stage, create("n"))
    assert (error.reason, error.metadata["node_id"]) == (Reason.NODE_ALREADY_EXISTS, "n")
    error = refused(stage, create("twice"), create("twice"))
    assert (error.reason, error.metadata["field"]) == (Reason.INVALID_FIELD, "operations[1].create.node_id")


def test_a_node_that_the_same_set_creates_cannot_be_named_by_a_revision(stage):
    assert refused(stage, create("n"), activate("n", 1)).reason is Reason.NODE_NOT_FOUND


def test_the_expected_namespace_revision_is_compared(stage):
    stage.apply(create("n"))
    stage.apply(create("m"), expected_namespace_revision=1)
    error = refused(stage, create("o"), expected_namespace_revision=1)
    assert error.reason is Reason.REVISION_CONFLICT
    assert error.metadata == {"expected": "1", "actual": "2"}


def test_a_set_without_operations_or_without_effect_is_refused_as_empty(stage):
    stage.apply(create("n", "text", labels={"a": "1"}, sources=(evidence("e"),)))
    assert refused(stage).reason is Reason.CHANGE_SET_EMPTY
    assert refused(stage, corroborate("n", 1, "e")).reason is Reason.CHANGE_SET_EMPTY
    same = Revise(
        node_id="n",
        expected_revision=1,
        mode=ReviseMode.REFINEMENT,
        content="text",
        set_labels={"a": "1"},
        remove_labels=frozenset({"absent"}),
    )
    assert refused(stage, same).reason is Reason.CHANGE_SET_EMPTY


def test_operations_without_effect_make_no_revision_beside_others(stage):
    stage.apply(create("n", sources=(evidence("e"),)), create("m"))
    staged = stage.apply(corroborate("n", 1, "e"), corroborate("m", 1, "e"))
    assert [node.node_id for node in staged.revisions] == ["m"]
    assert stage["n"].revision == 1


def test_128_operations_are_accepted_and_129_are_not(stage):
    error = refused(stage, *(create(f"n{number}") for number in range(129)))
    assert (error.reason, error.metadata["limit"], error.metadata["actual"]) == (Reason.LIMIT_EXCEEDED, "128", "129")
    assert len(stage.apply(*(create(f"n{number}") for number in range(128))).revisions) == 128


def test_the_record_says_who_did_what_and_chains_to_the_one_before(stage):
    first = stage.apply(create("é"), create("a"), note="why")
    assert [change.node_id for change in first.record.changes] == ["a", "é"]
    assert (first.record.caller, first.record.method, first.record.request_id) == ("tester", "ApplyChangeSet", "k")
    assert (first.record.note, first.record.committed_at) == ("why", NOW)
    assert first.record.chain_digest == chain("0" * 64, 1, first.record.digest()) == stage.head.chain_digest
    second = stage.apply(revise("a", 1, "other"))
    assert second.record.chain_digest == chain(first.record.chain_digest, 2, second.record.digest())
    (change,) = second.record.changes
    assert (change.content_changed, change.content_digest) == (True, content_digest("other"))
    assert change.revision_digest == stage["a"].digest()


# Fields


def test_a_revision_keeps_what_it_does_not_name(stage):
    stage.apply(create("n", "text", labels={"a": "1", "b": "2"}, sources=(evidence("e"),)))
    before = stage["n"]
    stage.apply(
        Revise(
            node_id="n",
            expected_revision=1,
            mode=ReviseMode.REFINEMENT,
            confidence=0.9,
            set_labels={"c": "3"},
            remove_labels=frozenset({"a"}),
        )
    )
    after = stage["n"]
    assert (after.confidence, after.labels) == (0.9, {"b": "2", "c": "3"})
    assert replace(after, revision=1, valid_from=1, confidence=0.5, labels=before.labels) == before


def test_a_label_that_is_removed_and_set_is_set(stage):
    stage.apply(create("n", labels={"a": "1"}))
    stage.apply(
        Revise(
            node_id="n",
            expected_revision=1,
            mode=ReviseMode.REFINEMENT,
            set_labels={"a": "2"},
            remove_labels=frozenset({"a"}),
        )
    )
    assert stage["n"].labels == {"a": "2"}


def test_labels_are_bounded_over_all_revisions(stage):
    stage.apply(create("n", labels={str(number): "" for number in range(64)}))
    assert refused(stage, revise("n", 1, labels={"one more": ""})).reason is Reason.LIMIT_EXCEEDED


def test_a_memory_occurred_when_its_earliest_evidence_did(stage):
    early, late = NOW - 2 * SECOND, NOW - SECOND
    sources = (replace(evidence("a"), occurred_at=late), replace(evidence("b"), occurred_at=early))
    stage.apply(create("n", sources=sources), create("m"))
    assert (stage["n"].occurred_at, stage["m"].occurred_at) == (early, NOW)


# Times


def test_absent_times_never_go_back_whatever_the_clock_does(stage):
    stage.apply(create("n"))
    stage.apply(corroborate("n", 1, "e"), now=NOW - SKEW)
    assert (stage["n"].updated_at, stage["n"].committed_at) == (NOW, NOW - SKEW)
    stage.apply(corroborate("n", 2, "f"), now=NOW + SECOND)
    assert stage["n"].updated_at == NOW + SECOND


def test_a_time_ahead_of_the_server_by_more_than_five_minutes_is_refused(stage):
    stage.apply(create("n"), occurred_at=NOW + SKEW)
    late = NOW + SKEW + timedelta(microseconds=1)
    error = refused(stage, create("m"), occurred_at=late)
    assert (error.reason, error.metadata["field"]) == (Reason.INVALID_FIELD, "occurred_at")
    assert error.metadata["bound"] == (NOW + SKEW).isoformat()
    error = refused(stage, create("m", sources=(replace(evidence("e"), occurred_at=late),)))
    assert error.metadata["field"] == "operations[0].create.memory.evidence[0].occurred_at"


def test_evidence_later_than_its_change_set_is_refused(stage):
    source = replace(evidence("e"), occurred_at=NOW)
    error = refused(stage, create("n", sources=(source,)), occurred_at=NOW - SECOND)
    assert error.reason is Reason.INVALID_FIELD
    assert error.metadata["field"] == "operations[0].create.memory.evidence[0].occurred_at"
    assert (error.metadata["given"], error.metadata["bound"]) == (NOW.isoformat(), (NOW - SECOND).isoformat())


def test_a_node_created_later_than_its_change_set_is_refused(stage):
    operation = replace(create("n"), created_at=NOW)
    error = refused(stage, operation, occurred_at=NOW - SECOND)
    assert error.metadata["field"] == "operations[0].create.created_at"
    stage.apply(operation)
    assert stage["n"].created_at == NOW


def test_an_explicit_time_before_the_last_update_of_what_it_touches_is_refused(stage):
    stage.apply(create("n"))
    error = refused(stage, corroborate("n", 1, "e"), occurred_at=NOW - SECOND)
    assert (error.metadata["field"], error.metadata["bound"]) == ("occurred_at", NOW.isoformat())
    stage.apply(create("m"), occurred_at=NOW - SECOND)
    assert stage["m"].updated_at == NOW - SECOND


# Evidence


def test_new_evidence_is_what_no_revision_of_the_node_has_had(stage):
    stage.apply(create("n", sources=(evidence("e"),)), create("m"))
    staged = stage.apply(corroborate("n", 1, "e", "f"), corroborate("m", 1, "e"))
    assert set(staged.new_evidence) == {
        ("n", "test:f", evidence("f").digest),
        ("m", "test:e", evidence("e").digest),
    }


def test_another_digest_of_a_source_replaces_the_reference_and_stays_known(stage):
    stage.apply(create("n", sources=(evidence("e"),)))
    changed = replace(evidence("e"), digest=evidence("other").digest)
    stage.apply(Corroborate(node_id="n", expected_revision=1, evidence=(changed,)))
    assert [item.digest for item in stage["n"].evidence] == [changed.digest]
    assert refused(stage, corroborate("n", 2, "e")).reason is Reason.CHANGE_SET_EMPTY


def test_a_full_node_still_takes_evidence(stage):
    stage.apply(create("n", sources=tuple(evidence(str(number)) for number in range(64))))
    stage.apply(corroborate("n", 1, "one more"))
    assert (len(stage["n"].evidence), stage["n"].evidence[-1].uri) == (64, "test:one more")
    assert refused(stage, corroborate("n", 2, "0")).reason is Reason.CHANGE_SET_EMPTY


# The gate


@pytest.mark.parametrize(
    "operation",
    [
        create("new", active=True),
        activate("candidate", 1),
        activate("archived", 1),
        activate("conflicted", 1),
        revise("active", 1, "other"),
        revise("active", 1, labels={"only": "a label"}),
    ],
    ids=lambda operation: f"{operation.name} {operation.node_id}",
)
def test_whatever_makes_or_changes_an_active_memory_needs_the_role_and_a_new_decision(stage, operation):
    for status in (NodeStatus.CANDIDATE, NodeStatus.ACTIVE, NodeStatus.ARCHIVED, NodeStatus.CONFLICTED):
        stage.put_created(status.name.lower(), status)
    error = refused(stage, operation, may_activate=False)
    assert (error.reason, error.metadata["required_role"]) == (Reason.PERMISSION_DENIED, "activator")

    offered = (evidence("not a decision"),)
    if isinstance(operation, Create):
        bare: object = replace(operation, draft=replace(operation.draft, evidence=offered))
    else:
        bare = replace(operation, evidence=offered)
    error = refused(stage, bare)
    assert (error.reason, error.metadata["operation_index"]) == (Reason.EVIDENCE_REQUIRED, "0")
    assert error.metadata["accepted_kinds"] == "MANUAL,VERIFICATION"

    stage.apply(operation)
    assert stage[operation.node_id].status is NodeStatus.ACTIVE
    assert stage[operation.node_id].decided_by == "tester"


def test_a_decision_that_the_node_has_had_before_opens_nothing(stage):
    stage.apply(create("n", sources=(decision_evidence("d"),)))
    again = Activate(node_id="n", expected_revision=1, evidence=(decision_evidence("d"),))
    assert refused(stage, again).reason is Reason.EVIDENCE_REQUIRED


def test_a_decision_that_the_same_set_replaces_opens_nothing(stage):
    stage.apply(create("n"))
    decision = decision_evidence("d")
    replaced = replace(decision, digest=evidence("other").digest, kind=EvidenceKind.USER_STATEMENT)
    error = refused(
        stage,
        Activate(node_id="n", expected_revision=1, evidence=(decision,)),
        Corroborate(node_id="n", expected_revision=1, evidence=(replaced,)),
    )
    assert error.reason is Reason.EVIDENCE_REQUIRED


def test_only_evidence_that_a_revision_has_becomes_known(stage):
    first, second = evidence("e"), replace(evidence("e"), digest=evidence("other").digest)
    stage.apply(create("n"))
    staged = stage.apply(
        Corroborate(node_id="n", expected_revision=1, evidence=(first,)),
        Corroborate(node_id="n", expected_revision=1, evidence=(second,)),
    )
    assert staged.new_evidence == (("n", second.uri, second.digest),)


def test_a_decision_for_one_node_opens_no_other(stage):
    stage.apply(create("n"), create("m"))
    error = refused(stage, activate("n", 1), Activate(node_id="m", expected_revision=1, evidence=()))
    assert (error.reason, error.metadata["node_id"]) == (Reason.EVIDENCE_REQUIRED, "m")


def test_verification_by_a_rule_is_a_decision_too(stage):
    stage.apply(create("n"))
    rule = evidence("rule", EvidenceKind.VERIFICATION)
    stage.apply(Activate(node_id="n", expected_revision=1, evidence=(rule,)))
    assert stage["n"].status is NodeStatus.ACTIVE


def test_what_decides_nothing_needs_no_role(stage):
    stage.apply(create("n", active=True), create("m"))
    stage.apply(corroborate("n", 1, "e"), revise("m", 1, "other"), may_activate=False)
    stage.apply(set_status("n", 2, NodeStatus.ARCHIVED), may_activate=False)
    assert (stage["n"].decided_by, stage["m"].decided_by) == ("tester", "")


@pytest.mark.parametrize("status", [NodeStatus.SUPERSEDED, NodeStatus.TOMBSTONED], ids=lambda status: status.name)
@pytest.mark.parametrize("before", [NodeStatus.ACTIVE, NodeStatus.CONFLICTED], ids=lambda status: status.name)
def test_what_was_decided_on_is_ended_for_good_by_an_entitled_caller_only(stage, before, status):
    stage.put_created("n", before)
    revision = stage["n"].revision
    error = refused(stage, set_status("n", revision, status), may_activate=False)
    assert (error.reason, error.metadata["required_role"]) == (Reason.PERMISSION_DENIED, "activator")
    stage.apply(set_status("n", revision, status))
    assert (stage["n"].status, stage["n"].decided_by) == (status, "tester")


def test_retiring_first_is_no_way_around_the_role(stage):
    stage.apply(create("n", active=True))
    stage.apply(set_status("n", 1, NodeStatus.ARCHIVED), may_activate=False)
    error = refused(stage, set_status("n", 2, NodeStatus.TOMBSTONED), may_activate=False)
    assert error.reason is Reason.PERMISSION_DENIED


def test_a_proposal_is_taken_back_without_the_role(stage):
    stage.apply(create("n"))
    stage.apply(set_status("n", 1, NodeStatus.TOMBSTONED), may_activate=False)
    assert not stage["n"].rejected


def test_a_revision_of_an_active_memory_that_is_retired_at_once_needs_the_role_alone(stage):
    stage.apply(create("n", active=True))
    operations = (
        replace(revise("n", 1, "other"), evidence=()),
        set_status("n", 1, NodeStatus.ARCHIVED),
    )
    assert refused(stage, *operations, may_activate=False).reason is Reason.PERMISSION_DENIED
    stage.apply(*operations)
    assert stage["n"].status is NodeStatus.ARCHIVED


# Frozen nodes and relations


@pytest.mark.parametrize("status", [NodeStatus.SUPERSEDED, NodeStatus.TOMBSTONED], ids=lambda status: status.name)
def test_a_frozen_node_takes_no_text_no_evidence_and_no_relation(stage, status):
    stage.apply(create("m"))
    stage.put_created("n", status)
    related = (
        relate("n", 1, Relation(RelationKind.RELATED_TO, "m")),
        relate("m", 1, Relation(RelationKind.RELATED_TO, "n")),
    )
    for operations in ((corroborate("n", 1, "e"),), (revise("n", 1, "other"),), related, related[::-1]):
        error = refused(stage, *operations)
        assert (error.reason, error.metadata["node_id"]) == (Reason.NODE_FROZEN, "n")
        assert error.metadata["status"] == status.name


def test_a_set_may_relate_the_node_that_it_supersedes(stage):
    stage.apply(create("old", active=True))
    staged = stage.apply(
        create("new", active=True, relations=(Relation(RelationKind.SUPERSEDES, "old"),)),
        relate("old", 1, Relation(RelationKind.SUPERSEDED_BY, "new")),
        set_status("old", 1, NodeStatus.SUPERSEDED),
    )
    assert len(staged.revisions) == 2
    assert stage["old"].relations == (Relation(RelationKind.SUPERSEDED_BY, "new"),)
    assert stage["old"].status is NodeStatus.SUPERSEDED


def test_a_relation_to_a_frozen_node_can_be_removed(stage):
    relation, inverse = Relation(RelationKind.RELATED_TO, "b"), Relation(RelationKind.RELATED_TO, "a")
    stage.apply(create("a", relations=(relation,)), create("b", relations=(inverse,)))
    stage.set("b", status=NodeStatus.TOMBSTONED)
    stage.apply(
        RemoveRelation(node_id="a", expected_revision=1, relation=relation),
        RemoveRelation(node_id="b", expected_revision=1, relation=inverse),
    )
    assert (stage["a"].relations, stage["b"].relations) == ((), ())


@pytest.mark.parametrize("kind", RelationKind, ids=lambda kind: kind.name)
def test_both_ends_of_a_relation_come_and_go_together(stage, kind):
    relation, inverse = Relation(kind, "b"), Relation(kind.inverse, "a")
    stage.apply(create("a"), create("b"))
    for operations in ((relate("a", 1, relation),), (relate("b", 1, inverse),)):
        error = refused(stage, *operations)
        assert (error.reason, error.metadata["relation"]) == (
            Reason.RELATION_INVALID,
            operations[0].relation.kind.name,
        )
    stage.apply(relate("a", 1, relation), relate("b", 1, inverse))
    removal = RemoveRelation(node_id="a", expected_revision=2, relation=relation)
    assert refused(stage, removal).reason is Reason.RELATION_INVALID
    stage.apply(removal, RemoveRelation(node_id="b", expected_revision=2, relation=inverse))
    assert stage["a"].relations == ()


def test_the_wrong_inverse_is_no_inverse(stage):
    stage.apply(create("a"), create("b"))
    operations = (
        relate("a", 1, Relation(RelationKind.SUPERSEDES, "b")),
        relate("b", 1, Relation(RelationKind.SUPERSEDES, "a")),
    )
    assert refused(stage, *operations).reason is Reason.RELATION_INVALID


def test_a_relation_needs_another_node_that_exists(stage):
    stage.apply(create("a"))
    for target in ("a", "absent"):
        relation = Relation(RelationKind.RELATED_TO, target)
        error = refused(stage, relate("a", 1, relation))
        assert (error.reason, error.metadata["target_node_id"]) == (Reason.RELATION_INVALID, target)
        assert refused(stage, create("b", relations=(relation,))).reason is Reason.RELATION_INVALID


def test_a_node_has_at_most_256_relations(stage):
    others = [f"n{number:03}" for number in range(257)]
    relations = tuple(Relation(RelationKind.RELATED_TO, name) for name in others)
    assert refused(stage, create("a", relations=relations)).reason is Reason.LIMIT_EXCEEDED


# Bounds of a namespace


def test_a_namespace_takes_no_more_active_memories_than_it_may_hold(stage, monkeypatch):
    monkeypatch.setattr(staging, "NAMESPACE_MAX_ACTIVE_NODES", 2)
    stage.apply(create("a", active=True), create("b", active=True), create("c"))
    error = refused(stage, activate("c", 1))
    assert (error.reason, error.metadata["active_nodes"]) == (Reason.NAMESPACE_TOO_LARGE, "3")
    stage.apply(activate("c", 1), set_status("a", 1, NodeStatus.ARCHIVED))


def test_a_namespace_over_its_bytes_can_still_shrink(stage, monkeypatch):
    stage.apply(create("a", "12345", active=True), create("b", "12345", active=True))
    monkeypatch.setattr(staging, "NAMESPACE_MAX_ACTIVE_BYTES", 4)
    error = refused(stage, revise("a", 1, "123456"))
    assert (error.reason, error.metadata["active_bytes"]) == (Reason.NAMESPACE_TOO_LARGE, "11")
    stage.apply(revise("a", 1, "1234"))
    stage.apply(set_status("b", 1, NodeStatus.ARCHIVED))
    assert stage.head.active_bytes == 4


def test_a_change_set_names_every_node_and_all_evidence_that_staging_has_to_see():
    change_set = ChangeSet(
        operations=(
            create("a", relations=(Relation(RelationKind.RELATED_TO, "b"),), sources=(evidence("e"),)),
            relate("c", 1, Relation(RelationKind.RELATED_TO, "d")),
            RemoveRelation(node_id="e", expected_revision=1, relation=Relation(RelationKind.RELATED_TO, "f")),
            corroborate("g", 1, "e"),
            set_status("h", 1, NodeStatus.ARCHIVED),
        )
    )
    assert change_set.node_ids() == set("abcdefgh")
    assert change_set.offered_evidence() == {(name, "test:e", evidence("e").digest) for name in "ag"}
