"""Evidence: offered, merged, replaced, and made by the server for decisions."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.evidence import (
    DecisionInput,
    Evidence,
    EvidenceInput,
    EvidenceKind,
    body_digest,
    check_unique_uris,
    merge_evidence,
)
from tests.conformance.samples import NOW, evidence

DIGEST = f"sha256:{'0' * 64}"


def held(number: int, kind: EvidenceKind = EvidenceKind.USER_STATEMENT, digest: str = DIGEST) -> Evidence:
    return Evidence(uri=f"u:{number}", digest=digest, kind=kind, occurred_at=NOW)


def refusal(call, *args, **kwargs) -> DomainError:
    with pytest.raises(DomainError) as caught:
        call(*args, **kwargs)
    return caught.value


def test_a_body_is_hashed_as_its_raw_bytes():
    offered = EvidenceInput.checked("e", uri="u", kind=EvidenceKind.ARTIFACT, body=b"")
    assert offered.digest == "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert EvidenceInput.checked("e", uri="u", kind=EvidenceKind.ARTIFACT, digest=offered.digest) == offered


@pytest.mark.parametrize(
    ("source", "reason", "field"),
    [
        ({}, Reason.INVALID_FIELD, "e.source"),
        ({"digest": DIGEST, "body": b"x"}, Reason.INVALID_FIELD, "e.source"),
        ({"digest": "0" * 64}, Reason.INVALID_FIELD, "e.digest"),
        ({"digest": DIGEST.upper()}, Reason.INVALID_FIELD, "e.digest"),
        ({"digest": DIGEST + "0"}, Reason.INVALID_FIELD, "e.digest"),
        ({"digest": DIGEST + "\n"}, Reason.INVALID_FIELD, "e.digest"),
        ({"body": b"x" * 1_048_577}, Reason.LIMIT_EXCEEDED, "e.body"),
        ({"uri": "", "body": b"x"}, Reason.INVALID_FIELD, "e.uri"),
        ({"uri": "u" * 2_049, "body": b"x"}, Reason.LIMIT_EXCEEDED, "e.uri"),
        ({"uri": "a\nb", "body": b"x"}, Reason.INVALID_FIELD, "e.uri"),
    ],
)
def test_evidence_out_of_form_is_refused(source, reason, field):
    error = refusal(EvidenceInput.checked, "e", **{"uri": "u", "kind": EvidenceKind.ARTIFACT, **source})
    assert (error.reason, error.metadata["field"]) == (reason, field)


def test_absent_times_become_those_of_the_change_set():
    later = NOW + timedelta(seconds=1)
    assert evidence("x").at(NOW).occurred_at == NOW
    stated = EvidenceInput(uri="u", digest=DIGEST, kind=EvidenceKind.ARTIFACT, occurred_at=later)
    assert stated.at(NOW).occurred_at == later


@given(
    st.lists(st.integers(0, 80), max_size=64, unique=True),
    st.lists(st.integers(0, 80), max_size=64, unique=True),
    st.sets(st.integers(0, 80)),
)
def test_merged_evidence_is_bounded_unique_and_holds_everything_new(old, new, deciding):
    def kind(number: int) -> EvidenceKind:
        return EvidenceKind.MANUAL if number in deciding else EvidenceKind.ARTIFACT

    arriving = [held(number, kind(number), digest=f"sha256:{'1' * 64}") for number in new]
    before = [held(number, kind(number)) for number in old]
    merged = merge_evidence("evidence", before, arriving)
    uris = [item.uri for item in merged]
    assert len(uris) == len(set(uris)) <= 64
    assert merged[len(merged) - len(arriving) :] == tuple(arriving)
    kept = [item for item in merged if item in before]
    assert kept == [item for item in before if item in kept]
    gone = [item for item in before if item.uri not in uris]
    if any(item.kind.decides for item in gone):
        assert all(item.kind.decides for item in kept)


def test_the_oldest_that_is_no_decision_leaves_first():
    full = [held(0, EvidenceKind.MANUAL), held(1), *(held(number) for number in range(2, 64))]
    merged = merge_evidence("evidence", full, [held(99)])
    assert [item.uri for item in merged[:2]] == ["u:0", "u:2"]


def test_where_all_are_decisions_the_oldest_leaves():
    full = [held(number, EvidenceKind.VERIFICATION) for number in range(64)]
    merged = merge_evidence("evidence", full, [held(99)])
    assert (merged[0].uri, merged[-1].uri) == ("u:1", "u:99")


def test_one_call_cannot_bring_more_than_a_node_holds():
    assert refusal(merge_evidence, "e", [], [held(number) for number in range(65)]).reason is Reason.LIMIT_EXCEEDED
    offered = [evidence(str(number)) for number in range(65)]
    assert refusal(check_unique_uris, "e", offered).reason is Reason.LIMIT_EXCEEDED


def test_one_call_cannot_bring_one_uri_twice():
    error = refusal(check_unique_uris, "evidence", [evidence("a"), evidence("b"), evidence("a")])
    assert (error.reason, error.metadata["field"]) == (Reason.INVALID_FIELD, "evidence[2].uri")


@pytest.mark.parametrize(
    ("kind", "decider", "field"),
    [
        (EvidenceKind.ARTIFACT, "user-1", "d.kind"),
        (EvidenceKind.VERIFICATION, "", "d.decider"),
        (EvidenceKind.VERIFICATION, "user-1", "d.decider"),
        (EvidenceKind.VERIFICATION, "rule:no-version", "d.decider"),
        (EvidenceKind.VERIFICATION, "rule:a b@1", "d.decider"),
        (EvidenceKind.MANUAL, "rule:name@1", "d.decider"),
        (EvidenceKind.MANUAL, "a\0b", "d.decider"),
    ],
)
def test_decisions_out_of_form_are_refused(kind, decider, field):
    error = refusal(DecisionInput.checked, "d", kind=kind, decider=decider)
    assert (error.reason, error.metadata["field"]) == (Reason.INVALID_FIELD, field)


def test_a_decision_becomes_evidence_of_its_own_for_every_request():
    decision = DecisionInput.checked("d", kind=EvidenceKind.MANUAL, decider="user-1", note="looks right")
    made = decision.evidence("service", "Remember", "request-1")
    assert made.kind is EvidenceKind.MANUAL
    assert made.uri.startswith("dm:decision/user-1/")
    assert made == decision.evidence("service", "Remember", "request-1")
    others = [
        decision.evidence("other", "Remember", "request-1"),
        decision.evidence("service", "ReviseMemory", "request-1"),
        decision.evidence("service", "Remember", "request-2"),
        DecisionInput(kind=EvidenceKind.MANUAL, decider="user-1").evidence("service", "Remember", "request-1"),
    ]
    assert len({(item.uri, item.digest) for item in [made, *others]}) == 5


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=256))
def test_the_evidence_of_a_decision_is_always_in_form(decider):
    made = DecisionInput(kind=EvidenceKind.MANUAL, decider=decider).evidence("caller", "Remember", "r")
    assert EvidenceInput.checked("e", uri=made.uri, kind=made.kind, digest=made.digest) == made


def test_the_decider_is_the_caller_where_nobody_else_is_named():
    decision = DecisionInput.checked("d", kind=EvidenceKind.MANUAL, decider="")
    assert decision.evidence("service", "Remember", "r").uri.startswith("dm:decision/service/")


def test_a_digest_names_its_bytes():
    assert body_digest(b"a") != body_digest(b"b")
