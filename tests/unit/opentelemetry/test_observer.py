"""The observer of the use cases: each event is a measurement with attributes out of closed lists."""

import pytest

from durable_memory.adapters.opentelemetry import OpenTelemetryObserver
from durable_memory.adapters.runtime import SystemClock
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.ports.observing import UNOBSERVED
from tests.measured import Measured

_SECRET = "the content of a memory"
_PARTITION, _AUTHORITY = "p" * 64, "a" * 64


@pytest.fixture
def measured():
    measured = Measured()
    yield measured
    measured.close()


@pytest.fixture
def observer(measured):
    return OpenTelemetryObserver(measured.telemetry.tracer, measured.telemetry.meter, SystemClock())


def test_hits_are_counted_by_channel(measured, observer):
    observer.recall_answered(iter(["HYBRID", "LEXICAL", "HYBRID"]))
    observer.recall_answered(["RELATED"])
    assert measured.points("recall.hits") == {("HYBRID",): 2, ("LEXICAL",): 1, ("RELATED",): 1}


def test_what_a_recall_went_without_is_counted_by_mode_and_reason(measured, observer):
    observer.recall_degraded(mode="AUTO", reason="INDEX_REGRESSED")
    assert measured.points("recall.degraded") == {("AUTO", "INDEX_REGRESSED"): 1}


def test_vectors_are_counted_by_what_became_of_them(measured, observer):
    for _ in range(2):
        observer.vectors_searched(searched=10, dropped=3, refilled=2)
    assert measured.points("recall.vectors") == {("searched",): 20, ("dropped",): 6, ("refilled",): 4}


def test_cached_vectors_are_counted(measured, observer):
    observer.embeddings_cached(hits=3, misses=1)
    assert measured.points("embedding.cache") == {("hit",): 3, ("miss",): 1}


def test_each_state_of_an_unfit_index_has_a_counter(measured, observer):
    observer.index_unserved("REGRESSED")
    observer.index_unserved("CORRUPTED")
    observer.index_unserved("CORRUPTED")
    assert measured.value("index.regressed") == 1
    assert measured.value("index.corrupted") == 2


def test_lost_leases_are_counted(measured, observer):
    observer.lease_lost()
    assert measured.value("lease.lost") == 1


def test_a_refresh_that_fails_is_a_failed_span_without_the_words_of_the_error(measured, observer):
    with pytest.raises(DomainError), observer.refreshing(_PARTITION, _AUTHORITY):
        raise DomainError(Reason.SOURCE_DRIFT, _SECRET, node_id=_SECRET)
    with pytest.raises(ValueError), observer.refreshing(_PARTITION, _AUTHORITY):
        raise ValueError(_SECRET)

    first, second = measured.spans
    assert dict(first.attributes) == {
        "durable_memory.partition": _PARTITION,
        "durable_memory.authority_digest": _AUTHORITY,
        "error.type": "SOURCE_DRIFT",
    }
    assert second.attributes["error.type"] == "INTERNAL"
    assert measured.points("refresh.duration") == {("SOURCE_DRIFT",): 1, ("INTERNAL",): 1}
    assert _SECRET not in measured.text()


def test_without_an_observer_a_refresh_runs_all_the_same():
    with UNOBSERVED.refreshing(_PARTITION, _AUTHORITY) as notes:
        assert notes.receipt is None
