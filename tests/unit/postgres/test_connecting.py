"""How often a database that is away is asked for, and how soon it is found, to the moment: on a clock of its own."""

import asyncio
import itertools
import selectors
from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg
import pytest

from durable_memory.adapters.postgres import PostgresSettings
from durable_memory.adapters.postgres.connecting import Connector
from durable_memory.adapters.postgres.primary import Primary

_SETTINGS = PostgresSettings()
_LONGEST_PAUSE_SECONDS = 0.5
_ALMOST_NOTHING = 1e-6


class _Selector(selectors.DefaultSelector):
    """Lets no time pass: when nothing is ready, the clock goes to when the next is due."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(None if timeout is None else 0)
        if not ready and timeout is not None:
            self.now += timeout
        return ready


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._clock = _Selector()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now


class _Session:
    """A connection to a primary."""

    async def fetchrow(self, look: str) -> dict[str, Any]:
        return {"in_recovery": False, "timeline": "00000001"}

    async def close(self, timeout: float) -> None:
        pass

    def terminate(self) -> None:
        pass


class _Database:
    """Is there or not. When it is not, it refuses connections, or takes them and says nothing."""

    def __init__(self, *, silent: bool) -> None:
        self.is_there = False
        self.asked: list[float] = []
        self._silent = silent

    async def connect(self, *_: Any, **__: Any) -> _Session:
        self.asked.append(asyncio.get_running_loop().time())
        if not self.is_there and not self._silent:
            raise ConnectionRefusedError
        if not self.is_there:
            await asyncio.Event().wait()
        return _Session()


@pytest.fixture(params=["silent", "refusing"])
def database(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> _Database:
    database = _Database(silent=request.param == "silent")
    monkeypatch.setattr(asyncpg, "connect", database.connect)
    return database


def _while_away(jitter: float, then: Callable[[Connector], Awaitable[None]]) -> None:
    """Do something on the clock of its own, when the database is known to be away."""

    async def run() -> None:
        connector = Connector("postgresql://u@h/d", _SETTINGS, Primary(lambda: None), lambda: jitter)
        while not connector.is_away:
            with pytest.raises((ConnectionRefusedError, TimeoutError)):
                await connector.connect()
        try:
            await then(connector)
        finally:
            await connector.close()

    with asyncio.Runner(loop_factory=_Loop) as runner:
        runner.run(run())


@pytest.mark.parametrize("jitter", [0.5, 1.0])
def test_it_is_asked_at_most_five_times_in_the_first_second_and_four_times_in_each_after_it(
    database: _Database, jitter: float
):
    async def look(connector: Connector) -> None:
        began = asyncio.get_running_loop().time()
        database.asked.clear()
        await asyncio.sleep(20)
        seconds = [int(asked - began) for asked in database.asked]
        assert seconds.count(0) <= 5
        assert all(seconds.count(second) <= 4 for second in range(1, 20))
        # And as often as it takes, whether what was asked before has an answer or not.
        pauses = [after - before for before, after in itertools.pairwise([began, *database.asked])]
        assert max(pauses) <= _LONGEST_PAUSE_SECONDS + _ALMOST_NOTHING

    _while_away(jitter, look)


@pytest.mark.parametrize("after", [0.01, 1.0, 7.3])
def test_it_is_found_within_half_a_second(database: _Database, after: float):
    async def look(connector: Connector) -> None:
        await asyncio.sleep(after)
        database.is_there = True
        back = asyncio.get_running_loop().time()
        await connector.wait_reachable()
        assert asyncio.get_running_loop().time() - back <= _LONGEST_PAUSE_SECONDS + _ALMOST_NOTHING
        await connector.connect()

    _while_away(1.0, look)
