"""Matrix products of vector views with questions: those that wait together are one product.

What a product costs is the reading of the matrix, which is the same for one question and for ten.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from durable_memory.app.patience import Patience
from durable_memory.app.semantic.vector_view import VectorView

_TOGETHER: Final = 16
"""More take hardly less time each, and hold memory for the scores of all."""

_INLINE_COST: Final = 20_000_000
"""Up to which a product takes two milliseconds at most: a thread would cost more than the event loop can lose."""

_QUESTIONS_PER_READING: Final = 5
"""So many questions cost as much as the reading of the matrix for all of them."""

Scores = NDArray[np.float32]


@dataclass(slots=True, eq=False)
class _Waiting:
    view: VectorView
    questions: list[tuple[NDArray[np.float32], asyncio.Future[Scores]]] = field(default_factory=list)


class ProductQueue:
    """One product at a time for each view: who comes while it is computed goes into the next one, together."""

    def __init__(self) -> None:
        self._waiting: dict[int, _Waiting] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._patience = Patience()

    async def scores(self, view: VectorView, question: NDArray[np.float32]) -> Scores:
        """float32 [records of the view], dead ones included: dot products, to within `rounding_error`."""
        future: asyncio.Future[Scores] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.get(id(view))
        if waiting is None:
            waiting = self._waiting[id(view)] = _Waiting(view)
            task = asyncio.create_task(self._answer(waiting), name="score vectors")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        waiting.questions.append((question, future))
        return await future

    async def close(self) -> None:
        """Answer those who wait, and end."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _answer(self, waiting: _Waiting) -> None:
        try:
            while waiting.questions:
                await self._patience.wait(lambda: len(waiting.questions), _TOGETHER)
                taken, waiting.questions = waiting.questions[:_TOGETHER], waiting.questions[_TOGETHER:]
                asked = [(question, future) for question, future in taken if not future.done()]
                if asked:
                    await _answer_all(waiting.view, asked)
        finally:
            del self._waiting[id(waiting.view)]
            for _, future in waiting.questions:
                future.cancel()


async def _answer_all(view: VectorView, asked: Sequence[tuple[NDArray[np.float32], asyncio.Future[Scores]]]) -> None:
    questions = [question for question, _ in asked]
    try:
        if _cost(view, len(questions)) <= _INLINE_COST:
            rows = product(view, questions)
        else:
            rows = await asyncio.to_thread(product, view, questions)
    except Exception as error:  # noqa: BLE001 - whatever it is, callers get it instead of waiting for ever
        for _, future in asked:
            if not future.done():
                future.set_exception(error)
        return
    for (_, future), row in zip(asked, rows, strict=True):
        if not future.done():
            future.set_result(row)


def _cost(view: VectorView, questions: int) -> float:
    """Of a product; ten millions are about a millisecond."""
    return sum(block.matrix.size for block in view.blocks) * (1 + questions / _QUESTIONS_PER_READING)


def product(view: VectorView, questions: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    """float32 [questions, records of the view]: one matrix product for each block."""
    if not view.blocks:
        return np.empty((len(questions), 0), dtype=np.float32)
    if len(questions) == 1:  # a third of what a product with one column takes
        return np.concatenate([block.matrix @ questions[0] for block in view.blocks])[np.newaxis, :]
    columns = np.stack(questions, axis=1)
    return np.ascontiguousarray(np.concatenate([block.matrix @ columns for block in view.blocks]).T)


def rounding_error(dimension: int) -> float:
    """How far a float32 dot product of unit vectors is from the exact one at most, in whatever order it was summed."""
    return 1.01 * dimension * 2.0**-24 + 1e-6
