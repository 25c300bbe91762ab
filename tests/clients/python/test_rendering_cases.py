"""Rendering gives byte for byte what it gives in every other language: clients/conformance/rendering.json."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from durable_memory_client import Citation, Hit, Namespace, cited, render
from durable_memory_client.values.enums import NodeKind, RecallChannel, Trust

_FILE = json.loads((Path(__file__).parents[3] / "clients/conformance/rendering.json").read_text("utf-8"))
_WHEN = datetime(2026, 1, 1, tzinfo=UTC)


def hit(row: dict[str, Any]) -> Hit:
    return Hit(
        namespace=Namespace(*row.get("namespace", ["acme", "user-1", "project-a"])),
        citation=Citation(namespace_revision=1, node_id="a", node_revision=1, content_digest="0" * 64),
        rank=1,
        score=1.0,
        channel=RecallChannel.LEXICAL,
        lexical=None,
        semantic=None,
        related_to=None,
        trust=Trust.UNTRUSTED_HISTORY,
        kind=NodeKind(row.get("kind", "SEMANTIC")),
        content=row["content"],
        surroundings=(),
        author=row.get("author", ""),
        occurred_at=datetime.fromisoformat(row["occurred_at"]).astimezone(UTC) if "occurred_at" in row else None,
        created_at=_WHEN,
        updated_at=_WHEN,
        confidence=1.0,
        importance=1.0,
        labels={},
        relations=(),
        disputed=row.get("disputed", False),
        age=timedelta(),
    )


@pytest.mark.parametrize("case", _FILE["render"], ids=lambda case: case["name"])
def test_rendering(case: dict[str, Any]) -> None:
    hits = [hit(row) for row in case["hits"]]
    block = render(hits, max_bytes=case["max_bytes"])
    assert block.text == case["text"]
    assert (len(block.hits), len(block.shortened), len(block.omitted)) == tuple(case["counts"])
    assert len(block.text.encode()) <= case["max_bytes"]


@pytest.mark.parametrize("case", _FILE["cited"], ids=lambda case: case["answer"])
def test_cited(case: dict[str, Any]) -> None:
    hits = [replace(hit({"content": str(place)}), rank=place) for place in range(1, case["hits"] + 1)]
    assert [found.rank for found in cited(case["answer"], hits)] == case["places"]
