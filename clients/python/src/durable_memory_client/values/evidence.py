"""Where memories come from, and who decides on them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

from durable_memory_client.values.enums import DecisionKind, EvidenceKind
from durable_memory_client.values.times import time_of, to_timestamp
from durable_memory_client.values.wire import not_unicode, number_of, stated
from durablememory.v1 import decision_pb2, node_pb2


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A reference to a source. The service keeps the reference and the digest, never the body.

    `uri`: names the source, 1..2,048 bytes, unique in its memory. As input exactly one of `body` (the source's raw
    bytes, up to 1 MiB) and `digest` (`sha256:` and 64 lower-case hexadecimal digits); what the service returns has
    the digest. `occurred_at`: when the source came to be; default: the time of the change.

    Raises: ValueError for both a body and a digest.
    """

    uri: str
    kind: EvidenceKind
    digest: str | None = None
    body: bytes | None = None
    occurred_at: datetime | None = None

    def __post_init__(self) -> None:
        if self.body is not None and self.digest is not None:
            raise ValueError("evidence has a body or a digest, and not both")

    @classmethod
    def session_turn(
        cls, session_id: str, run_id: str, body: str | bytes, *, occurred_at: datetime | None = None
    ) -> Evidence:
        """What was said in a turn: `session:<session id>/turn/<run id>`."""
        uri = f"session:{quote(session_id, safe='')}/turn/{quote(run_id, safe='')}"
        return cls(uri=uri, kind=EvidenceKind.SESSION_TURN, body=_bytes(body), occurred_at=occurred_at)

    @classmethod
    def user_statement(cls, uri: str, body: str | bytes, *, occurred_at: datetime | None = None) -> Evidence:
        """What the user said."""
        return cls(uri=uri, kind=EvidenceKind.USER_STATEMENT, body=_bytes(body), occurred_at=occurred_at)

    @classmethod
    def tool_result(cls, uri: str, body: str | bytes, *, occurred_at: datetime | None = None) -> Evidence:
        """What a tool returned."""
        return cls(uri=uri, kind=EvidenceKind.TOOL_RESULT, body=_bytes(body), occurred_at=occurred_at)

    @classmethod
    def artifact(cls, uri: str, body: str | bytes, *, occurred_at: datetime | None = None) -> Evidence:
        """What stands in a file, page or other document."""
        return cls(uri=uri, kind=EvidenceKind.ARTIFACT, body=_bytes(body), occurred_at=occurred_at)

    @classmethod
    def from_proto(cls, message: node_pb2.Evidence) -> Evidence:
        return cls(
            uri=message.uri,
            kind=EvidenceKind.from_number(message.kind),
            digest=message.digest if message.HasField("digest") else None,
            body=message.body if message.HasField("body") else None,
            occurred_at=time_of(message, "occurred_at"),
        )

    def to_proto(self) -> node_pb2.Evidence:
        return stated(
            node_pb2.Evidence,
            uri=self.uri,
            kind=number_of(EvidenceKind, self.kind, "kind"),
            digest=self.digest,
            body=self.body,
            occurred_at=to_timestamp(self.occurred_at, "evidence.occurred_at"),
        )


def evidence_to_proto(evidence: Iterable[Evidence]) -> list[node_pb2.Evidence]:
    return [reference.to_proto() for reference in evidence]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Who decides that a memory may be used, and why; the service makes MANUAL or VERIFICATION evidence of it.

    `decider`: the person, by default the authenticated caller; or the rule, as `rule:<name>@<version>`.
    `note`: for whoever reads the history later, up to 1,024 bytes; no secrets, no copy of the content.
    """

    kind: DecisionKind
    decider: str = ""
    note: str = ""

    @classmethod
    def manual(cls, decider: str = "", *, note: str = "") -> Decision:
        """A person looked at it."""
        return cls(kind=DecisionKind.MANUAL, decider=decider, note=note)

    @classmethod
    def by_rule(cls, name: str, version: str | int, *, note: str = "") -> Decision:
        """A named and versioned rule checked it, without a person."""
        return cls(kind=DecisionKind.VERIFICATION, decider=f"rule:{name}@{version}", note=note)

    def to_proto(self) -> decision_pb2.Decision:
        return stated(
            decision_pb2.Decision, kind=number_of(DecisionKind, self.kind, "kind"), decider=self.decider, note=self.note
        )


def decision_to_proto(decision: Decision | None) -> decision_pb2.Decision | None:
    return None if decision is None else decision.to_proto()


def _bytes(body: str | bytes) -> bytes:
    if not isinstance(body, str):
        return body
    try:
        return body.encode()
    except UnicodeEncodeError as error:
        raise not_unicode("body", error) from None
