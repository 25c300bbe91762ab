"""What clients offer above single calls, as the conformance cases name it. Each answers with plain JSON."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from typing import Any, Final

from durable_memory_client import (
    Decision,
    Evidence,
    Hit,
    MemoryClient,
    admit_all,
    recall_all,
    record_use_all,
    render,
)


async def main_job(memory: MemoryClient, given: Mapping[str, Any]) -> Any:
    """Propose what was heard, and have a rule activate it."""
    evidence = Evidence.session_turn(given["session_id"], given["run_id"], given["content"])
    proposed = await memory.propose(given["content"], evidence=[evidence])
    activated = await memory.activate(proposed, Decision.by_rule("conformance", 1, note="said so"))
    cited = await memory.get(activated)
    return {
        "proposed": proposed.outcome,
        "activated_revision": activated.citation.node_revision,
        "content": cited.node.content,
        "status": cited.node.status,
        "evidence": [item.kind for item in cited.node.evidence],
    }


async def turn(memory: MemoryClient, given: Mapping[str, Any]) -> Any:
    """A whole turn: recall and admit, render, cite, record use."""
    session = await memory.open_session(given["session_id"], max_results=given.get("max_results", 5))
    async with session.run(given["run_id"]) as run:
        recall = await run.recall(given["query"], admit=True)
        block = render(recall, max_bytes=given.get("max_bytes", 16_384))
        used = await run.record_use(block.cited(given["answer"]))
    return {
        "hits": contents(recall),
        "admitted": [outcome.admitted for outcome in recall.admissions],
        "text": block.text,
        "cited": contents(block.cited(given["answer"])),
        "used": len(used),
    }


async def several(memory: MemoryClient, given: Mapping[str, Any]) -> Any:
    """A turn over several namespaces: recall in all, admit what fits, record what was used."""
    async with AsyncExitStack() as stack:
        runs = []
        for scope in given["scopes"]:
            where = memory.namespace(scope=memory.ref.scope + scope)
            for content in given["remember"].get(scope, []):
                await where.remember(content)
            session = await where.open_session("several")
            runs.append(await stack.enter_async_context(session.run("turn-1")))
        recall = await recall_all(runs, given["query"], max_results=given["max_results"])
        admission = await admit_all(runs, recall.hits)
        used = await record_use_all(runs, admission.hits)
    return {"hits": contents(recall), "admitted": contents(admission.hits), "used": len(used)}


async def recall_or_empty(memory: MemoryClient, given: Mapping[str, Any]) -> Any:
    """A recall whose caller goes on without memory when the service cannot answer."""
    session = await memory.open_session("assistant", on_unavailable="empty")
    recall = await session.recall(given["query"])
    return {"hits": contents(recall), "unavailable": recall.unavailable}


async def iterate_nodes(memory: MemoryClient, given: Mapping[str, Any]) -> Any:
    """All nodes by the iterator, which reads the pages."""
    pages = memory.list_nodes(page_size=given["page_size"])
    return [node.content async for node in pages]


async def watch(memory: MemoryClient, given: Mapping[str, Any]) -> Any:
    """The first changes after a namespace revision, from a watch that resumes when its stream is lost."""
    revisions: list[int] = []
    async with memory.watch(after=given["after"]) as changes:
        async for change in changes:
            revisions.append(change.change_token.namespace_revision)
            if len(revisions) == given["count"]:
                break
    return revisions


async def snapshot(memory: MemoryClient, given: Mapping[str, Any]) -> Any:
    """The nodes of a snapshot, checked against its footer."""
    taken = memory.snapshot()
    nodes = [node.content async for node in taken]
    return {"nodes": sorted(nodes), "count": taken.node_count}


async def copy(memory: MemoryClient, given: Mapping[str, Any]) -> Any:
    """Export the namespace, import it on another server, and read what is there."""
    lines = [line async for line in memory.export_namespace()]
    tenant, principal, scope = memory.ref.tenant, memory.ref.principal, memory.ref.scope
    async with MemoryClient(given["to"], tenant=tenant, principal=principal, scope=scope) as target:
        imported = await target.import_namespace(lines)
        return {
            "nodes": sorted([node.content async for node in target.list_nodes()]),
            "namespace_revision": imported.change_token.namespace_revision,
        }


async def refresh(memory: MemoryClient, given: Mapping[str, Any]) -> Any:
    """Bring the vector index up to date and wait for the receipt; then recall by meaning alone."""
    session = await memory.open_session("assistant")
    receipt = await memory.refresh_semantic_recall(session.session_id).wait()
    status = await memory.get_index_status()
    return {"active_count": receipt.active_count, "unindexed": status.unindexed_active_count}


def contents(hits: Iterable[Hit]) -> list[str]:
    return [hit.content for hit in hits]


HELPERS: Final[Mapping[str, Callable[[MemoryClient, Mapping[str, Any]], Awaitable[Any]]]] = {
    helper.__name__: helper
    for helper in (main_job, turn, several, recall_or_empty, iterate_nodes, watch, snapshot, copy, refresh)
}
