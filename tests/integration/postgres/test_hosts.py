"""A URL with several hosts, of which any may be down, silent, or a standby; and a database that is away altogether."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator
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
from tests.integration.postgres.conftest import OpenStore, answers
from tests.integration.postgres.plans import NAMESPACE, create
from tests.integration.postgres.silent_host import dying_host, silent_host, with_hosts
from tests.processes.free_port import free_port
from tests.processes.polling import wait_until_async
from tests.processes.postgres import PostgresProcess
from tests.processes.proxy import TcpProxy

_CALLERS = 100
_OUTAGE_SECONDS = 3.0
_ATTEMPTS_A_SECOND = 4
"""Of one process and host, once its database is known to be away."""
_ATTEMPTS_TO_KNOW = 2 * 17
"""Every connection that the store may have, once for each failure in a row that it takes to know."""

_log = logging.getLogger(__name__)


@pytest.fixture
async def silent() -> AsyncIterator[int]:
    """The port of a black hole."""
    async with silent_host() as host:
        yield host.port


@asynccontextmanager
async def _store(dsn: str, **settings: Any) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(dsn, ids=SystemIds(), settings=PostgresSettings(**settings))
    try:
        yield store
    finally:
        await store.close()


async def _seconds_of(call: Any) -> float:
    began = time.monotonic()
    await call
    return time.monotonic() - began


async def test_a_silent_or_dead_host_before_the_primary_costs_a_moment_once(
    postgres_database: str, postgres: PostgresProcess, silent: int
):
    for ports in ((silent, postgres.port), (free_port(), postgres.port), (postgres.port, silent)):
        async with _store(with_hosts(postgres_database, *ports)) as store:
            opened = await _seconds_of(store.open())
            # Eight connections more, all at once: nobody asks the silent one again.
            reading = [store.current_nodes(NAMESPACE, ["a"]) for _ in range(8)]
            filled = await _seconds_of(asyncio.gather(*reading, store.transact(NAMESPACE, create(f"n{ports[0]}"))))
        _log.info("first host %s: open %.3f s, nine connections more %.3f s", ports[0], opened, filled)
        # The wait for another claim, and no host's whole time.
        assert opened < 2.5
        assert filled < 1.0


async def test_migrating_does_without_the_hosts_that_do_not_answer(
    postgres_empty_database: str, postgres: PostgresProcess, silent: int
):
    dsn = with_hosts(postgres_empty_database, silent, free_port(), postgres.port)
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


async def test_hosts_without_a_primary_among_them_are_an_unavailable_dependency(postgres_database: str, silent: int):
    async with _store(with_hosts(postgres_database, silent, free_port()), connect_timeout_seconds=0.5) as store:
        with pytest.raises(DomainError) as caught:
            await store.open()
        assert caught.value.reason is Reason.DEPENDENCY_UNAVAILABLE
        assert await _seconds_of(_refused(store)) < 0.2  # known by now


async def _refused(store: PostgresStore) -> None:
    with pytest.raises(DomainError) as caught:
        await store.open()
    assert caught.value.reason is Reason.DEPENDENCY_UNAVAILABLE


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
        settings = PostgresSettings(connect_timeout_seconds=0.5)
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
        connector = Connector(dsn, PostgresSettings(), Primary(lambda: None), lambda: 1.0)
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
    postgres_database: str, postgres: PostgresProcess
):
    primary = _Faulty()
    dsn = with_hosts(postgres_database, postgres.port, free_port())
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
        store = await open_store(
            with_hosts(postgres_database, first.port, second.port),
            head_timeout_seconds=1.0,
            rollback_timeout_seconds=0.5,
        )
        await store.transact(NAMESPACE, create("a"))
        first.go_silent()
        with pytest.raises(DomainError) as caught:
            await store.head(NAMESPACE)
        assert caught.value.reason is Reason.DEPENDENCY_UNAVAILABLE
        # What one connection has found out is true for all: no caller tries the other silent ones.
        began = time.monotonic()
        assert (await store.head(NAMESPACE)).revision == 1
        assert set(await store.current_nodes(NAMESPACE, ["a"])) == {"a"}
        await store.transact(NAMESPACE, create("b"))
        _log.info("another way to the primary: %.3f s", time.monotonic() - began)
        assert second.connections
        await store.close()


@pytest.mark.parametrize("way", ["waits", "gives up"])
async def test_where_one_write_met_silence_the_next_does_not_try_another_silent_connection(
    open_store: OpenStore, postgres_database: str, postgres: PostgresProcess, way: str
):
    spaces = [Namespace("acme", "user-1", f"scope-{number}") for number in range(3)]
    async with TcpProxy(postgres.port) as proxy:
        store = await open_store(
            proxy.dsn(postgres_database), silence_timeout_seconds=1.0, rollback_timeout_seconds=0.5
        )
        # Side by side, so that each has a connection of its own; nothing else notices what becomes of these.
        await asyncio.gather(*(store.transact(space, create("a")) for space in spaces))
        proxy.swallow()
        call = asyncio.ensure_future(store.transact(spaces[0], create("b")))
        if way == "gives up":
            await wait_until_async(lambda: proxy.lost, what="the write has met silence")
            call.cancel()
        with pytest.raises((DomainError, asyncio.CancelledError)):
            await call
        assert await _seconds_of(store.transact(spaces[1], create("b"))) < 0.9
        await store.close()


@pytest.mark.parametrize("way", ["silent", "dying", "refusing"])
async def test_a_database_that_is_away_meets_no_storm_and_its_callers_do_not_wait(
    postgres_database: str, postgres: PostgresProcess, way: str, open_store: OpenStore
):
    async with TcpProxy(postgres.port) as proxy:
        store = await open_store(
            proxy.dsn(postgres_database),
            connect_timeout_seconds=1.0,
            head_timeout_seconds=0.5,
            rollback_timeout_seconds=0.3,
        )
        await store.transact(NAMESPACE, create("a"))
        port = proxy.port
        await proxy.__aexit__(None, None, None)
        waited: list[float] = []
        told: Counter[Reason] = Counter()
        until = time.monotonic() + _OUTAGE_SECONDS

        async def call(number: int) -> None:
            while (began := time.monotonic()) < until:
                try:
                    if number % 2:
                        await store.transact(NAMESPACE, create(f"n{number}"))
                    else:
                        await store.current_nodes(NAMESPACE, ["a"])
                except DomainError as error:
                    told[error.reason] += 1
                waited.append(time.monotonic() - began)
                await asyncio.sleep(0.02)  # a caller that is in a hurry, and not alone in its process

        if way == "refusing":
            await asyncio.gather(*map(call, range(_CALLERS)))
            attempts = 0  # nobody is there to count them
        else:
            async with (silent_host if way == "silent" else dying_host)(port) as host:
                await asyncio.gather(*map(call, range(_CALLERS)))
                attempts = host.attempts
        late = sorted(waited)[int(len(waited) * 0.95)]
        _log.info("%s: %d attempts by %d calls, 95 %% answered in %.3f s, %s", way, attempts, len(waited), late, told)
        assert attempts <= _ATTEMPTS_TO_KNOW + _ATTEMPTS_A_SECOND * (_OUTAGE_SECONDS + 1)
        assert late < 0.2
        assert set(told) <= {Reason.DEPENDENCY_UNAVAILABLE, Reason.OVERLOADED}
        assert told[Reason.OVERLOADED] < told[Reason.DEPENDENCY_UNAVAILABLE] / 10
        await store.close()


@pytest.mark.parametrize("way", ["silent", "refusing"])
async def test_a_database_that_comes_back_is_found_within_half_a_second(
    open_store: OpenStore, postgres_database: str, postgres: PostgresProcess, way: str
):
    async with TcpProxy(postgres.port) as proxy:
        store = await open_store(
            proxy.dsn(postgres_database),
            connect_timeout_seconds=2.0,
            head_timeout_seconds=0.3,
            rollback_timeout_seconds=0.2,
        )
        (proxy.go_silent if way == "silent" else proxy.refuse)()

        async def is_known_to_be_away() -> bool:
            return not await answers(store) and await _seconds_of(answers(store)) < 0.05

        await wait_until_async(is_known_to_be_away, 20.0, what="the database is known to be away")
        proxy.mend()
        found = await _seconds_of(wait_until_async(lambda: answers(store), what="it is found"))
        _log.info("%s: found after %.3f s", way, found)
        assert found < 1.0  # half a second and a connect, on a machine that does something else as well
        await store.transact(NAMESPACE, create("a"))
        await store.close()
