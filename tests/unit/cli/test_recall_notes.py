"""What the command `recall` tells a person about vectors that were not there."""

import io

import pytest
from rich.console import Console

from durable_memory.adapters.runtime import SystemClock
from durable_memory.cli.output import Output
from durable_memory.cli.recalling import _note_what_was_missing
from durable_memory.cli.times import Times
from durable_memory_client import Degradation, DegradationReason, Namespace, Recall, SemanticSearch


def _noted(recall: Recall) -> str:
    output = Output(as_json=False, times=Times(SystemClock(), None))
    written = io.StringIO()
    output.errors = Console(file=written, force_terminal=True, no_color=True, color_system=None, width=200)
    _note_what_was_missing(output, recall)
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


@pytest.mark.parametrize(
    ("recall", "noted"),
    [
        (_recall(), ""),
        (_recall(unindexed=0), ""),
        (_recall(unindexed=3), "3 of them searched by words only: durable-memory index refresh"),
        (_recall(DegradationReason.SEMANTIC_NOT_CONFIGURED), ""),
        (
            _recall(DegradationReason.INDEX_NOT_BUILT),
            "searched by words; to search by meaning too: durable-memory index refresh",
        ),
        (_recall(DegradationReason.PROVIDER_FAILED), "why it was by words"),
    ],
)
def test_a_person_is_told_what_would_help_and_not_what_was_chosen(recall: Recall, noted: str):
    assert _noted(recall) == noted
