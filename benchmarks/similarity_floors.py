"""The cosine that texts reach which have nothing to do with each other: the `similarity_floor` of a model.

Where recall finds fewer candidates than its limit, that cosine counts as nothing (the convex fusion). Models differ by
far, so it is measured: questions against passages of another conversation (LoCoMo) or another article (XQuAD), and,
given XQuAD in two languages, questions of the second against passages of the first. The floor is the median of each
set, averaged over the sets. The embedder is the one of the settings, DURABLE_MEMORY_SERVER_EMBEDDING_*.

    DURABLE_MEMORY_SERVER_EMBEDDING_PROVIDER=local python -m benchmarks.similarity_floors \
        --locomo locomo.json --xquad xquad.en.json --xquad xquad.zh.json

A related pair, a question and the passage that answers it, stands beside each for comparison (XQuAD), and the time a
text took.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import fmean

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.retrieval.locomo import read_conversations
from benchmarks.retrieval.xquad import read_translation
from durable_memory.adapters.runtime import SystemClock, SystemIds
from durable_memory.embedding import build_embedder
from durable_memory.ports.embedder import Embedder
from durable_memory.settings_reading import load_settings

_PERCENTILES = (5, 25, 50, 75, 95)


@dataclass(frozen=True, slots=True)
class Pairs:
    """Questions and passages, each with the group it belongs to: those of different groups are unrelated.

    `answers` has the place of each question's passage, and is empty where there are several or none.
    """

    name: str
    questions: tuple[str, ...]
    question_groups: tuple[int, ...]
    passages: tuple[str, ...]
    passage_groups: tuple[int, ...]
    answers: tuple[int, ...] = ()

    def sample(self, count: int, source: random.Random) -> Pairs:
        """At most `count` of the questions; all passages that are there."""
        kept = sorted(source.sample(range(len(self.questions)), min(count, len(self.questions))))
        return replace(
            self,
            questions=tuple(self.questions[place] for place in kept),
            question_groups=tuple(self.question_groups[place] for place in kept),
            answers=tuple(self.answers[place] for place in kept) if self.answers else (),
        )


def locomo(path: Path, passages_each: int) -> Pairs:
    """The first turns of each conversation, each after the one before it, and all questions."""
    said: list[tuple[str, int]] = []
    asked: list[tuple[str, int]] = []
    for group, conversation in enumerate(read_conversations(path)):
        lines = [turn.line for turn in conversation.turns[: passages_each + 1]]
        said += [(f"{before}\n{line}", group) for before, line in pairwise(lines)]
        asked += [(question.text, group) for question in conversation.questions]
    return _pairs("LoCoMo", asked, said)


def xquad(path: Path) -> Pairs:
    """All passages and questions of a file of XQuAD."""
    passages = read_translation(path).passages
    asked = [(question, passage.article) for passage in passages for question in passage.questions]
    answers = tuple(place for place, passage in enumerate(passages) for _ in passage.questions)
    return replace(_pairs(path.stem, asked, [(item.text, item.article) for item in passages]), answers=answers)


def _pairs(name: str, asked: Sequence[tuple[str, int]], said: Sequence[tuple[str, int]]) -> Pairs:
    questions, question_groups = zip(*asked, strict=True)
    passages, passage_groups = zip(*said, strict=True)
    return Pairs(name, questions, question_groups, passages, passage_groups)


def across(first: Pairs, second: Pairs) -> Pairs:
    """Questions of the second against passages of the first: the same ones in another language."""
    return replace(second, name=f"{second.name} to {first.name}", passages=first.passages)


async def measure(embedder: Embedder, pairs: Pairs) -> tuple[list[float], list[float], float]:
    """Percentiles of unrelated pairs, of related ones, and milliseconds a passage took."""
    started = time.perf_counter()
    passages = _matrix(await embedder.embed_passages(pairs.passages))
    milliseconds = (time.perf_counter() - started) / len(pairs.passages) * 1000
    questions = _matrix([await embedder.embed_query(question) for question in pairs.questions])
    cosines = questions @ passages.T
    unrelated = cosines[np.array(pairs.question_groups)[:, None] != np.array(pairs.passage_groups)]
    related = cosines[np.arange(len(pairs.answers)), list(pairs.answers)] if pairs.answers else np.empty(0)
    return _percentiles(unrelated), _percentiles(related), milliseconds


def _matrix(vectors: Sequence[bytes]) -> np.ndarray:
    return np.stack([np.frombuffer(vector, dtype="<f4") for vector in vectors])


def _percentiles(cosines: np.ndarray) -> list[float]:
    return [float(value) for value in np.percentile(cosines, _PERCENTILES)] if cosines.size else []


async def run(sets: Sequence[Pairs]) -> None:
    embedder = build_embedder(load_settings(), clock=SystemClock(), ids=SystemIds())
    if embedder is None:
        raise SystemExit("The settings name no embedder: set DURABLE_MEMORY_SERVER_EMBEDDING_PROVIDER")
    generation = await embedder.open()
    table = Table(title=f"{generation.provider} {generation.model}: cosines")
    for heading in ("set", "pairs", *(f"p{percent}" for percent in _PERCENTILES), "ms a passage"):
        table.add_column(heading)
    medians = []
    try:
        for pairs in sets:
            unrelated, related, milliseconds = await measure(embedder, pairs)
            medians.append(unrelated[_PERCENTILES.index(50)])
            table.add_row(pairs.name, "unrelated", *map("{:.3f}".format, unrelated), f"{milliseconds:.1f}")
            if related:
                table.add_row("", "related", *map("{:.3f}".format, related))
    finally:
        await embedder.close()
    console = Console()
    console.print(table)
    console.print(f"similarity_floor {fmean(medians):.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--locomo", type=Path, help="a file of LoCoMo conversations")
    parser.add_argument("--xquad", type=Path, action="append", default=[], help="a file of XQuAD; may be repeated")
    parser.add_argument("--questions", type=int, default=200, help="how many questions of each set")
    parser.add_argument("--turns", type=int, default=60, help="how many turns of each conversation")
    options = parser.parse_args()
    languages = [xquad(path) for path in options.xquad]
    sets = [locomo(options.locomo, options.turns)] if options.locomo else []
    sets += languages + [across(languages[0], other) for other in languages[1:]]
    if not sets:
        parser.error("give --locomo, --xquad or both")
    source = random.Random(0)
    asyncio.run(run([pairs.sample(options.questions, source) for pairs in sets]))


if __name__ == "__main__":
    main()
