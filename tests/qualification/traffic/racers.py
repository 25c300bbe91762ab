"""Callers that want the same thing at once, and those that ask again for what was answered long ago."""

from __future__ import annotations

import asyncio

from durable_memory_client import Citation
from tests.qualification.recorder.history import Write
from tests.qualification.traffic.callers import Caller
from tests.qualification.traffic.wording import digest_of

RACED = "raced"
"""The node that all racers of a namespace want, in whatever process."""

_CONTENDERS = 4

OF_A_RUN = frozenset({"ActiveRecall", "RecordUse", "BeginRun", "EndRun"})
"""Methods whose arguments follow from where a run is now: they are repeated at once or never."""


class CasRacer(Caller):
    """Revises one node several times at once, each time from the same revision: one may win."""

    async def step(self) -> None:
        node = await self.node(RACED)
        if node is None:
            await self._create()
        else:
            cited = node.citation
            await asyncio.gather(*(self._revise(cited, f"{self.name}/{place}") for place in range(_CONTENDERS)))

    async def _create(self) -> None:
        request_id = self.new_id()
        text = self.text_of(request_id)
        await self.do(
            "Remember",
            request_id,
            lambda memory, options: memory.remember(text, node_id=RACED, **options),
            text=text,
            writes=[Write(node_id=RACED, expected=0, text=digest_of(text))],
        )

    async def _revise(self, cited: Citation, contender: str) -> None:
        request_id = self.new_id()
        text = self.text_of(request_id)
        await self.do(
            "ReviseMemory",
            request_id,
            lambda memory, options: memory.revise(cited, content=text, **options),
            text=text,
            writes=[Write(node_id=RACED, expected=cited.node_revision, text=digest_of(text))],
            caller=contender,
        )


class Repeater(Caller):
    """Sends again what was acknowledged, however long ago, and whatever has happened to it since."""

    async def step(self) -> None:
        known = [command for command in self._recorder.acknowledged[-500:] if command.method not in OF_A_RUN]
        if not known:
            await self._recorder.read(lambda: self.memory.get_change_token(timeout=self._timeout), caller=self.name)
            return
        call, answer = await self._recorder.attempt(self.rng.choice(known), self._timeout, by=self.name)
        if answer is None and not call.is_final:
            await self._reach.again()
