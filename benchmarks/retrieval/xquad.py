"""XQuAD: the same passages and questions in several languages. A passage is a memory, and answers its own questions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.retrieval.dataset import Dataset, Memory, Part, Question

METRICS: Final = ("hit_at_1", "hit_at_10", "mrr")


@dataclass(frozen=True, slots=True)
class Passage:
    """`article` is the number of the article that it stands in."""

    text: str
    article: int
    questions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Translation:
    """One file. Passages and their questions stand in the same places in every language."""

    language: str
    passages: tuple[Passage, ...]


def read_translation(path: Path) -> Translation:
    """A file in SQuAD's form that is named like `xquad.zh.json`."""
    passages = [
        Passage(paragraph["context"], number, tuple(item["question"] for item in paragraph["qas"]))
        for number, article in enumerate(json.loads(path.read_text(encoding="utf-8"))["data"])
        for paragraph in article["paragraphs"]
    ]
    return Translation(path.name.removesuffix(".json").rpartition(".")[2], tuple(passages))


def xquad(asked: Translation, said: Translation, *, namespaces: int = 1) -> Dataset:
    """Questions of one language about passages of the same or another.

    Passages are dealt out to `namespaces` in turn, so that one namespace has passages of many articles.
    """
    name = f"XQuAD {asked.language}"
    if asked.language != said.language:
        name += f" > {said.language}"
    if namespaces > 1:
        name += f", {-(-len(said.passages) // namespaces)} a namespace"
    parts = []
    for number in range(namespaces):
        places = range(number, len(said.passages), namespaces)
        parts.append(
            Part(
                scope=f"xquad {said.language} {number + 1} of {namespaces}",
                memories=[Memory(id=f"p{place}", content=said.passages[place].text) for place in places],
                questions=[
                    Question(text=question, answers=frozenset({f"p{place}"}))
                    for place in places
                    for question in asked.passages[place].questions
                ],
            )
        )
    return Dataset(name=name, metrics=METRICS, parts=tuple(parts))
