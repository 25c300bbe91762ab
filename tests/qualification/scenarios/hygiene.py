"""Row 11: what a run leaves behind tells nothing that was entrusted to it."""

from __future__ import annotations

import asyncio
import base64
import random
import string
import time
from collections.abc import AsyncIterator, Awaitable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from durable_memory_client import (
    Create,
    Decision,
    Draft,
    Evidence,
    EvidenceKind,
    MemoryClient,
    MemoryServiceError,
    RecallMode,
)
from tests.processes.polling import wait_until_async
from tests.qualification.checks.hygiene import Forbidden, Scanned, Scanner, Traces, scan
from tests.qualification.cluster.cluster import Cluster
from tests.qualification.scenarios.stage import Stage

_TOO_LONG: Final = 70_000
"""Bytes of a text that is refused."""
_TELEMETRY_SECONDS: Final = 180.0
_TOKEN_CHARACTERS: Final = 40
_CAVEATS: Final = (
    "Databases hold what they are for, and backups of them too: only logs, metrics, spans and reports were scanned.",
    "Bytes were scanned as they are, in base64, hexadecimal, percent-encoded and in escapes; not in compressed form.",
    "Names of tenants, principals, scopes, sessions and memories are no content: logs and spans may hold them.",
)


class Hygiene:
    """Says everything that could be repeated where it must not be, gets it refused in many ways, and then looks."""

    row = 11
    name = "hygiene"
    promise = "reports, logs, metrics and spans hold no credential and no memory or query text"

    async def run(self, stage: Stage) -> None:
        stage.result.caveats += _CAVEATS
        told = _Told(stage)
        await told.everything()
        await _telemetry_of_it(stage.cluster, time.time())
        traces = stage.traces() | Traces(forbidden=told.forbidden)
        found = await asyncio.to_thread(scan, traces)
        _judge(stage, found, traces)
        stage.found("no error repeats what was sent", len(told.refusals), told.repeated())


def _judge(stage: Stage, found: Scanned, traces: Traces) -> None:
    cluster = stage.cluster
    stage.found("no credential and no text in logs, metrics and spans", found.bytes, found.problems)
    silent = [server.name for server in cluster.servers if not server.log_text().strip()]
    stage.found("every server has a log", len(cluster.servers), [f"{name} has none" for name in silent])
    metrics, spans = len(cluster.telemetry.metric_names), sum(1 for _ in cluster.telemetry.spans())
    stage.found("metrics came in", metrics, [])
    stage.found("spans came in", spans, [])
    stage.found("the scan finds what is planted", 3, _unseen(traces.forbidden))
    stage.result.figures |= {
        "files_scanned": found.files,
        "bytes_scanned": found.bytes,
        "spans": spans,
        "metrics": metrics,
        "byte_strings_looked_for": Scanner(traces.forbidden).looks_for,
    }


def _unseen(forbidden: Forbidden) -> list[str]:
    """What of the very things that are looked for would not be found, in a log line, in base64 and in two pieces."""
    scanner = Scanner(forbidden)
    problems = []
    for kind, values in (("secret", forbidden.secrets), ("word", forbidden.words), ("text", forbidden.texts)):
        if not values:
            problems.append(f"no {kind} was looked for")
        for value in values:
            line = f'{{"event": "refused", "message": "{value}"}}'.encode()
            forms: list[tuple[str, Sequence[bytes]]] = [("in a line", [line]), ("in pieces", [line[:40], line[40:]])]
            if kind != "text":
                forms.append(("in base64", [base64.b64encode(line)]))
            problems += [f"a {kind} {form} is not seen" for form, chunks in forms if not scanner.scan(chunks)]
    return problems


async def _telemetry_of_it(cluster: Cluster, since: float) -> None:
    """Return when what servers say about what they have done by now has come in."""
    await cluster.client("hygiene").get_change_token()

    def is_there() -> bool:
        return any(span.began >= since for span in cluster.telemetry.spans())

    await wait_until_async(is_there, _TELEMETRY_SECONDS, what="the spans of the last call")


