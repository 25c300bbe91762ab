"""How semantic recall comes up with the server."""

import asyncio
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from durable_memory.app.recall_result import DegradationReason
from durable_memory.app.semantic import runtime
from durable_memory.app.semantic.maintenance import MaintenancePhase
from durable_memory.app.semantic.partition_state import IndexState
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.session import RecallMode
from durable_memory.ports.embedder import EmbeddingError, EmbeddingFailure
from tests.processes.polling import wait_until_async
from tests.unit.app.semantic.idle_time import IdleTime
from tests.unit.app.semantic.semantic_world import (
    ABOUT_TEA,
    TEA,
    Backing,
    GatedEmbedder,
    found_ids,
    semantic_process,
)
from tests.unit.app.world import refused


class SlowToOpen(GatedEmbedder):
    """Opens when it is `released`, and then as `ends` says."""

    def __init__(self, ends: BaseException | None = None) -> None:
        super().__init__()
        self.released = asyncio.Event()
        self._ends = ends
        self.failed = False

    async def open(self):
        await self.released.wait()
        if self._ends is not None:
            self.failed = True
            raise self._ends
        return await super().open()


class SlowToLeave(GatedEmbedder):
    """Opens at once unless it `hangs`; then it is `opening` for ever, and if it is told to stop does so when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.hangs = False
        self.opening = asyncio.Event()
        self.may_stop = asyncio.Event()

    async def open(self):
        if self.hangs:
            self.opening.set()
            try:
                await asyncio.Event().wait()
            finally:
                await self.may_stop.wait()
        return await super().open()


@pytest.fixture
def impatient(idle_time: IdleTime, monkeypatch: pytest.MonkeyPatch) -> None:
    """What can begin at once has begun when the start gives up waiting for the rest."""
    monkeypatch.setattr(runtime, "_START_SECONDS", 0.01)
    monkeypatch.setattr(runtime, "_FIRST_RETRY_SECONDS", 0.01)


async def test_a_session_that_opens_at_once_is_bound_to_the_generation(backing: Backing):
    async with semantic_process(backing, "a") as world:
        await world.open()
        assert (await world.status()).state.name == "NOT_BUILT"


@pytest.mark.usefixtures("impatient")
async def test_a_provider_that_is_slow_to_answer_holds_up_nothing_and_is_used_when_it_has(backing: Backing):
    embedder = SlowToOpen()
    async with semantic_process(backing, "a", embedder) as world:
        assert world.runtime.generation is None
        embedder.released.set()
        await wait_until_async(lambda: world.runtime.generation is not None, what="the generation")


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    "failure", [EmbeddingError(EmbeddingFailure.UNREACHABLE, retryable=True), ValueError("nobody expected this")]
)
async def test_a_provider_that_fails_after_the_start_is_asked_again(backing: Backing, failure: Exception):
    embedder = SlowToOpen(failure)
    async with semantic_process(backing, "a", embedder) as world:
        embedder.released.set()
        await wait_until_async(lambda: embedder.failed, what="the failure")
        embedder._ends = None
        await wait_until_async(lambda: world.runtime.generation is not None, what="the generation")


@pytest.mark.usefixtures("impatient")
async def test_a_session_that_opens_while_the_index_is_away_has_all_of_it_when_the_index_is_there(backing: Backing):
    async def away() -> None:
        raise DomainError(Reason.DEPENDENCY_UNAVAILABLE, "the index is not there")

    backing.index.before["open"] = away
    async with semantic_process(backing, "a") as world:
        await world.open()
        await world.remember(TEA, "a")
        assert world.runtime.maintenance.health().phase is MaintenancePhase.STOPPED
        del backing.index.before["open"]
        await wait_until_async(
            lambda: world.runtime.maintenance.health().phase is MaintenancePhase.IDLE, what="it is up"
        )
        await world.refresh()
        assert found_ids(await world.answer(ABOUT_TEA)) == ["a"]


async def test_what_no_repetition_mends_ends_the_start(backing: Backing):
    embedder = SlowToOpen(ValueError("a bug"))
    embedder.released.set()
    with pytest.raises(ValueError, match="a bug"):
        async with semantic_process(backing, "a", embedder):
            pass


@pytest.mark.usefixtures("impatient")
async def test_a_process_that_ends_before_its_provider_answered_leaves_nothing_behind(backing: Backing):
    async with semantic_process(backing, "a", SlowToOpen()) as world:
        assert world.runtime.generation is None


async def test_a_start_that_is_broken_off_is_waited_for_by_the_close(backing: Backing):
    embedder = SlowToLeave()
    async with semantic_process(backing, "a", embedder) as world:
        await world.runtime.close()
        embedder.hangs = True
        starting = asyncio.create_task(world.runtime.start())
        await embedder.opening.wait()
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        closing = asyncio.create_task(world.runtime.close())
        for _ in range(50):
            await asyncio.sleep(0)
        assert not closing.done()
        embedder.may_stop.set()
        await closing


@pytest.mark.usefixtures("impatient")
async def test_while_a_restarted_server_waits_for_its_provider_bound_sessions_recall_by_words_and_then_by_meaning_again(
    backing: Backing,
):
    async with semantic_process(backing, "before") as world:
        await world.indexed(TEA)
    embedder = SlowToOpen()
    async with semantic_process(backing, "after", embedder) as world:
        answer = await world.answer("kettles")
        assert answer.degradation is not None
        assert (found_ids(answer), answer.degradation.reason) == (["a"], DegradationReason.PROVIDER_FAILED)
        assert await world.state() is IndexState.CURRENT, "what is indexed can be told without the provider"
        with refused(Reason.SEMANTIC_UNAVAILABLE, cause="PROVIDER_FAILED"):
            await world.refresh()
        assert not world.runtime.health.serving

        embedder.released.set()
        await wait_until_async(lambda: world.runtime.generation is not None, what="the generation")

        assert found_ids(await world.answer(ABOUT_TEA)) == ["a"], "from the vectors that are there"
        assert embedder.passages == []


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("mode", [RecallMode.AUTO, RecallMode.HYBRID])
async def test_a_session_opened_while_a_provider_is_away_that_has_answered_before_recalls_by_meaning_once_it_is_back(
    backing: Backing, mode: RecallMode
):
    async with semantic_process(backing, "before") as world:
        await world.indexed(TEA)
    embedder = SlowToOpen()
    async with semantic_process(backing, "after", embedder) as world:
        await world.open("later", mode=mode)
        if mode is RecallMode.AUTO:
            answer = await world.answer("kettles", session_id="later")
            assert answer.degradation is not None
            assert (found_ids(answer), answer.degradation.reason) == (["a"], DegradationReason.PROVIDER_FAILED)
        else:
            with refused(Reason.SEMANTIC_UNAVAILABLE, cause="PROVIDER_FAILED"):
                await world.answer("kettles", session_id="later")

        embedder.released.set()
        await wait_until_async(lambda: world.runtime.generation is not None, what="the generation")

        answer = await world.answer(ABOUT_TEA, session_id="later")
        assert (found_ids(answer), answer.degradation) == (["a"], None), "without rebinding, and without a restart"


@pytest.mark.usefixtures("impatient")
async def test_a_provider_that_comes_back_as_another_one_makes_a_new_generation(backing: Backing):
    async with semantic_process(backing, "before") as world:
        await world.indexed(TEA)
    embedder = SlowToOpen()
    embedder.generation = replace(embedder.generation, revision="2")
    async with semantic_process(backing, "after", embedder) as world:
        await world.open("early")
        embedder.released.set()
        await wait_until_async(lambda: world.runtime.generation is not None, what="the generation")

        answer = await world.answer("kettles", session_id="early")
        assert answer.degradation is not None
        assert answer.degradation.reason is DegradationReason.GENERATION_NOT_SERVED
        assert embedder.queries == [], "vectors of two models never meet"
        await world.open("late")
        assert (await world.answer("kettles", session_id="late")).degradation is not None
        await world.refresh("late")
        assert found_ids(await world.answer(ABOUT_TEA, session_id="late")) == ["a"]
    async with semantic_process(backing, "third", SlowToOpen()) as world:
        known = world.app.defaults.current.known
        assert known == embedder.generation, "what was heard last is what is known"


@pytest.mark.usefixtures("impatient")
async def test_what_one_server_has_heard_is_known_to_the_others_that_still_wait(backing: Backing):
    waiting = SlowToOpen(EmbeddingError(EmbeddingFailure.UNREACHABLE, retryable=True))
    waiting.released.set()
    async with semantic_process(backing, "waits", waiting) as world:
        assert world.app.defaults.current.known is None
        async with semantic_process(backing, "hears"):
            await wait_until_async(lambda: world.app.defaults.current.known is not None, what="the generation")
        assert world.runtime.generation is None


@pytest.mark.usefixtures("impatient")
async def test_where_a_provider_has_never_answered_anybody_a_session_opens_without_a_generation_and_the_log_says_so(
    backing: Backing,
):
    embedder = SlowToOpen()
    async with semantic_process(backing, "first", embedder) as world:
        with capture_logs() as logs:
            await world.open("unbound")
            await world.open("unbound")  # it is there already
        assert [entry["known"] for entry in logs if entry["event"] == "session_without_generation"] == [False]
        assert "unbound" not in str(logs)
        for asked in (world.status(), world.open("explicit", mode=RecallMode.HYBRID)):
            with refused(Reason.SEMANTIC_UNAVAILABLE, cause="PROVIDER_FAILED"):
                await asked

        embedder.released.set()
        await wait_until_async(lambda: world.runtime.generation is not None, what="the generation")

        unbound = await world.answer(ABOUT_TEA, session_id="unbound")
        assert unbound.degradation is not None
        assert unbound.degradation.reason is DegradationReason.SEMANTIC_NOT_CONFIGURED
        with capture_logs() as logs:
            await world.open("bound")
        assert [entry for entry in logs if entry["event"] == "session_without_generation"] == []


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("call", ["served_generation", "record_generation"])
async def test_a_repository_that_fails_for_a_moment_delays_the_start_and_no_more(backing: Backing, call: str):
    async def fails() -> None:
        del backing.records.before[call]
        raise DomainError(Reason.DEPENDENCY_UNAVAILABLE, "the store is away")

    backing.records.before[call] = fails
    async with semantic_process(backing, "a") as world:
        await wait_until_async(
            lambda: world.runtime.maintenance.health().phase is MaintenancePhase.IDLE, what="it is up"
        )
        digest = world.embedder.configuration_digest
        assert await backing.records.served_generation(digest) == world.embedder.generation


@pytest.mark.usefixtures("impatient")
async def test_what_a_provider_fails_with_is_in_the_log_with_its_endpoint_and_told_to_callers_without_it(
    backing: Backing,
):
    async with semantic_process(backing, "before") as world:
        await world.indexed(TEA)
    refusal = EmbeddingError(EmbeddingFailure.REFUSED, retryable=False, status=401)
    refusal.endpoint = "embeddings.example:443"
    embedder = SlowToOpen(refusal)
    embedder.released.set()
    with capture_logs() as logs:
        async with semantic_process(backing, "after", embedder) as world:
            status = await world.status()
            with refused(Reason.SEMANTIC_UNAVAILABLE, cause="PROVIDER_FAILED", failure="REFUSED", status=401):
                await world.refresh()
    assert status.last_failure == "SEMANTIC_UNAVAILABLE:PROVIDER_FAILED:REFUSED:status=401"
    told = next(entry for entry in logs if entry["event"] == "semantic_not_ready")
    assert (told["failure"], told["status"], told["endpoint"]) == ("REFUSED", "401", "embeddings.example:443")
