"""Evidence: why a memory may be believed, by reference.

The kernel keeps where the source is and what its bytes hash to, never the bytes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from typing import Final
from urllib.parse import quote

from durable_memory.domain.canonical import JsonObject, digest_json, time_text
from durable_memory.domain.errors import DomainError, Reason, invalid_field, limit_exceeded
from durable_memory.domain.limits import (
    EVIDENCE_BODY_MAX_BYTES,
    EVIDENCE_MAX_COUNT,
    EVIDENCE_URI_MAX_BYTES,
    NAME_MAX_BYTES,
    NOTE_MAX_BYTES,
)
from durable_memory.domain.text import check_name, check_text

_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_RULE: Final = re.compile(r"rule:[^\s@]+@[^\s@]+")


class EvidenceKind(IntEnum):
    """Numbers equal the contract's and the stores'."""

    USER_STATEMENT = 1
    TOOL_RESULT = 2
    ARTIFACT = 3
    SESSION_TURN = 4
    VERIFICATION = 5
    MANUAL = 6

    @property
    def decides(self) -> bool:
        """Whether evidence of this kind can let a node become or stay ACTIVE."""
        return self in (EvidenceKind.VERIFICATION, EvidenceKind.MANUAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A reference to a source: `uri`, `sha256:<64 hex>` of its raw bytes, kind, and when it came to be."""

    uri: str
    digest: str
    kind: EvidenceKind
    occurred_at: datetime

    @property
    def identity(self) -> tuple[str, str]:
        """Two references with equal uri and digest are the same evidence."""
        return (self.uri, self.digest)

    def canonical(self) -> JsonObject:
        return {
            "digest": self.digest,
            "kind": self.kind.name,
            "occurred_at": time_text(self.occurred_at),
            "uri": self.uri,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceInput:
    """Evidence as a caller offers it; an absent time becomes that of the change set."""

    uri: str
    digest: str
    kind: EvidenceKind
    occurred_at: datetime | None = None

    @classmethod
    def checked(
        cls,
        field: str,
        *,
        uri: str,
        kind: EvidenceKind,
        digest: str | None = None,
        body: bytes | None = None,
        occurred_at: datetime | None = None,
    ) -> EvidenceInput:
        """Exactly one of `digest` and `body`; a body is hashed here and goes no further.

        Raises: INVALID_FIELD, LIMIT_EXCEEDED.
        """
        check_name(f"{field}.uri", uri, EVIDENCE_URI_MAX_BYTES)
        if (digest is None) == (body is None):
            raise invalid_field(f"{field}.source", "needs either a digest or a body")
        if body is not None:
            if len(body) > EVIDENCE_BODY_MAX_BYTES:
                raise limit_exceeded(f"{field}.body", EVIDENCE_BODY_MAX_BYTES, len(body), "bytes")
            digest = body_digest(body)
        if digest is None or not _DIGEST.fullmatch(digest):
            raise invalid_field(f"{field}.digest", "is not sha256: and 64 lower-case hexadecimal digits")
        return cls(uri=uri, digest=digest, kind=kind, occurred_at=occurred_at)

    def at(self, default: datetime) -> Evidence:
        return Evidence(uri=self.uri, digest=self.digest, kind=self.kind, occurred_at=self.occurred_at or default)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionInput:
    """Who decided, and why: what the server turns into MANUAL or VERIFICATION evidence.

    `decider` is a person's id for MANUAL and `rule:<name>@<version>` for VERIFICATION; empty means the caller.
    """

    kind: EvidenceKind
    decider: str
    note: str = ""

    @classmethod
    def checked(cls, field: str, *, kind: EvidenceKind, decider: str, note: str = "") -> DecisionInput:
        """Raises: INVALID_FIELD, LIMIT_EXCEEDED."""
        if not kind.decides:
            raise invalid_field(f"{field}.kind", "is neither MANUAL nor VERIFICATION")
        if decider:
            check_name(f"{field}.decider", decider, NAME_MAX_BYTES)
        if kind is EvidenceKind.VERIFICATION and not _RULE.fullmatch(decider):
            raise invalid_field(f"{field}.decider", "of a VERIFICATION is not rule:<name>@<version>")
        if kind is EvidenceKind.MANUAL and decider.startswith("rule:"):
            raise invalid_field(f"{field}.decider", "names a rule, so the kind is VERIFICATION")
        return cls(
            kind=kind,
            decider=decider,
            note=check_text(f"{field}.note", note, NOTE_MAX_BYTES, blank_allowed=True),
        )

    def evidence(self, caller: str, method: str, request_id: str) -> EvidenceInput:
        """Evidence that names decider, caller and request; its digest covers the note as well.

        Request ids are unique within a method only, so the method is part of what makes each decision new.
        """
        decider = self.decider or caller
        body: JsonObject = {
            "caller": caller,
            "decider": decider,
            "kind": self.kind.name,
            "method": method,
            "note": self.note,
            "request_id": request_id,
        }
        request = digest_json("decision-request/v1", [method, request_id])[:32]
        return EvidenceInput(
            uri=f"dm:decision/{quote(decider[:128], safe=':@')}/{request}",
            digest=f"sha256:{digest_json('decision/v1', body)}",
            kind=self.kind,
        )


def body_digest(body: bytes) -> str:
    """The digest of a source's raw bytes, in the form that evidence carries."""
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


def merge_evidence(field: str, held: Sequence[Evidence], new: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """What a revision holds after `new` was added to `held`, in order of arrival.

    A new digest for a URI replaces the reference, also one that came in the same call, as URIs are unique in a node.
    Over `EVIDENCE_MAX_COUNT` the oldest reference that is no decision leaves (it stays in history); if all are
    decisions, the oldest of those. So no node becomes unchangeable.

    Raises: LIMIT_EXCEEDED if one call brings more than a node can hold.
    """
    arriving = {item.uri: item for item in new}
    if len(arriving) > EVIDENCE_MAX_COUNT:
        raise limit_exceeded(field, EVIDENCE_MAX_COUNT, len(arriving), "items")
    merged = [item for item in held if item.uri not in arriving] + list(arriving.values())
    while len(merged) > EVIDENCE_MAX_COUNT:
        candidates = merged[: len(merged) - len(arriving)] or merged
        leaving = next((item for item in candidates if not item.kind.decides), candidates[0])
        merged.remove(leaving)
    return tuple(merged)


def check_unique_uris(field: str, evidence: Sequence[EvidenceInput]) -> None:
    """Raises: INVALID_FIELD if one URI occurs twice, LIMIT_EXCEEDED if there are too many."""
    if len(evidence) > EVIDENCE_MAX_COUNT:
        raise limit_exceeded(field, EVIDENCE_MAX_COUNT, len(evidence), "items")
    seen: set[str] = set()
    for index, item in enumerate(evidence):
        if item.uri in seen:
            raise invalid_field(f"{field}[{index}].uri", "occurs twice")
        seen.add(item.uri)


def evidence_required(node_id: str) -> DomainError:
    """EVIDENCE_REQUIRED, with the kinds that would do."""
    return DomainError(
        Reason.EVIDENCE_REQUIRED,
        f"node {node_id} needs new MANUAL or VERIFICATION evidence to be ACTIVE with this status and content",
        node_id=node_id,
        accepted_kinds="MANUAL,VERIFICATION",
    )
