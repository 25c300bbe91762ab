"""What is embedded of a node."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from durable_memory.domain.node import NodeKind, NodeRevision, NodeStatus
from durable_memory.domain.semantic.embedded_text import EMBEDDED_TEXT_MAX_BYTES, cut, embedded_text

_NOW = datetime(2026, 1, 1, tzinfo=UTC)
_LONG = "x" * EMBEDDED_TEXT_MAX_BYTES


def _text(content: str, author: str = "", *surroundings: str) -> str:
    return embedded_text(
        NodeRevision(
            node_id="n",
            revision=1,
            kind=next(iter(NodeKind)),
            status=NodeStatus.ACTIVE,
            content=content,
            content_digest="",
            author=author,
            surroundings=surroundings,
            occurred_at=_NOW,
            created_at=_NOW,
            updated_at=_NOW,
            committed_at=_NOW,
            valid_from=1,
        )
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (_text("Yes."), "Yes."),
        (_text("Yes.", "Ann"), "Ann: Yes."),
        (_text("Yes.", "Ann", "Ben: Friday?", "Ben: Hello."), "Ben: Friday?\nAnn: Yes."),
        (_text(_LONG + "y", "", "before"), _LONG),
        (_text("own", "", _LONG), _LONG[: -len("\nown")] + "\nown"),
    ],
)
def test_the_nearest_surrounding_then_author_and_content_within_the_cap(text, expected):
    assert text == expected


def test_space_around_the_content_is_not_what_the_cut_leaves():
    assert _text(" " * (2 * EMBEDDED_TEXT_MAX_BYTES) + "after much space\n") == "after much space"


@given(st.text(max_size=20), st.integers(0, 40))
def test_a_cut_is_the_longest_start_of_whole_characters_that_fits(text, max_bytes):
    start = cut(text, max_bytes)
    assert text.startswith(start)
    assert len(start.encode()) <= max_bytes
    assert start == text or len(text[: len(start) + 1].encode()) > max_bytes