@dataclass(slots=True)
class _Told:
    """What was said to the service, and what it answered where it refused."""

    stage: Stage
    forbidden: Forbidden = field(default_factory=Forbidden)
    refusals: list[str] = field(default_factory=list)
    """What the service said. What the client refuses by itself is said to nobody else."""

    async def everything(self) -> None:
        cluster, rng = self.stage.cluster, self.stage.rng
        texts = [_sentence(rng, cluster.canary) for _ in range(8)]
        strange = "".join(rng.choices(string.ascii_letters + string.digits, k=_TOKEN_CHARACTERS))
        self.forbidden = Forbidden(secrets=[strange, *cluster.secrets], words=[cluster.canary], texts=texts)
        async with cluster.client(f"{self.stage.prefix}-hygiene") as memory:
            await self._kept(memory, texts)
            await self._refused(memory, texts)
        await self._unknown_token(strange)

    async def _kept(self, memory: MemoryClient, texts: Sequence[str]) -> None:
        said = Evidence(uri="file:minutes", kind=EvidenceKind.MANUAL, body=texts[1].encode())
        draft = Draft(content=texts[0], evidence=[said], surroundings=[texts[2]], author="user-1")
        remembered = await memory.remember(draft, decision=Decision.manual("user-1", note=texts[3]))
        await memory.revise(remembered, content=texts[4], decision=Decision.manual("user-1", note=texts[5]))
        proposed = await memory.propose(texts[6], evidence=[Evidence.session_turn("chat", "turn-1", texts[7])])
        await memory.reject(proposed, Decision.manual("user-1", note=texts[3]))
        session = await memory.open_session("chat")
        async with session.run("turn-1") as run:
            await run.recall(texts[4], admit=True)
        for mode in (RecallMode.LEXICAL, RecallMode.AUTO):
            await memory.preview(texts[1], mode=mode)
        await session.explain(remembered.citation.node_id, texts[2])
        self._count("ok", 9)

    async def _refused(self, memory: MemoryClient, texts: Sequence[str]) -> None:
        """What is refused is what gets into messages."""
        long = f"{texts[0]} " * (_TOO_LONG // len(texts[0]) + 1)
        body = texts[1].encode()
        draft = Draft(content=texts[0], evidence=[Evidence(uri="no uri", kind=EvidenceKind.MANUAL, body=body)])
        twice = Create(memory=Draft(content=texts[4]), node_id="the-same")
        for call in (
            memory.remember(long),
            memory.remember(draft),
            memory.put("a node's id with spaces", texts[2]),
            memory.remember(f"{texts[3]}\x00{texts[3]}"),
            memory.remember(texts[5], labels={"": texts[5]}),
            memory.preview(texts[6], max_results=10_000),
            memory.apply_change_set([twice, twice]),
            _imported(memory, texts[7]),
        ):
            await self._expect_refusal(call)

    async def _unknown_token(self, token: str) -> None:
        client = MemoryClient(self.stage.cluster.address, token, tenant="acme", principal="user-1", scope="default")
        async with client:
            try:
                await client.get_change_token()
            except MemoryServiceError as error:
                self.refusals.append(str(error))
        self._count("refused", 1)

    async def _expect_refusal(self, call: Awaitable[Any]) -> None:
        try:
            await call
        except (MemoryServiceError, ValueError) as error:
            if isinstance(error, MemoryServiceError):
                self.refusals.append(str(error))
            self._count("refused", 1)
        else:
            self._count("ok", 1)

    def repeated(self) -> list[str]:
        """Errors that say what was sent, which end in the logs of callers."""
        scanner = Scanner(self.forbidden)
        found = sum(map(scanner.holds, self.refusals))
        return [f"{found} of {len(self.refusals)} refusals repeat what was sent"] if found else []

    def _count(self, outcome: str, times: int) -> None:
        self.stage.result.operations.attempts["various", outcome] += times


async def _imported(memory: MemoryClient, text: str) -> None:
    async def lines() -> AsyncIterator[str]:
        yield f'{{"content": "{text}"'

    await memory.import_namespace(lines())


def _sentence(rng: random.Random, canary: str) -> str:
    words = ["".join(rng.choices(string.ascii_lowercase, k=rng.randint(4, 9))) for _ in range(8)]
    return f"{' '.join(words[:4])} {canary} {' '.join(words[4:])}"


SCENARIO = Hygiene()
