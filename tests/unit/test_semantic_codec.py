"""Rows of semantic records and their values: what is written into columns is what is read out of them."""

from datetime import UTC

import pytest
from hypothesis import given
from hypothesis import strategies as st

from durable_memory.adapters.codec import decode_json, encode_json
from durable_memory.adapters.semantic_codec import SemanticCodec
from durable_memory.domain.canonical import from_micros, to_micros
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.namespace import Namespace
from durable_memory.ports.semantic_records import (
    SCHEDULE_SECONDS_MAX,
    Intent,
    MaintenanceRun,
    Receipt,
    RefreshWork,
    RunOutcome,
    Schedule,
)
from tests.conformance.semantic_records.samples import generation, intent, maintenance_run, partition, receipt, schedule

CODECS = {
    "integers": SemanticCodec(to_micros, from_micros),
    "times": SemanticCodec(lambda time: time, lambda time: time),
}
GENERATION = generation("codec")
PARTITION = partition(Namespace("acme", "user-1", "assistant"), GENERATION)

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
times = st.datetimes(timezones=st.just(UTC))
counts = st.integers(0, 2**53 - 1)
seconds = st.floats(0, SCHEDULE_SECONDS_MAX, exclude_min=True)
work = st.builds(RefreshWork, **dict.fromkeys(RefreshWork.__dataclass_fields__, counts))

intents = st.builds(
    Intent,
    fence=counts,
    nonce=texts,
    expected_index_revision=counts,
    history_digest=texts,
    source_history_id=texts,
    source_revision=counts,
    active_count=counts,
    work=work,
    started_at=times,
)
receipts = st.builds(
    Receipt,
    authority_digest=texts,
    fence=counts,
    index_revision=counts,
    history_digest=texts,
    source_history_id=texts,
    source_revision=counts,
    active_count=counts,
    indexed_count=counts,
    consistency=texts,
    work=work,
    at=times,
    completed_by_successor=st.booleans(),
)
runs = st.builds(
    MaintenanceRun,
    started_at=times,
    ended_at=times,
    outcome=st.sampled_from(RunOutcome),
    error=texts,
    index_revision=counts,
    fence=counts,
)
schedules = st.builds(
    Schedule,
    authority_digest=texts,
    interval_seconds=st.none() | seconds,
    on_change_delay_seconds=st.none() | seconds,
    set_by=texts,
    set_at=times,
)


@pytest.fixture(params=CODECS)
def codec(request) -> SemanticCodec:
    return CODECS[request.param]


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
@given(intents, receipts, runs, schedules)
def test_what_is_written_is_what_is_read(codec, intent_, receipt_, run, schedule_):
    assert codec.intent(codec.intent_columns(intent_)) == intent_
    columns = {"authority_digest": receipt_.authority_digest, **codec.receipt_columns(receipt_)}
    assert codec.receipt(columns) == receipt_
    assert codec.run(codec.run_columns(run)) == run
    assert codec.schedule(codec.schedule_columns(schedule_)) == schedule_


ROWS = {
    "intent": lambda codec: codec.intent_columns(intent(1)),
    "receipt": lambda codec: {"authority_digest": "a", **codec.receipt_columns(receipt(PARTITION, 1))},
    "run": lambda codec: codec.run_columns(maintenance_run()),
    "schedule": lambda codec: codec.schedule_columns(schedule(GENERATION, 60.0)),
}


@pytest.mark.parametrize(
    ("kind", "column", "damaged"),
    [
        ("intent", "work", "{"),
        ("intent", "work", '{"added": "many"}'),
        ("intent", "work", "7"),
        ("receipt", "work", "[]garbage"),
        ("receipt", "at", "yesterday"),
        ("run", "outcome", 99),
        ("run", "error", "e" * 201),
        ("schedule", "interval_seconds", -1.0),
        ("schedule", "on_change_delay_seconds", "soon"),
    ],
)
def test_what_cannot_be_understood_is_damaged(kind, column, damaged):
    codec = CODECS["integers"]
    with pytest.raises(DomainError) as refusal:
        getattr(codec, kind)({**ROWS[kind](codec), column: damaged})
    assert refusal.value.reason is Reason.DATA_CORRUPTED


def test_counts_that_another_version_keeps_are_left_out_and_those_it_lacks_are_none(codec):
    columns = codec.intent_columns(intent(1))
    held = decode_json(columns["work"])
    del held["cache_hits"]
    read = codec.intent({**columns, "work": encode_json({**held, "retries": 3})})
    assert (read.work.cache_hits, read.work.provider_calls) == (0, intent(1).work.provider_calls)
