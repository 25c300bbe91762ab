"""Rows of this adapter's tables: the shared codec with this database's times, and columns as arrays for unnest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final

from durable_memory.adapters.codec import Codec, Columns, Row, corrupted
from durable_memory.domain.canonical import digest_bytes
from durable_memory.domain.session import Context, Run
from durable_memory.domain.state import Head


def as_it_is(time: datetime) -> datetime:
    """What becomes of a time on its way to a column and back."""
    return time


CODEC: Final = Codec(from_time=as_it_is, to_time=as_it_is)
"""asyncpg takes and gives aware UTC times."""

NODE: Final = (
    "node_id", "revision", "kind", "status", "content", "content_digest", "surroundings", "author", "occurred_at",
    "confidence", "importance", "evidence", "relations", "labels", "created_at", "updated_at", "committed_at",
    "decided_by", "valid_from", "valid_to",
)  # fmt: skip
CHANGE_SET: Final = (
    "namespace_revision", "method", "request_id", "caller", "note", "occurred_at", "committed_at", "changes",
    "chain_digest",
)  # fmt: skip
REQUEST: Final = ("method", "key", "fingerprint", "result", "namespace_revision")
SETTLED: Final = ("method", "key", "result", "namespace_revision")
SESSION: Final = (
    "session_id", "binding", "binding_version", "request_digest", "state", "opened_by", "opened_at", "rebound_at",
    "closed_at",
)  # fmt: skip
BINDING: Final = ("session_id", "binding_version", "binding", "bound_at", "bound_by")
RUN: Final = (
    "session_id", "run_id", "incarnation", "host_instance", "state", "sequence", "context_id", "begun_by",
    "opened_at", "active_at", "ended_at",
)  # fmt: skip
CONTEXT: Final = ("context_id", "session_id", "run_id", "incarnation", "sequence")
EVENT: Final = ("event_id", "kind", "session_id", "context_id", "node_id", "revision", "caller", "at")

GREATEST: Final = 2**63 - 1


def arrays(names: Sequence[str], rows: Iterable[Columns]) -> list[list[Any]]:
    """One array per column, in the order of `names`: the arguments of an unnest."""
    held = list(rows)
    return [[row[name] for row in held] for name in names]


def bounded(revision: int) -> int:
    """A revision as the database can hold it; there is none beyond."""
    return min(revision, GREATEST)


def evidence_key(uri: str, digest: str) -> bytes:
    """32 bytes that stand for a piece of evidence, whose uri may be too long for an index and may be erased."""
    return digest_bytes("evidence-key/v1", uri.encode(), digest.encode())


def head_of(row: Row) -> Head:
    """Of a row of `namespace`."""
    return Head(
        history_id=row["history_id"],
        revision=row["revision"],
        chain_digest=row["chain_digest"],
        node_count=row["node_count"],
        active_count=row["active_count"],
        active_bytes=row["active_bytes"],
        session_revision=row["session_revision"],
    )


def context_and_run(row: Row) -> tuple[Context, Run]:
    """Of a row with the fragment `context_and_run`."""
    try:
        context = Context(
            context_id=row["of_context_id"],
            session_id=row["session_id"],
            run_id=row["run_id"],
            incarnation=row["incarnation"],
            sequence=row["of_sequence"],
        )
    except KeyError as error:
        raise corrupted("context") from error
    return context, CODEC.run(row)
