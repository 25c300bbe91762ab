"""The names of a suite's tests, to compare with the list of its promises."""

import ast
from itertools import chain
from pathlib import Path


def names_of_tests(folder: Path) -> list[str]:
    """Of all tests in the files of a folder, without those that keep the list."""
    files = sorted(file for file in folder.glob("test_*.py") if file.name != "test_promises.py")
    bodies = (ast.parse(file.read_text("utf-8")).body for file in files)
    return [
        item.name
        for item in chain.from_iterable(bodies)
        if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef) and item.name.startswith("test_")
    ]
