"""LoCoMo: long conversations, and questions with the turns that answer them.

Every turn is a memory with the date of its session; the author is the speaker, the surroundings are the two turns
before, nearest first. Questions without evidence cannot be scored and are left out. Those of category 5 have no answer:
they ask one speaker for what the other has said, and their evidence is the turn that they distort.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from benchmarks.retrieval.dataset import Dataset, Memory, Part, Question

METRICS: Final = ("recall_at_10", "group_hit_at_10", "mrr")
"""Always together: hits of sessions alone are easy to come by with few large memories."""

_CATEGORIES: Final = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "unanswerable"}
_UNANSWERABLE: Final = 5
_TURN_ID: Final = re.compile(r"D\d+:\d+")


@dataclass(frozen=True, slots=True)
class Turn:
    """One utterance. `id` is `D<session>:<turn>`."""

    id: str
    speaker: str
    text: str
    occurred_at: datetime

    @property
    def session(self) -> str:
        return self.id.partition(":")[0]

    @property
    def line(self) -> str:
        return f"{self.speaker}: {self.text}"


@dataclass(frozen=True, slots=True)
class Conversation:
    name: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]


def read_conversations(path: Path) -> list[Conversation]:
    return [_conversation(item) for item in json.loads(path.read_text(encoding="utf-8"))]


def locomo(conversations: Sequence[Conversation]) -> Dataset:
    """One namespace for each conversation."""
    parts = tuple(
        Part(scope=f"locomo {item.name}", memories=_memories(item.turns), questions=item.questions)
        for item in conversations
    )
    return Dataset(name="LoCoMo", metrics=METRICS, parts=parts)


def _conversation(item: dict[str, Any]) -> Conversation:
    sessions = item["conversation"]
    turns = []
    for name in sorted(
        (name for name in sessions if re.fullmatch(r"session_\d+", name)), key=lambda name: int(name.split("_")[1])
    ):
        said_at = datetime.strptime(sessions[f"{name}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        turns += [_turn(turn, said_at) for turn in sessions[name]]
    known = {turn.id for turn in turns}
    questions = []
    for question in item["qa"]:
        # One string sometimes names several turns.
        named = frozenset(_TURN_ID.findall(" ".join(question.get("evidence") or ()))) & known
        if named:
            questions.append(
                Question(
                    text=str(question["question"]),
                    answers=named,
                    category=_CATEGORIES[question["category"]],
                    unanswerable=question["category"] == _UNANSWERABLE,
                )
            )
    return Conversation(item["sample_id"], tuple(turns), tuple(questions))


def _turn(turn: dict[str, Any], said_at: datetime) -> Turn:
    text = turn["text"]
    if caption := turn.get("blip_caption"):
        text = f"{text} [shares {caption}]"
    return Turn(turn["dia_id"], turn["speaker"], text, said_at)


def _memories(turns: Sequence[Turn]) -> list[Memory]:
    return [
        Memory(
            id=turn.id,
            content=turn.text,
            group=turn.session,
            author=turn.speaker,
            surroundings=tuple(earlier.line for earlier in reversed(turns[max(0, place - 2) : place])),
            occurred_at=turn.occurred_at,
        )
        for place, turn in enumerate(turns)
    ]
