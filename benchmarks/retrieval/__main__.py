"""Retrieval quality on LoCoMo and XQuAD: words, meaning, and both.

A server of its own on SQLite for each embedder; every memory goes through the API as a candidate with evidence and is
activated, the index is refreshed, and each question recalls the top 10 of its namespace in each way.

    python -m benchmarks.retrieval --locomo locomo.json --xquad xquad.en.json --xquad xquad.zh.json \
        --embedder local --embedder local-fast [--json]

LoCoMo's figures are turn Recall@10 (the mean over questions of the share of evidence turns among the hits), session
hit@10 (any turn of a session with evidence) and MRR of the first evidence turn. With XQuAD in several languages the
questions of each are also asked about the passages of the first; and all that once more in small namespaces, where an
answer stands among few.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.retrieval.dataset import Dataset
from benchmarks.retrieval.locomo import locomo, read_conversations
from benchmarks.retrieval.methods import METHODS
from benchmarks.retrieval.report import print_tables, to_json
from benchmarks.retrieval.serving import Results, measure
from benchmarks.retrieval.xquad import Translation, read_translation, xquad
from durable_memory_client import SemanticPolicy
from durable_memory_client.values.session import PolicyFields
from tests.processes.server import ServerProcess

_QUICK_PASSAGES = 40
_EMBEDDING = "DURABLE_MEMORY_SERVER_EMBEDDING_"


def datasets(options: argparse.Namespace) -> list[Dataset]:
    """What the options ask for."""
    sets = []
    if options.locomo:
        conversations = read_conversations(options.locomo)
        sets.append(locomo(conversations[:1] if options.quick else conversations))
    translations = [read_translation(path) for path in options.xquad]
    if options.quick:
        translations = [Translation(item.language, item.passages[:_QUICK_PASSAGES]) for item in translations]
    pairs = [(item, item) for item in translations] + [(item, translations[0]) for item in translations[1:]]
    sets += [xquad(asked, said) for asked, said in pairs]
    if options.small:
        sets += [xquad(asked, said, namespaces=-(-len(said.passages) // options.small)) for asked, said in pairs]
    return sets


def run(embedder: str, sets: Sequence[Dataset], floors: PolicyFields) -> Results:
    """On a server of its own."""
    environment = {name: value for name, value in os.environ.items() if name.startswith(_EMBEDDING)}
    environment |= {f"{_EMBEDDING}PROVIDER": embedder, "OMP_NUM_THREADS": "1"}
    methods = [method for method in METHODS if embedder != "none" or not method.needs_vectors]
    with (
        tempfile.TemporaryDirectory() as folder,
        ServerProcess(f"sqlite:///{folder}/retrieval.db", Path(folder, "server.log"), env=environment) as server,
    ):
        return asyncio.run(measure(server.address, sets, methods, floors))


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.retrieval",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--locomo", type=Path, help="a file of LoCoMo: a list of conversations")
    parser.add_argument("--xquad", type=Path, action="append", default=[], help="a file of XQuAD; may be repeated")
    parser.add_argument(
        "--embedder",
        action="append",
        help="none, local, local-fast, or openai with its settings in the environment; may be repeated (local)",
    )
    parser.add_argument("--small", type=int, default=8, help="passages of a small namespace; 0: leave them out (8)")
    parser.add_argument("--quick", action="store_true", help="one conversation, 40 passages")
    parser.add_argument("--min-score", type=float, help="the least lexical score, 0..1")
    parser.add_argument("--min-similarity", type=float, help="the least cosine")
    parser.add_argument("--categories", action="store_true", help="in the table, also by category of question")
    parser.add_argument("--json", action="store_true", help="one object: embedder, set, method, metric")
    options = parser.parse_args()
    sets = datasets(options)
    if not sets:
        parser.error("give --locomo, --xquad or both")
    floors = PolicyFields(min_score=options.min_score)
    if options.min_similarity is not None:
        floors["semantic"] = SemanticPolicy(min_similarity=options.min_similarity)
    measured = {embedder: run(embedder, sets, floors) for embedder in options.embedder or ["local"]}
    if options.json:
        print(to_json(measured, sets))
    else:
        print_tables(measured, sets, categories=options.categories, console=Console(width=130))


if __name__ == "__main__":
    main()
