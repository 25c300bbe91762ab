"""Rows and values: what is written into columns is what is read out of them."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from durable_memory.adapters.codec import Codec
from durable_memory.domain.access import AccessEvent, AccessKind
from durable_memory.domain.canonical import from_micros, to_micros
from durable_memory.domain.change_set import ChangeSetRecord, NodeChange
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.evidence import Evidence, EvidenceKind
from durable_memory.domain.node import NodeKind, NodeRevision, NodeStatus, Relation, RelationKind
from durable_memory.domain.session import RunState
from durable_memory.ports.store import RequestKey, RequestRecord
from tests.conformance.samples import binding_record, run_with_context, session
from tests.conformance.test_isolation import ALIKE

NAMESPACE = ALIKE[0][0]
CODECS = {"integers": Codec(to_micros, from_micros), "times": Codec(lambda time: time, lambda time: time)}

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
times = st.datetimes(timezones=st.just(UTC))
fractions = st.floats(0, 1)
revisions = st.integers(1, 2**53 - 1)

evidence = st.builds(Evidence, uri=texts, digest=texts, kind=st.sampled_from(EvidenceKind), occurred_at=times)
nodes = st.builds(
    NodeRevision,
    node_id=texts,
    revision=revisions,
    kind=st.sampled_from(NodeKind),
    status=st.sampled_from(NodeStatus),
    content=texts,
    content_digest=texts,
    surroundings=st.lists(texts, max_size=4).map(tuple),
    author=texts,
    occurred_at=times,
    confidence=fractions,
    importance=fractions,
    evidence=st.lists(evidence, max_size=3).map(tuple),
    relations=st.lists(st.builds(Relation, st.sampled_from(RelationKind), texts), max_size=3).map(tuple),
    labels=st.dictionaries(texts, texts, max_size=3),
    created_at=times,
    updated_at=times,
    committed_at=times,
    decided_by=texts,
    valid_from=revisions,
    valid_to=st.none() | revisions,
)
changes = st.builds(
    NodeChange,
    node_id=texts,
    revision=revisions,
    content_digest=texts,
    content_changed=st.booleans(),
    revision_digest=texts,
    operations=st.lists(texts, max_size=3).map(tuple),
    status_before=st.none() | st.sampled_from(NodeStatus),
    status_after=st.sampled_from(NodeStatus),
)
records = st.builds(
    ChangeSetRecord,
    namespace_revision=revisions,
    method=texts,
    request_id=texts,
    caller=texts,
    note=texts,
    occurred_at=times,
    committed_at=times,
    changes=st.lists(changes, max_size=3).map(tuple),
    chain_digest=texts,
)
events = st.builds(
    AccessEvent,
    event_id=texts,
    kind=st.sampled_from(AccessKind),
    session_id=texts,
    context_id=texts,
    node_id=texts,
    revision=revisions,
    caller=texts,
    at=times,
)
results = st.dictionaries(texts, st.none() | st.booleans() | st.integers() | texts | st.lists(texts, max_size=2))
requests = st.builds(
    RequestRecord,
    request=st.builds(RequestKey, method=texts, key=texts, fingerprint=texts),
    result=results,
    namespace_revision=revisions,
)

codecs = pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)


@codecs
@given(node=nodes)
def test_node_revisions_survive(codec, node):
    read = codec.node_revision(codec.node_revision_columns(node))
    assert read == node
    assert read.digest() == node.digest()


@codecs
@given(record=records, event=events, request=requests)
def test_records_events_and_requests_survive(codec, record, event, request):
    assert codec.change_set(codec.change_set_columns(record)) == record
    assert codec.event(codec.event_columns(event)) == event
    assert codec.request(codec.request_columns(request)) == request


@codecs
def test_sessions_and_runs_survive(codec):
    opened = session(NAMESPACE)
    run, context = run_with_context()
    assert codec.session(codec.session_columns(opened)) == opened
    assert codec.binding(codec.binding_columns(binding_record(opened))) == binding_record(opened)
    assert codec.run(codec.run_columns(run)) == run
    assert codec.context(codec.context_columns(context)) == context


def _node_columns() -> dict:
    time = datetime(2030, 1, 1, tzinfo=UTC)
    node = NodeRevision(
        node_id="n",
        revision=1,
        kind=NodeKind.SEMANTIC,
        status=NodeStatus.ACTIVE,
        content="text",
        content_digest="0" * 64,
        occurred_at=time,
        created_at=time,
        updated_at=time,
        committed_at=time,
        valid_from=1,
    )
    return CODECS["integers"].node_revision_columns(node)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("status", 0),
        ("status", 7),
        ("kind", None),
        ("evidence", "[1]"),
        ("evidence", "{}"),
        ("evidence", '[{"uri": "u", "digest": "d", "kind": 9, "occurred_at": 0}]'),
        ("evidence", "not json"),
        ("relations", "[{}]"),
        ("relations", "null"),
        ("labels", "[]"),
        ("surroundings", '{"a": 1}'),
        ("occurred_at", None),
        ("committed_at", 2**70),
    ],
)
def test_what_cannot_be_understood_is_corrupt(column, value):
    with pytest.raises(DomainError) as failure:
        CODECS["integers"].node_revision({**_node_columns(), column: value})
    assert failure.value.reason is Reason.DATA_CORRUPTED
    assert failure.value.metadata == {"what": "node revision"}


def test_a_binding_of_a_newer_version_is_drift_and_not_damage():
    codec = CODECS["integers"]
    columns = codec.session_columns(session(NAMESPACE))
    newer = columns["binding"].replace('"schema_version":1', '"schema_version":2')
    with pytest.raises(DomainError) as failure:
        codec.session({**columns, "binding": newer})
    assert failure.value.reason is Reason.BINDING_DRIFT


def test_a_run_in_a_state_of_a_newer_version_is_refused():
    codec = CODECS["integers"]
    run, _ = run_with_context()
    with pytest.raises(DomainError):
        codec.run({**codec.run_columns(run), "state": max(RunState) + 1})
