"""One table for everything that was measured, and the same as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

from benchmarks.retrieval.dataset import Dataset
from benchmarks.retrieval.methods import WITH_VECTORS
from benchmarks.retrieval.scores import Score, means
from benchmarks.retrieval.serving import Results

_HEADINGS = {
    "recall_at_10": "turn Recall@10",
    "group_hit_at_10": "session hit@10",
    "hit_at_1": "hit@1",
    "hit_at_10": "hit@10",
    "mrr": "MRR",
    "false_hits": "false hits",
}


def print_tables(
    measured: Mapping[str, Results], datasets: Sequence[Dataset], *, categories: bool, console: Console
) -> None:
    """`measured` is by embedder. One row for each data set, embedder and method."""
    for metrics in dict.fromkeys(dataset.metrics for dataset in datasets):
        alike = [dataset for dataset in datasets if dataset.metrics == metrics]
        columns, title = list(metrics), "top 10, percent"
        if any(question.unanswerable for dataset in alike for part in dataset.parts for question in part.questions):
            columns.append("false_hits")
            title += "; false hits: how many an unanswerable question got"
        table = Table(title=title)
        for heading in ("set", "questions", "embedder", "method"):
            table.add_column(heading, no_wrap=True)
        for column in columns:
            table.add_column(_HEADINGS[column], justify="right")
        for dataset in alike:
            _add(table, measured, dataset, columns, categories=categories)
        console.print(table)


def _add(
    table: Table, measured: Mapping[str, Results], dataset: Dataset, columns: Sequence[str], *, categories: bool
) -> None:
    shown: set[str] = set()
    for embedder, results in measured.items():
        for method, scores in results[dataset.name].items():
            if method in shown and method not in WITH_VECTORS:
                continue  # words alone find the same, whoever embeds
            shown.add(method)
            rows = {"": scores}
            if categories:
                names = sorted({item.category for item in scores} - {""})
                rows |= {name: [item for item in scores if item.category == name] for name in names}
            for name, held in rows.items():
                figures = means(held, dataset.metrics)
                table.add_row(
                    *(dataset.name, str(len(held)), embedder if method in WITH_VECTORS else "", name or method),
                    *(f"{figures[column]:.1f}" if column in figures else "" for column in columns),
                )
    table.add_section()


def to_json(measured: Mapping[str, Results], datasets: Sequence[Dataset]) -> str:
    """{embedder: {set: {method: {"questions": count, metric: percent}}}}"""

    def figures(dataset: Dataset, scores: Sequence[Score]) -> dict[str, float]:
        return {"questions": len(scores), **means(scores, dataset.metrics)}

    return json.dumps(
        {
            embedder: {
                dataset.name: {method: figures(dataset, scores) for method, scores in results[dataset.name].items()}
                for dataset in datasets
            }
            for embedder, results in measured.items()
        },
        indent=2,
    )
