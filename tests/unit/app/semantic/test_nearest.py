"""Exact search: what is nearest, and that it never depends on the company in which it was searched for."""

from __future__ import annotations

import asyncio
from fractions import Fraction

import numpy as np
import pytest

from durable_memory.app.semantic import products
from durable_memory.app.semantic.nearest import Nearest, exact_similarities, nearest
from durable_memory.app.semantic.products import ProductQueue, product, rounding_error
from durable_memory.app.semantic.vector_view import VectorView, next_view
from durable_memory.domain.semantic.generation import Metric, Normalization
from durable_memory.domain.semantic.manifest import Descriptor, Manifest, SegmentEntry
from durable_memory.domain.semantic.segment import FloatWidth, Segment, VectorRecord, checksum

DIMENSION = 48


def units(count: int, seed: int, *, distinct: int | None = None) -> np.ndarray:
    """Unit vectors, float32; with `distinct` so many of them, again and again."""
    rows = np.random.default_rng(seed).standard_normal((distinct or count, DIMENSION))
    rows = rows[np.arange(count) % len(rows)]
    unit: np.ndarray = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit


def view_of(matrix: np.ndarray, *, blocks: int = 3) -> VectorView:
    """Record number n is of the node "n"."""
    entries, encoded = [], {}
    numbers = np.arange(len(matrix))
    for place, part in enumerate(np.array_split(numbers, blocks)):
        segment = Segment(
            dimension=DIMENSION,
            width=FloatWidth.FLOAT32,
            records=tuple(VectorRecord(str(number), 1, "0" * 64) for number in part.tolist()),
            vectors=matrix[part].tobytes(),
        ).encode()
        entries.append(
            SegmentEntry(
                segment_id=str(place),
                checksum=checksum(segment),
                nbytes=len(segment),
                record_count=len(part),
            )
        )
        encoded[str(place)] = segment
    manifest = Manifest(
        descriptor=Descriptor(
            dimension=DIMENSION, metric=Metric.COSINE, normalization=Normalization.L2, width=FloatWidth.FLOAT32
        ),
        index_revision=1,
        history_digest="0" * 64,
        fence=1,
        nonce="",
        source_history_id="h",
        source_revision=1,
        segments=tuple(entries),
    )
    return next_view(manifest, None, encoded.get)


def dot(one: np.ndarray, other: np.ndarray) -> Fraction:
    """Without any rounding."""
    return sum((Fraction(float(a)) * Fraction(float(b)) for a, b in zip(one, other, strict=True)), Fraction())


def search(view: VectorView, question: np.ndarray, scores: np.ndarray, count: int, least: float = -1.0) -> Nearest:
    return nearest(view, question, scores, np.ones(len(scores), dtype=np.bool_), count, least)


def same(one: Nearest, other: Nearest) -> bool:
    """Bit for bit."""
    return (
        one.numbers.tobytes() == other.numbers.tobytes() and one.similarities.tobytes() == other.similarities.tobytes()
    )


@pytest.mark.parametrize("distinct", [None, 7, 1])
@pytest.mark.parametrize("count", [1, 20, 150, 1_000])
def test_the_nearest_are_those_of_the_exact_dot_product_and_all_that_equal_the_last(
    distinct: int | None, count: int
) -> None:
    matrix, (question,) = units(300, 1, distinct=distinct), units(1, 2)
    view = view_of(matrix)
    exact = [dot(row, question) for row in matrix]
    found = search(view, question, product(view, [question])[0], count)
    last = sorted(exact, reverse=True)[min(count, 300) - 1]
    assert set(found.numbers.tolist()) == {number for number, value in enumerate(exact) if value >= last}
    assert found.similarities.tolist() == pytest.approx([float(exact[number]) for number in found.numbers.tolist()])
    assert np.all(np.diff(found.similarities) <= 0)


async def test_hundreds_of_questions_at_once_are_answered_bit_for_bit_as_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes: list[int] = []

    def counted(view: VectorView, questions: list[np.ndarray]) -> np.ndarray:
        sizes.append(len(questions))
        return product(view, questions)

    view, questions, queue = view_of(units(3_000, 3, distinct=1_000)), units(300, 4), ProductQueue()
    alone = [search(view, question, product(view, [question])[0], 100) for question in questions]
    monkeypatch.setattr(products, "product", counted)
    together = await asyncio.gather(*(queue.scores(view, question) for question in questions))
    found = [search(view, question, scores, 100) for question, scores in zip(questions, together, strict=True)]
    assert all(map(same, alone, found))
    assert sizes == [16] * 18 + [12]


