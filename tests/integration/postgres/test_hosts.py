"""A URL with several hosts, of which any may be down, silent, or a standby; and a database that is away altogether."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from structlog.testing import capture_logs

from durable_memory.adapters.postgres import PostgresSettings, PostgresStore
from durable_memory.adapters.postgres.connecting import Connector
from durable_memory.adapters.postgres.errors import domain_errors
from durable_memory.adapters.postgres.migrations import CURRENT_VERSION, migrate
from durable_memory.adapters.postgres.primary import Primary
from durable_memory.adapters.runtime import SystemIds
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.namespace import Namespace
from tests.integration.postgres.conftest import PATIENT, OpenStore, answers, at_once
from tests.integration.postgres.plans import NAMESPACE, create
from tests.integration.postgres.silent_host import CountingHost, silent_host, with_hosts
from tests.processes.polling import wait_until_async
from tests.processes.postgres import PostgresProcess
from tests.processes.proxy import TcpProxy, Way, always, cut_all, swallow_all

_NEVER_SECONDS = 1_000.0
"""Longer than any test lasts: whoever waits for that does not come to an end."""
_CALLERS = 100
_STORM_SECONDS = 3.0
"""Longer than it takes to know that the database is away."""
_ATTEMPTS_A_SECOND = 4
"""Of one process and host, once its database is known to be away."""
_ATTEMPTS_TO_KNOW = 2 * 17
"""Every connection that the store may have, once for each failure in a row that it takes to know."""

_log = logging.getLogger(__name__)


@pytest.fixture
async def silent() -> AsyncIterator[CountingHost]:
    """A black hole."""
    async with silent_host() as host:
        yield host


@asynccontextmanager
async def _store(dsn: str, **settings: Any) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(dsn, ids=SystemIds(), settings=PostgresSettings(**{**PATIENT, **settings}))
    try:
        yield store
    finally:
        await store.close()


async def test_a_silent_or_dead_host_before_the_primary_is_asked_once_and_not_waited_for(
    postgres_database: str, postgres: PostgresProcess, silent: CountingHost, refusing_port: int
):
    # Neither a host's whole time nor the next look at all of them comes before the test is over.
    bounds = {"connect_timeout_seconds": _NEVER_SECONDS, "survey_seconds": _NEVER_SECONDS}
    for ports in ((silent.port, postgres.port), (refusing_port, postgres.port), (postgres.port, silent.port)):
        silent.attempts = 0
        async with _store(with_hosts(postgres_database, *ports), **bounds) as store:
            await store.open()
            assert silent.attempts == ports.count(silent.port)
            # Eight connections more, all at once: nobody asks the silent one again.
            reading = [store.current_nodes(NAMESPACE, ["a"]) for _ in range(8)]
            await asyncio.gather(*reading, store.transact(NAMESPACE, create(f"n{ports[0]}")))
            assert silent.attempts == ports.count(silent.port)


async def test_migrating_does_without_the_hosts_that_do_not_answer(
    postgres_empty_database: str, postgres: PostgresProcess, silent: CountingHost, refusing_port: int
):
    dsn = with_hosts(postgres_empty_database, silent.port, refusing_port, postgres.port)
    assert len(await migrate(dsn)) == CURRENT_VERSION
    assert await migrate(dsn) == []


async def test_the_primary_is_used_wherever_it_is_in_the_list(
    open_store: OpenStore, postgres_database: str, postgres: PostgresProcess
):
    with PostgresProcess(durable=False) as other:
        other.stop()
        other.become_standby()
        other.start()
        for ports in ((other.port, postgres.port), (postgres.port, other.port)):
            store = await open_store(with_hosts(postgres_database, *ports) + "?target_session_attrs=any")
            await store.transact(NAMESPACE, create(f"n{ports[0]}"))
            await store.close()


async def test_hosts_without_a_primary_among_them_are_an_unavailable_dependency(
    postgres_database: str, silent: CountingHost, refusing_port: int
):
    dsn = with_hosts(postgres_database, silent.port, refusing_port)
    async with _store(dsn, connect_timeout_seconds=0.5) as store:
        with pytest.raises(DomainError) as caught:
            await store.open()
        assert caught.value.reason is Reason.DEPENDENCY_UNAVAILABLE
        assert _reasons(await at_once(store.open())) == {Reason.DEPENDENCY_UNAVAILABLE}  # known by now


def _reasons(answers: list[Any]) -> set[Reason | None]:
    return {answer.reason if isinstance(answer, DomainError) else None for answer in answers}


async def test_a_name_in_the_environment_that_cannot_be_looked_up_is_a_database_that_is_away(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("PGHOST", "db1..internal")
    connector = Connector("postgresql://u@/d", PostgresSettings(), Primary(lambda: None), lambda: 1.0)
    try:
        for _ in range(2):
            connector.require_reachable()
            with pytest.raises(DomainError) as caught, domain_errors():
                await connector.connect()
            assert caught.value.reason is Reason.DEPENDENCY_UNAVAILABLE
        assert connector.is_away
    finally:
        await connector.close()


async def test_a_connect_that_fails_after_the_close_starts_nothing():
    async with silent_host() as host:
        settings = PostgresSettings(connect_timeout_seconds=1.0)
        connector = Connector(f"postgresql://u@127.0.0.1:{host.port}/d", settings, Primary(lambda: None), lambda: 1.0)
        connecting = asyncio.ensure_future(connector.connect())
        await wait_until_async(lambda: host.attempts, what="it connects")
        await connector.close()
        with pytest.raises(TimeoutError):
            await connecting
        connector.require_reachable()  # nor is a task left that asks for it

        connector.open()
        with pytest.raises(TimeoutError):
            await connector.connect()
        assert connector.is_away
        await connector.close()


async def test_who_waits_for_the_primary_to_be_found_hears_of_the_close_and_who_comes_later_asks_nobody():
    async with silent_host() as host, silent_host() as other:
        dsn = with_hosts("postgresql://u@127.0.0.1:1/d", host.port, other.port)
        settings = PostgresSettings(connect_timeout_seconds=_NEVER_SECONDS)
        connector = Connector(dsn, settings, Primary(lambda: None), lambda: 1.0)
        connecting = [asyncio.ensure_future(connector.connect()) for _ in range(2)]
        await wait_until_async(lambda: host.attempts and other.attempts, what="both are asked")
        await connector.close()
        connecting.append(asyncio.ensure_future(connector.connect()))
        for call in connecting:
            with pytest.raises(DomainError) as caught:
                await call
            assert caught.value.reason is Reason.NOT_SERVING
        assert (host.attempts, other.attempts) == (1, 1)


class _Faulty(Primary):
    """Has a bug that shows twice."""

    def __init__(self) -> None:
        super().__init__(lambda: None)
        self.asked = 0

    def saw(self, timeline: int) -> None:
        self.asked += 1
        if self.asked <= 2:
            raise RuntimeError("a bug")
        super().saw(timeline)


async def test_looking_for_a_later_primary_outlives_whatever_it_meets_and_puts_it_on_record(
    postgres_database: str, postgres: PostgresProcess, refusing_port: int
):
    primary = _Faulty()
    dsn = with_hosts(postgres_database, postgres.port, refusing_port)
    connector = Connector(dsn, PostgresSettings(survey_seconds=0.05), primary, lambda: 1.0)
    with capture_logs() as logs:
        connector.start()
        try:
            await wait_until_async(lambda: primary.timeline, what="it is looked again")
        finally:
            await connector.close()
    failed = [log for log in logs if log["event"] == "survey_failed"]
    assert failed == [{"event": "survey_failed", "log_level": "error", "error": "RuntimeError"}] * 2


async def test_a_primary_that_goes_silent_is_left_for_another_way_to_it(
    open_store: OpenStore, postgres_database: str, postgres: PostgresProcess
):
    async with TcpProxy(postgres.port) as first, TcpProxy(postgres.port) as second:
        second.refuse()  # so that it is the first that is known and used
        store = await open_store(
            with_hosts(postgres_database, first.port, second.port),
            head_timeout_seconds=4.0,
            rollback_timeout_seconds=1.0,
            survey_seconds=_NEVER_SECONDS,
        )
        await store.transact(NAMESPACE, create("a"))
        second.mend()
        first.go_silent()
        with pytest.raises(DomainError) as caught:
            await store.head(NAMESPACE)
        assert caught.value.reason is Reason.DEPENDENCY_UNAVAILABLE
        # What one connection has found out is true for all: no caller tries the other silent ones.
        lost = _writes_lost(first)
        assert (await store.head(NAMESPACE)).revision == 1
        assert set(await store.current_nodes(NAMESPACE, ["a"])) == {"a"}
        await store.transact(NAMESPACE, create("b"))
        assert second.connections
        assert not lost
        first.mend()
        await store.close()


def _writes_lost(proxy: TcpProxy) -> list[bytes]:
    """The writes that are begun from now on over connections that are swallowed."""
    lost: list[bytes] = []

    def hear(way: Way, chunk: bytes) -> None:
        if b"BEGIN" in chunk:
            lost.append(chunk)

    proxy.on_lost = hear
    return lost


@pytest.mark.parametrize("way", ["waits", "gives up"])
async def test_where_one_write_met_silence_the_next_does_not_try_another_silent_connection(
    open_store: OpenStore, postgres_database: str, postgres: PostgresProcess, way: str
):
    spaces = [Namespace("acme", "user-1", f"scope-{number}") for number in range(3)]
    async with TcpProxy(postgres.port) as proxy:
        store = await open_store(
            proxy.dsn(postgres_database), silence_timeout_seconds=4.0, rollback_timeout_seconds=1.0
        )
        # Side by side, so that each has a connection of its own; nothing else notices what becomes of these.
        await asyncio.gather(*(store.transact(space, create("a")) for space in spaces))
        proxy.swallow()
        lost = _writes_lost(proxy)
        call = asyncio.ensure_future(store.transact(spaces[0], create("b")))
        if way == "gives up":
            await wait_until_async(lambda: lost, what="the write has met silence")
            call.cancel()
        with pytest.raises((DomainError, asyncio.CancelledError)):
            await call
        assert (await store.transact(spaces[1], create("b"))).head.revision == 2
        assert len(lost) == 1
        proxy.mend()
        await store.close()


@pytest.mark.parametrize("way", ["silent", "dying", "refusing"])
async def test_a_database_that_is_away_meets_no_storm_and_its_callers_do_not_wait(
    postgres_database: str, postgres: PostgresProcess, way: str, open_store: OpenStore
):
    async with TcpProxy(postgres.port) as proxy:
        store = await open_store(proxy.dsn(postgres_database), connect_timeout_seconds=2.0)
        await store.transact(NAMESPACE, create("a"))
        if way == "refusing":
            await proxy.__aexit__(None, None, None)
        else:
            proxy.rule = swallow_all if way == "silent" else cut_all
            proxy.cut()
        told: Counter[Reason] = Counter()
        loop = asyncio.get_running_loop()
        began = loop.time()

        def one(number: int) -> Awaitable[object]:
            return (
                store.transact(NAMESPACE, create(f"n{number}")) if number % 2 else store.current_nodes(NAMESPACE, ["a"])
            )

        async def call(number: int) -> None:
            while loop.time() < began + _STORM_SECONDS:
                try:
                    await one(number)
                except DomainError as error:
                    told[error.reason] += 1
                await asyncio.sleep(0.02)  # a caller that is in a hurry, and not alone in its process

        await asyncio.gather(*map(call, range(_CALLERS)))
        assert set(told) == {Reason.DEPENDENCY_UNAVAILABLE}
        # It is known by now: as many at once need neither time nor an answer of anybody.
        assert _reasons(await at_once(*map(one, range(_CALLERS)))) == {Reason.DEPENDENCY_UNAVAILABLE}
        # The first thing that is said on a connection strikes; where nobody listens, nobody counts.
        attempts, seconds = proxy.struck, loop.time() - began
        _log.info("%s: %d attempts by %d calls in %.1f s", way, attempts, told.total(), seconds)
        assert attempts <= _ATTEMPTS_TO_KNOW + _ATTEMPTS_A_SECOND * (seconds + 1)
        await store.close()


async def test_a_database_that_comes_back_is_found_though_nobody_answers_what_was_asked_before(
    open_store: OpenStore, postgres_database: str, postgres: PostgresProcess
):
    async with TcpProxy(postgres.port) as proxy:
        store = await open_store(proxy.dsn(postgres_database), connect_timeout_seconds=_NEVER_SECONDS)
        proxy.refuse()
        for _ in range(2):
            assert not await answers(store)
        assert _reasons(await at_once(store.check())) == {Reason.DEPENDENCY_UNAVAILABLE}  # it is known

        already = proxy.struck
        proxy.rule = swallow_all
        await wait_until_async(lambda: proxy.struck >= already + 3, what="it is asked for again and again")
        proxy.rule = always  # from now on: what was asked before stays without an answer
        await wait_until_async(lambda: answers(store), what="it is found")
        await store.transact(NAMESPACE, create("a"))
        await store.close()
