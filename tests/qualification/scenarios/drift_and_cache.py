"""Row 8: what changed after it was indexed is never found by what it meant, and no vector is paid for twice."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from durable_memory_client import MemoryNamespace, MemorySession, RecallMode
from tests.qualification.checks.index import changed_vectors
from tests.qualification.checks.meaning import lost, misunderstood, outdated, paid_twice, worse_ranks
from tests.qualification.checks.partitions import Belongings, foreign_records, strangers, unaccounted, vectors_of
from tests.qualification.cluster.cluster import Cluster
from tests.qualification.faults.processes import EveryServerKilled
from tests.qualification.faults.redis import EmptyRestart
from tests.qualification.observers.receipts import Repository, namespace_key, partition_name
from tests.qualification.observers.stored_keys import StoredKey, stored_keys
from tests.qualification.recorder.operations import Tally
from tests.qualification.scenarios.meanings import Meanings, inflict, node_id, refreshed
from tests.qualification.scenarios.paraphrases import OTHERS
from tests.qualification.scenarios.stage import Stage

_SESSION: Final = "assistant"
_MOST_MISSED: Final = 3
_RETIRED, _REVISED, _RELABELLED, _SUPERSEDED = range(3), range(3, 6), range(6, 8), range(8, 10)
_MODES: Final = (RecallMode.SEMANTIC, RecallMode.HYBRID, RecallMode.AUTO)


@dataclass(slots=True)
class _Course:
    """What is known on the way."""

    stage: Stage
    memory: MemoryNamespace
    meanings: Meanings
    session: MemorySession
    paid: list[tuple[str, int, int]] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)
    other: list[str] = field(default_factory=list)
    misplaced: list[str] = field(default_factory=list)
    asked: int = 0
    compared: int = 0
    keys: int = 0

    async def refresh(self, what: str, new: int, *, rebuild: bool = False) -> None:
        receipt = await refreshed(self.memory, _SESSION, self.meanings.tally, rebuild=rebuild)
        self.paid.append((what, new, receipt.work.provider_inputs))

    async def look(self, when: str, gone: dict[str, str], kept: dict[str, str]) -> None:
        """Ask every question in every mode."""
        for mode in _MODES:
            answers = await self.meanings.ask(self.session, mode)
            self.asked += len(answers)
            self.stale += outdated(answers, gone, f"{when}, {mode}")
            self.missing += lost(answers, kept, f"{when}, {mode}")

    async def look_at_partitions(self, when: str) -> dict[str, dict[str, bytes]]:
        """Judge everything that the index's store holds, of whichever namespace; the vectors of this one's partition.

        Those of namespaces that others have used before are made anew when somebody asks for them again.
        """
        keys = await _keys(self.stage.cluster)
        owners = await _owners(self.stage.cluster)
        found = [*strangers(keys, owners), *foreign_records(keys, owners), *unaccounted(keys)]
        self.misplaced += [f"{when}: {problem}" for problem in found]
        self.keys += len(keys)
        status = await self.memory.get_index_status()
        own = namespace_key(f"{self.stage.prefix}drift", "user-1", "default")
        partition = partition_name(own, status.generation.authority_digest)
        return {name: vectors for name, vectors in vectors_of(keys).items() if name == partition}


class DriftAndCache:
    row = 8
    name = "drift_and_cache"
    promise = "cache hits against rebuilds; no record ever outside its namespace's partition"

    async def run(self, stage: Stage) -> None:
        async with stage.cluster.client(f"{stage.prefix}drift") as client:
            session = await client.open_session(_SESSION, max_results=5)
            await client.set_schedule()  # from here on the index moves only when it is told to
            course = _Course(stage, client, Meanings(client, Tally(stage.result.operations, stage.timeline)), session)
            await self._drift(course)
            await self._rebuild(course)
        stage.found("no outdated meaning is found", course.asked, course.stale)
        stage.found("what is still there is found", course.asked, course.missing)
        stage.found("the order is the same after each rebuild", course.compared, course.moved)
        stage.found("the vectors are the same after each rebuild, bit for bit", course.compared, course.other)
        stage.found("every record is in its namespace's partition", course.keys, course.misplaced)
        stage.found("only new texts are embedded", len(course.paid), paid_twice(course.paid))
        stage.result.figures["questions_asked"] = course.asked
        stage.result.figures["questions_asked_again"] = course.meanings.asked_again.total()
        stage.result.figures["texts_embedded"] = sum(given for _, _, given in course.paid)

    async def _drift(self, course: _Course) -> None:
        meanings, memory, tally = course.meanings, course.memory, course.meanings.tally
        cited = await meanings.remember()
        await course.refresh("first build", len(cited))
        answers = await meanings.ask(course.session, RecallMode.SEMANTIC)
        missed = misunderstood(answers, meanings.right, most=_MOST_MISSED)
        course.stage.found("the model understands", len(answers), missed)

        texts = iter(OTHERS)
        for number in _RETIRED:
            await tally.of("RetireMemory", memory.retire(cited[number]))
        for number, text in zip(_REVISED, islice(texts, len(_REVISED)), strict=True):
            await tally.of("ReviseMemory", memory.revise(cited[number], content=text))
        for number in _RELABELLED:
            await tally.of("ReviseMemory", memory.revise(cited[number], set_labels={"looked-at": "yes"}))
        for number, text in zip(_SUPERSEDED, texts, strict=True):
            await tally.of("SupersedeMemory", memory.supersede(cited[number], text))

        changed = [*_RETIRED, *_REVISED, *_SUPERSEDED]
        gone = {f"q{number}": node_id(number) for number in changed}
        kept = {key: found for key, found in meanings.right.items() if key not in gone}
        kept = {key: found for key, found in kept.items() if found in answers[key]}
        await course.look("before the refresh", gone, kept)
        await course.refresh("refresh after changes", len(_REVISED) + len(_SUPERSEDED))
        ended = {f"q{number}": node_id(number) for number in [*_RETIRED, *_SUPERSEDED]}
        await course.look("after the refresh", ended, kept)

    async def _rebuild(self, course: _Course) -> None:
        """Everything that can make an index anew gives the same answers, for nothing."""
        stage, meanings = course.stage, course.meanings
        await course.look_at_partitions("after the changes")
        before = await meanings.ask(course.session, RecallMode.SEMANTIC)
        vectors: dict[str, dict[str, bytes]] = {}
        right = {question: answer[0] for question, answer in before.items() if answer}

        async def compare(what: str) -> None:
            answers = await meanings.ask(course.session, RecallMode.SEMANTIC)
            course.compared += len(answers)
            course.moved += [f"{what}: {problem}" for problem in worse_ranks(before, answers, right)]
            there = await course.look_at_partitions(what)
            course.other += [] if there else [f"{what}: the namespace has no vectors"]
            vectors.update(vectors or there)  # the first build anew has none that nobody needs any more
            course.other += [f"{what}: {problem}" for problem in changed_vectors(vectors, there)]

        await course.refresh("rebuild", 0, rebuild=True)
        await compare("rebuild")
        await meanings.tally.of("ClearPartition", course.memory.clear_partition())
        await course.refresh("refresh after it was cleared", 0)
        await compare("cleared")
        await inflict(stage, EveryServerKilled())
        await compare("servers killed")
        await inflict(stage, EmptyRestart())
        await course.refresh("refresh after the index was lost", 0)
        await compare("index lost")


async def _keys(cluster: Cluster) -> list[StoredKey]:
    client = cluster.redis.client()
    try:
        return await stored_keys(client)
    finally:
        await client.aclose()


async def _owners(cluster: Cluster) -> dict[str, Belongings]:
    """Of every partition that there ever was, what its namespace has."""
    repository = Repository(cluster.postgres.direct_dsn())
    return {
        name: Belongings(namespace, await repository.node_ids(namespace), await repository.vectors(namespace))
        for name, namespace in (await repository.partitions()).items()
    }


SCENARIO: Final = DriftAndCache()