@pytest.mark.parametrize("seed", range(5))
def test_scores_that_are_off_by_as_much_as_rounding_allows_change_nothing(seed: int) -> None:
    view, (question,) = view_of(units(2_000, seed)), units(1, seed + 100)
    scores = product(view, [question])[0]
    error = rounding_error(DIMENSION)
    shaken = scores + np.random.default_rng(seed).uniform(-error, error, len(scores)).astype(np.float32) * 0.9
    assert same(search(view, question, scores, 50), search(view, question, shaken, 50))


def test_a_dot_product_is_the_same_alone_and_among_others() -> None:
    view, (question,) = view_of(units(2_500, 5)), units(1, 6)
    numbers = np.arange(2_500)
    together = exact_similarities(view, question, numbers)
    alone = [exact_similarities(view, question, numbers[number : number + 1]) for number in range(0, 2_500, 97)]
    assert together[::97].tobytes() == np.concatenate(alone).tobytes()


def test_rounding_stays_within_what_it_is_said_to_be() -> None:
    view, questions = view_of(units(500, 7)), units(20, 8)
    approximate = product(view, list(questions))
    exact = np.stack([exact_similarities(view, question, np.arange(500)) for question in questions])
    assert np.abs(approximate - exact).max() < rounding_error(DIMENSION)


def test_nothing_below_the_least_similarity_and_nothing_that_is_not_admitted_is_near() -> None:
    view, (question,) = view_of(units(400, 9)), units(1, 10)
    scores = product(view, [question])[0]
    every = search(view, question, scores, 400)
    least = float(every.similarities[30])
    assert len(search(view, question, scores, 400, least).numbers) == 31
    admitted = np.zeros(400, dtype=np.bool_)
    admitted[every.numbers[::2]] = True
    found = nearest(view, question, scores, admitted, 10, -1.0)
    assert found.numbers.tolist() == every.numbers[::2][:10].tolist()


@pytest.mark.parametrize("admitted_count", [0, 1, 9, 10, 11, 200, 2_000])
def test_however_few_are_admitted_all_that_are_among_the_best_of_them_are_found(admitted_count: int) -> None:
    view, question = view_of(units(2_000, 21, distinct=700)), units(1, 22)[0]
    scores = product(view, [question])[0]
    admitted = np.zeros(2_000, dtype=np.bool_)
    admitted[np.random.default_rng(admitted_count).permutation(2_000)[:admitted_count]] = True
    numbers = np.flatnonzero(admitted)
    similarities = exact_similarities(view, question, numbers)
    last = np.sort(similarities)[-10] if admitted_count > 10 else -1.0
    found = nearest(view, question, scores, admitted, 10, -1.0)
    assert set(found.numbers.tolist()) == set(numbers[similarities >= last].tolist())


async def test_a_question_that_fails_and_one_that_left_disturb_no_other() -> None:
    view, questions, queue = view_of(units(50, 11)), units(3, 12), ProductQueue()
    leaving = asyncio.create_task(queue.scores(view, questions[0]))
    staying = asyncio.create_task(queue.scores(view, questions[1]))
    await asyncio.sleep(0)
    leaving.cancel()
    assert len(await staying) == 50
    wrong = await asyncio.gather(queue.scores(view, questions[2][:-1]), return_exceptions=True)
    assert isinstance(wrong[0], ValueError)
    assert len(await queue.scores(view, questions[2])) == 50


async def test_a_long_product_leaves_the_event_loop_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "_INLINE_COST", 0)
    threads: list[object] = []

    async def in_thread(function: object, *arguments: object) -> object:
        threads.append(function)
        return product(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(asyncio, "to_thread", in_thread)
    view, (question,) = view_of(units(50, 13)), units(1, 14)
    assert len(await ProductQueue().scores(view, question)) == 50
    assert len(threads) == 1


async def test_an_index_of_nothing_has_no_scores() -> None:
    view, (question,) = view_of(units(0, 1, distinct=1), blocks=1), units(1, 15)
    assert len(await ProductQueue().scores(view, question)) == 0
    assert len(search(view, question, np.empty(0, dtype=np.float32), 10).numbers) == 0
