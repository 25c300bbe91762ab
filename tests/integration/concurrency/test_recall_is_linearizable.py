"""A recall that starts after an answer sees what the answer said, on the server that gave it and on any other."""

import asyncio
import random
from collections.abc import Sequence

import pytest

from durable_memory_client import Citation, MemoryClient
from durable_memory_client.errors import BindingDriftError, RunEndedError, SessionClosedError

_STEPS = 240


async def test_each_change_is_recalled_at_once_and_what_is_gone_never_again(clients: Sequence[MemoryClient]):
    """One change after the other, each by way of any server, and after each a recall on every server."""
    rng = random.Random(3)
    active: dict[str, Citation] = {}
    sessions = [await client.open_session(f"reader-{number}", max_results=100) for number, client in enumerate(clients)]
    for step in range(_STEPS):
        for word in await _change(rng, rng.choice(clients), f"word{step}", active):
            recalls = await asyncio.gather(
                *(session.recall(word) for session in sessions), *(client.preview(word) for client in clients)
            )
            for recall in recalls:
                found = {hit.citation for hit in recall if word in hit.content.split()}
                assert found == ({active[word]} if word in active else set()), f"step {step}"


async def _change(rng: random.Random, memory: MemoryClient, word: str, active: dict[str, Citation]) -> list[str]:
    """Change one memory; `active` has those that can be recalled, by the word that finds them. The words touched."""
    roll = rng.random()
    if not active or roll < 0.4:
        active[word] = (await memory.remember(f"{word} is remembered")).citation
        return [word]
    old = rng.choice(list(active))
    citation = active.pop(old)
    if roll < 0.6:
        await memory.retire(citation)
        return [old]
    if roll < 0.8:
        active[word] = (await memory.supersede(citation, f"{word} replaces it")).citation
    else:
        active[word] = (await memory.revise(citation, content=f"{word} corrects it")).citation
    return [old, word]


async def test_a_memory_that_was_retired_on_one_server_is_not_admitted_by_the_other(
    two_clients: Sequence[MemoryClient],
):
    first, second = two_clients
    session = await second.open_session("reader", max_results=10)
    async with session.run("turn-1") as run:
        for number in range(30):
            kept = await first.remember(f"kept{number} stays")
            retired = await first.remember(f"retired{number} goes")
            hits = [*await run.recall(f"kept{number}"), *await run.recall(f"retired{number}")]
            assert {hit.citation for hit in hits} >= {kept.citation, retired.citation}
            wanted = [hit for hit in hits if hit.citation in (kept.citation, retired.citation)]
            await first.retire(retired)
            admission = await run.admit(wanted)
            assert [hit.citation for hit in admission.hits] == [kept.citation]
            (refused,) = admission.refused
            assert refused.node_revision.node_id == retired.citation.node_id
            assert refused.error is not None
            assert refused.error.reason in ("INVALID_TRANSITION", "REVISION_CONFLICT")


async def test_a_session_that_was_closed_on_one_server_is_closed_on_the_other(two_clients: Sequence[MemoryClient]):
    await two_clients[0].remember("tea is hot")
    for number in range(30):
        here, there = two_clients[number % 2], two_clients[(number + 1) % 2]
        session = await here.open_session(f"session-{number}")
        same = await there.resume_session(session.session_id, session.info.binding_digest)
        run = same.run("turn-1")
        await run.begin()
        assert len(await run.recall("tea")) == 1
        await session.close()
        with pytest.raises(SessionClosedError):
            await same.recall("tea")
        with pytest.raises((SessionClosedError, RunEndedError)):
            await run.recall("tea", admit=True)
        with pytest.raises(SessionClosedError):
            await there.resume_session(session.session_id, session.info.binding_digest)


async def test_a_session_that_was_bound_anew_on_one_server_recalls_by_it_on_the_other(
    two_clients: Sequence[MemoryClient],
):
    for number in range(4):
        await two_clients[0].remember(f"tea number {number}")
    first = await two_clients[0].open_session("session", max_results=1)
    second = await two_clients[1].resume_session("session", first.info.binding_digest)
    for number in range(30):
        here, there = (first, second) if number % 2 else (second, first)
        wanted = number % 3 + 1
        before = there.info.binding_digest
        rebound = await here.rebind(max_results=wanted, expected_binding_digest=before)
        assert len(await there.recall("tea")) == wanted
        assert len(await here.recall("tea")) == wanted
        if rebound.binding_digest != before:
            with pytest.raises(BindingDriftError):
                await two_clients[number % 2].resume_session("session", before)
        # The other object goes on from what the session is bound to now.
        again = await two_clients[number % 2].resume_session("session", rebound.binding_digest)
        first, second = (here, again) if number % 2 else (again, here)


async def test_a_run_that_was_ended_on_one_server_admits_nothing_on_the_other(two_clients: Sequence[MemoryClient]):
    await two_clients[0].remember("tea is hot")
    session = await two_clients[0].open_session("session")
    same = await two_clients[1].resume_session("session", session.info.binding_digest)
    for number in range(10):
        run = session.run(f"turn-{number}")
        await run.begin()
        hits = list(await same.recall("tea"))
        assert len((await run.admit(hits)).hits) == 1
        await run.end()
        with pytest.raises(RunEndedError):
            await run.admit(hits)
