"""Retrieval quality on LoCoMo: long conversations, and questions with the turns that answer them.

Every turn goes through the API as a candidate with session-turn evidence and the date of its session, is activated,
and each question recalls the top 10 of its conversation. Surroundings are the two turns before, nearest first; the
author is the speaker. No model is involved.

    python -m benchmarks.locomo --data locomo.json [--json]

Printed for each lexical profile, in percent: turn Recall@10 (the mean over questions of the share of evidence turns
among the hits), turn hit@10 (any evidence turn), session hit@10 (any turn of a session with evidence) and MRR of the
first evidence turn; in all and by category. Session hits alone are easy to come by with few large memories, so the
figures always stand together. Questions without evidence cannot be scored; for the unanswerable ones (category 5) the
figures say how often the turn that the question distorts is found.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from durable_memory_client import Create, Decision, Draft, Evidence, MemoryClient, NodeStatus
from tests.processes.server import ServerProcess

PROFILES = ("a3s.memory.lexical.word-cjk-bigram.v1", "dm.lexical.bm25f.v1")
TOP = 10
BATCH = 128
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "unanswerable"}
METRICS = ("turn_recall_at_10", "turn_hit_at_10", "session_hit_at_10", "mrr")

_TURN_ID = re.compile(r"D\d+:\d+")


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


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    category: int
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True)
class Conversation:
    name: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class Score:
    """What one question scored, each 0..1."""

    category: int
    turn_recall_at_10: float
    turn_hit_at_10: float
    session_hit_at_10: float
    mrr: float


def read_conversations(path: Path) -> list[Conversation]:
    return [_conversation(item) for item in json.loads(path.read_text(encoding="utf-8"))]


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
            questions.append(Question(str(question["question"]), question["category"], named))
    return Conversation(item["sample_id"], tuple(turns), tuple(questions))


def _turn(turn: dict[str, Any], said_at: datetime) -> Turn:
    text = turn["text"]
    if caption := turn.get("blip_caption"):
        text = f"{text} [shares {caption}]"
    return Turn(turn["dia_id"], turn["speaker"], text, said_at)


async def remember(memory: MemoryClient, conversation: Conversation) -> None:
    """Every turn becomes a candidate under its own id, with evidence, and is activated by a rule."""
    turns = conversation.turns
    drafts = [
        Create(
            node_id=turn.id,
            status=NodeStatus.CANDIDATE,
            memory=Draft(
                content=turn.text,
                author=turn.speaker,
                occurred_at=turn.occurred_at,
                surroundings=[_said(earlier) for earlier in reversed(turns[max(0, place - 2) : place])],
                evidence=[Evidence.session_turn(conversation.name, turn.id, turn.text, occurred_at=turn.occurred_at)],
            ),
        )
        for place, turn in enumerate(turns)
    ]
    namespace = memory.namespace(scope=conversation.name)
    for start in range(0, len(drafts), BATCH):
        created = await namespace.apply_change_set(drafts[start : start + BATCH])
        activated = await namespace.activate_many(
            [change.citation for change in created.changes], Decision.by_rule("every-turn", 1)
        )
        for item in activated:
            if item.error is not None:
                raise item.error


def _said(turn: Turn) -> str:
    return f"{turn.speaker}: {turn.text}"


async def ask(memory: MemoryClient, conversation: Conversation, profile: str) -> list[Score]:
    session = await memory.namespace(scope=conversation.name).open_session(
        f"locomo {profile}", lexical_profile=profile, max_results=TOP
    )
    scores = []
    for question in conversation.questions:
        recall = await session.recall(question.text)
        scores.append(score(question, [hit.node_id for hit in recall]))
    return scores


def score(question: Question, found: Sequence[str]) -> Score:
    """Of the ids of the hits, best first."""
    sessions = {turn.partition(":")[0] for turn in question.evidence}
    ranks = [rank for rank, turn in enumerate(found, start=1) if turn in question.evidence]
    return Score(
        category=question.category,
        turn_recall_at_10=len(ranks) / len(question.evidence),
        turn_hit_at_10=float(bool(ranks)),
        session_hit_at_10=float(any(turn.partition(":")[0] in sessions for turn in found)),
        mrr=1 / ranks[0] if ranks else 0.0,
    )


def means(scores: Iterable[Score]) -> dict[str, float]:
    """Percent, to one digit."""
    held = list(scores)
    return {name: round(100 * fmean(getattr(item, name) for item in held), 1) for name in METRICS}


async def measure(address: str, conversations: Sequence[Conversation]) -> dict[str, list[Score]]:
    results: dict[str, list[Score]] = {profile: [] for profile in PROFILES}
    async with MemoryClient(address, tenant="benchmark", principal="locomo", scope="all") as memory:
        for conversation in track(
            conversations, description="conversations", transient=True, console=Console(stderr=True)
        ):
            await remember(memory, conversation)
            for profile, scores in results.items():
                scores += await ask(memory, conversation, profile)
    return results


def print_table(results: dict[str, list[Score]]) -> None:
    table = Table("profile", "questions", *(f"{name} %" for name in METRICS), title="LoCoMo, top 10, one memory a turn")
    for profile, scores in results.items():
        rows = {"all": scores}
        for category, name in CATEGORIES.items():
            rows[name] = [item for item in scores if item.category == category]
        for name, held in rows.items():
            if held:
                figures = (f"{value:.1f}" for value in means(held).values())
                table.add_row(profile if name == "all" else f"  {name}", str(len(held)), *figures)
    Console(width=130).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.locomo", description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="a LoCoMo file: a list of conversations")
    parser.add_argument("--json", action="store_true", help="one object, {profile: {metric: percent}}")
    arguments = parser.parse_args()
    conversations = read_conversations(arguments.data)
    with (
        tempfile.TemporaryDirectory() as folder,
        ServerProcess(f"sqlite:///{folder}/locomo.db", Path(folder, "server.log")) as server,
    ):
        results = asyncio.run(measure(server.address, conversations))
    if arguments.json:
        print(json.dumps({profile: means(scores) for profile, scores in results.items()}, indent=2))
    else:
        print_table(results)


if __name__ == "__main__":
    main()
