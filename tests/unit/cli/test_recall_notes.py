"""What the command `recall` tells about vectors that were not there."""

import io
import json

import pytest
from rich.console import Console

from durable_memory.adapters.runtime import SystemClock
from durable_memory.cli.output import Output
from durable_memory.cli.recalling import _say_what_was_missing
from durable_memory.cli.times import Times
from durable_memory_client import Degradation, DegradationReason, Namespace, Recall, RecallMode, SemanticSearch


def _said(recall: Recall, *, asked_for: RecallMode | None = None, as_json: bool = False, terminal: bool = True) -> str:
    output = Output(as_json=as_json, times=Times(SystemClock(), None))
    written = io.StringIO()
    output.errors = Console(
        file=written, force_terminal=terminal, no_color=True, color_system=None, width=200, highlight=False
    )
    _say_what_was_missing(output, recall, asked_for=asked_for)
    return written.getvalue().strip()


def _recall(reason: DegradationReason | None = None, unindexed: int | None = None) -> Recall:
    searched = SemanticSearch(
        index_revision=1,
        index_history_digest="",
        vectors_searched=2,
        candidates_dropped=0,
        candidates_refilled=0,
        unindexed_active_count=unindexed or 0,
    )
    return Recall(
        namespace=Namespace("acme", "user-1", "notes"),
        degradation=None if reason is None else Degradation(reason, "why it was by words"),
        semantic=None if unindexed is None else searched,
    )


_NOT_BUILT = "warning: searched by words; to search by meaning too: durable-memory index refresh"
_WITHOUT_VECTORS = _recall(DegradationReason.SEMANTIC_NOT_CONFIGURED)


@pytest.mark.parametrize(
    ("recall", "said"),
    [
        (_recall(), ""),
        (_recall(unindexed=0), ""),
        (_recall(unindexed=3), "3 of them searched by words only: durable-memory index refresh"),
        (_WITHOUT_VECTORS, ""),
        (_recall(DegradationReason.INDEX_NOT_BUILT), _NOT_BUILT),
        (_recall(DegradationReason.PROVIDER_FAILED), "warning: why it was by words"),
    ],
)
def test_a_person_is_told_what_would_help_and_not_what_was_chosen(recall: Recall, said: str):
    assert _said(recall) == said


@pytest.mark.parametrize(
    ("recall", "said"),
    [
        (_recall(), ""),
        (_recall(unindexed=3), ""),
        (_WITHOUT_VECTORS, ""),
        (_recall(DegradationReason.INDEX_NOT_BUILT), _NOT_BUILT),
        (_recall(DegradationReason.INDEX_UNAVAILABLE), "warning: why it was by words"),
    ],
)
def test_a_log_is_told_what_recall_went_without(recall: Recall, said: str):
    assert _said(recall, terminal=False) == said


def test_a_program_is_told_so_as_an_object():
    said = json.loads(_said(_recall(DegradationReason.DEADLINE), as_json=True, terminal=False))

    assert said == {"warning": {"reason": "DEADLINE", "message": "why it was by words"}}


def test_who_asks_for_a_mode_by_name_is_told_also_that_the_server_makes_no_vectors():
    assert _said(_WITHOUT_VECTORS, asked_for=RecallMode.AUTO) == "warning: why it was by words"
