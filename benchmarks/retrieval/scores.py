"""What an answer is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from benchmarks.retrieval.dataset import Question

TOP = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Of one question, over its first ten hits; each 0..1 but `hits`, which is how many there were.

    recall_at_10: the share of the answers that were found. group_hit_at_10: whether any hit is of a group that has an
    answer. mrr: 1 / the rank of the first answer.
    """

    category: str
    unanswerable: bool
    hits: int
    recall_at_10: float
    group_hit_at_10: float
    hit_at_1: float
    hit_at_10: float
    mrr: float


def score(question: Question, groups: Mapping[str, str], found: Sequence[str]) -> Score:
    """`found` are the ids of the hits, best first; `groups` has the group of each memory."""
    held = {groups[answer] for answer in question.answers}
    ranks = [rank for rank, hit in enumerate(found[:TOP], start=1) if hit in question.answers]
    return Score(
        category=question.category,
        unanswerable=question.unanswerable,
        hits=len(found),
        recall_at_10=len(ranks) / len(question.answers),
        group_hit_at_10=float(any(groups[hit] in held for hit in found[:TOP])),
        hit_at_1=float(1 in ranks),
        hit_at_10=float(bool(ranks)),
        mrr=1 / ranks[0] if ranks else 0.0,
    )


def means(scores: Sequence[Score], metrics: Sequence[str]) -> dict[str, float]:
    """Percent, to one digit; `false_hits` is how many hits an unanswerable question got, where there are any."""
    figures = {name: round(100 * fmean(getattr(item, name) for item in scores), 1) for name in metrics}
    false_hits = [item.hits for item in scores if item.unanswerable]
    if false_hits:
        figures["false_hits"] = round(fmean(false_hits), 1)
    return figures
