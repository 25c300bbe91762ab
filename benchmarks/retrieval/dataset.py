"""What is remembered, what is asked, and which memories answer it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """`group` is what it is part of at its source, for example one session of a conversation."""

    id: str
    content: str
    group: str = ""
    author: str = ""
    surroundings: tuple[str, ...] = ()
    occurred_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """`answers` are ids of memories. One that is `unanswerable` distorts what they say."""

    text: str
    answers: frozenset[str]
    category: str = ""
    unanswerable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The memories of one namespace and the questions about them. An equal `scope` means equal memories."""

    scope: str
    memories: Sequence[Memory]
    questions: Sequence[Question]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """`metrics` are the fields of a `Score` that say something here."""

    name: str
    metrics: tuple[str, ...]
    parts: tuple[Part, ...]
