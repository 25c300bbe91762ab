"""The primary that Sentinels know: where it is, and where it is after a promotion.

Only a task of the route asks the sentinels, so that no number of failing calls storms them. What the calls use is the
primary that was found last, which serves on while no sentinel answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import structlog
from redis import exceptions

from durable_memory.adapters.redis.errors import LOST, index_unavailable, is_answer, is_unanswered, tls_problem
from durable_memory.adapters.redis.route import Route
from durable_memory.adapters.redis.server import Client, Server, new_client
from durable_memory.adapters.redis.settings import RedisSettings
from durable_memory.adapters.redis.url import Address, RedisUrl
from durable_memory.adapters.redis.watch import Watch
from durable_memory.domain.errors import DomainError, Reason

_CONNECTIONS: Final = 2
_GRACE_SECONDS: Final = 0.05
"""So long the others are waited for when most of the sentinels have answered: who has heard of a promotion says so."""

_log = structlog.stdlib.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Told:
    """What a sentinel knows. Each promotion has a higher epoch than all before it."""

    address: Address
    epoch: int


class Sentinels:
    """Asks all of them at once, each over a connection that stays."""

    def __init__(self, url: RedisUrl, settings: RedisSettings) -> None:
        self._name = url.primary_name
        self._timeout = settings.look_timeout_seconds
        self._clients = [
            new_client(url.of_sentinel(address), settings, max_connections=_CONNECTIONS) for address in url.addresses
        ]
        self._epoch = 0

    async def close(self) -> None:
        for client in self._clients:
            with suppress(*LOST):
                await client.aclose()

    async def primary(self) -> Told:
        """The latest that is known; one that is older than what was told before, only if most sentinels say so.

        Raises: DEPENDENCY_UNAVAILABLE.
        """
        answers = await self._answers()
        told = [answer for answer in answers if isinstance(answer, Told)]
        if not told:
            raise index_unavailable(_why_none(answers))
        latest = max(told, key=lambda answer: answer.epoch)
        if latest.epoch < self._epoch and 2 * told.count(latest) <= len(self._clients):
            raise index_unavailable("the sentinels that answer have missed a promotion")
        self._epoch = latest.epoch
        return latest

    async def _answers(self) -> list[Told | Exception | None]:
        asking = {asyncio.create_task(self._ask(client), name="ask a sentinel") for client in self._clients}
        pending, loop = set(asking), asyncio.get_running_loop()
        deadline = loop.time() + self._timeout
        try:
            while pending and (left := deadline - loop.time()) > 0:
                _, pending = await asyncio.wait(pending, timeout=left, return_when=asyncio.FIRST_COMPLETED)
                told = sum(task.done() and isinstance(task.result(), Told) for task in asking)
                if 2 * told > len(asking):
                    deadline = min(deadline, loop.time() + _GRACE_SECONDS)
        finally:
            for task in pending:
                task.cancel()
            if pending:
                await asyncio.wait(pending)
        return [task.result() for task in asking - pending]

    async def _ask(self, client: Client) -> Told | Exception | None:
        """`None` where the name is not known."""
        pipeline = client.pipeline(transaction=False)
        pipeline.execute_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._name)
        pipeline.execute_command("SENTINEL", "MASTER", self._name)
        try:
            address, state = await pipeline.execute(raise_on_error=False)
        except (exceptions.RedisError, *LOST) as error:
            return error
        if isinstance(address, Exception):
            return address
        return None if address is None or isinstance(state, Exception) else _told(address, state)


def _told(address: list[bytes], state: list[Any]) -> Told:
    fields = dict(zip(state[::2], state[1::2], strict=True))
    host, port = address
    return Told(Address(host.decode(), int(port)), int(fields.get(b"config-epoch", 0)))


def _why_none(answers: list[Told | Exception | None]) -> str:
    if None in answers:
        return "the sentinels know no primary of that name"
    if any(isinstance(answer, Exception) and is_answer(answer) for answer in answers):
        return "the sentinels refuse to say where the primary is"
    for answer in answers:
        if isinstance(answer, Exception) and (problem := tls_problem(answer)) is not None:
            return f"no sentinel answers: {problem}"
    return "no sentinel answers"


class SentinelRoute(Route):
    """The present primary. A promotion is noticed within `look_seconds`, and by whoever the old primary fails."""

    moves: ClassVar[tuple[type[Exception], ...]] = (exceptions.ReadOnlyError,)
    asks_role: ClassVar[bool] = True

    def __init__(self, url: RedisUrl, settings: RedisSettings, made: Callable[[], None]) -> None:
        super().__init__(url, settings, made)
        self._sentinels = Sentinels(url, settings)
        self._primary: Server | None = None
        self._trouble: DomainError | None = None
        self._watch = Watch(
            self._look,
            quiet_seconds=settings.look_seconds,
            pause_seconds=settings.retry_pause_seconds,
            longest_seconds=settings.longest_pause_seconds,
        )

    async def open(self) -> None:
        told = await self._sentinels.primary()
        self._primary = self.new_server(told.address)
        await self.judged(self._primary)
        self._watch.start()

    async def close(self) -> None:
        await self._watch.stop()
        await self.leave(*self._left, *([] if self._primary is None else [self._primary]))
        await self._sentinels.close()

    async def check(self) -> None:
        try:
            await self.checked(lambda: self.server_of(""))
        except DomainError as error:
            if self._trouble is None or error.reason is not Reason.DEPENDENCY_UNAVAILABLE:
                raise
            raise index_unavailable(f"{error.message}, and {self._trouble.message}") from error

    def server_of(self, key: str) -> Server:
        if self._primary is None:
            raise index_unavailable("the primary is not known yet")
        return self._primary

    def failed(self, server: Server, error: Exception) -> Server | None:
        if is_unanswered(error) or isinstance(error, (DomainError, *self.moves)):
            self._watch.hurry()
        return None

    async def _look(self) -> bool:
        try:
            told = await self._sentinels.primary()
        except DomainError as trouble:
            self._note(trouble)
            return not self.server_of("").circuit.is_open
        self._note(None)
        if told.address == self.server_of("").address:
            return not self.server_of("").circuit.is_open
        return await self._go_to(told)

    async def _go_to(self, told: Told) -> bool:
        """Use another primary, if it is one: sentinels say so a moment before it knows itself."""
        found = self.new_server(told.address)
        try:
            async with asyncio.timeout(self.settings.call_timeout_seconds):
                await found.judge()
        except (exceptions.RedisError, *LOST):
            await found.close()
            return False
        except DomainError as unfit:
            if unfit.reason is Reason.DEPENDENCY_UNAVAILABLE:
                await found.close()
                return False
            # It is the primary, and no other will do: calls and checks say what is wrong with it.
        except BaseException:
            await found.close()
            raise
        left, self._primary = self.server_of(""), found
        self._made()  # once more: whatever was verified since the first connection to it was still read from the other
        _log.warning("index_primary_changed", server=str(found.address), epoch=told.epoch)
        await self.leave(left)
        return True

    def _note(self, trouble: DomainError | None) -> None:
        before, self._trouble = self._trouble, trouble
        if trouble is not None and (before is None or before.message != trouble.message):
            _log.warning("index_sentinels_no_help", problem=trouble.message)
        elif trouble is None and before is not None:
            _log.info("index_sentinels_help_again")
