"""Remembering and asking through the API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.progress import track

from benchmarks.retrieval.dataset import Dataset, Memory, Part
from benchmarks.retrieval.methods import Method
from benchmarks.retrieval.scores import TOP, Score, score
from durable_memory_client import Create, Decision, Draft, Evidence, MemoryClient, NodeStatus
from durable_memory_client.aio.namespace import MemoryNamespace
from durable_memory_client.values.session import PolicyFields

_BATCH = 128

Results = dict[str, dict[str, list[Score]]]
"""By the name of the data set, then by the name of the method."""


async def measure(
    address: str, datasets: Sequence[Dataset], methods: Sequence[Method], floors: PolicyFields
) -> Results:
    """Each data set, asked in each way. What several sets ask about is remembered and embedded once.

    `floors` are fields of the policy that all methods share.
    """
    results: Results = {dataset.name: {method.name: [] for method in methods} for dataset in datasets}
    loaded: set[str] = set()
    parts = [(dataset.name, part) for dataset in datasets for part in dataset.parts]
    async with MemoryClient(address, tenant="benchmark", principal="retrieval", scope="all") as client:
        for name, part in track(parts, description="namespaces", transient=True, console=Console(stderr=True)):
            memory = client.namespace(scope=part.scope)
            if part.scope not in loaded:
                loaded.add(part.scope)
                await _remember(memory, part)
                if any(method.needs_vectors for method in methods):
                    await _index(memory)
            for method in methods:
                results[name][method.name] += await _ask(memory, part, method, floors)
    return results


async def _remember(memory: MemoryNamespace, part: Part) -> None:
    """Every memory becomes a candidate under its own id, with evidence, and is activated by a rule."""
    drafts = [_create(part.scope, item) for item in part.memories]
    for start in range(0, len(drafts), _BATCH):
        created = await memory.apply_change_set(drafts[start : start + _BATCH])
        activated = await memory.activate_many(
            [change.citation for change in created.changes], Decision.by_rule("every-memory", 1)
        )
        for item in activated:
            if item.error is not None:
                raise item.error


def _create(source: str, item: Memory) -> Create:
    evidence = Evidence.session_turn(source, item.id, item.content, occurred_at=item.occurred_at)
    return Create(
        node_id=item.id,
        status=NodeStatus.CANDIDATE,
        memory=Draft(
            content=item.content,
            author=item.author,
            occurred_at=item.occurred_at,
            surroundings=list(item.surroundings),
            evidence=[evidence],
        ),
    )


async def _index(memory: MemoryNamespace) -> None:
    session = await memory.open_session("indexing")
    receipt = await memory.refresh_semantic_recall(session.session_id).wait()
    if receipt.indexed_count != receipt.active_count:
        raise RuntimeError(f"{receipt.active_count - receipt.indexed_count} memories have no vector")


async def _ask(memory: MemoryNamespace, part: Part, method: Method, floors: PolicyFields) -> list[Score]:
    policy: PolicyFields = {
        **floors,
        "mode": method.mode,
        "max_results": TOP,
        "lexical_profile": method.lexical_profile,
        "fusion_profile": method.fusion_profile,
    }
    session = await memory.open_session(method.name, **policy)
    groups: Mapping[str, str] = {item.id: item.group for item in part.memories}
    scores = []
    for question in part.questions:
        recall = await session.recall(question.text)
        if recall.semantic is not None and recall.semantic.unindexed_active_count:
            raise RuntimeError(f"{recall.semantic.unindexed_active_count} memories have no vector")
        scores.append(score(question, groups, [hit.node_id for hit in recall]))
    return scores
