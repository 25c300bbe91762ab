"""The list of promises and the tests are equal."""

import ast
from itertools import chain
from pathlib import Path

from tests.conformance.semantic_records.promises import PROMISES


def _tests() -> list[str]:
    files = sorted(Path(__file__).parent.glob("test_*.py"))
    bodies = (ast.parse(file.read_text("utf-8")).body for file in files if file != Path(__file__))
    return [
        item.name
        for item in chain.from_iterable(bodies)
        if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef) and item.name.startswith("test_")
    ]


def test_every_test_of_semantic_records_stands_under_one_promise():
    assert sorted(chain.from_iterable(PROMISES.values())) == sorted(_tests())
