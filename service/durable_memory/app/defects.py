"""What may be told of an exception that nobody expected: its place, and not its words, which may quote a text."""

from __future__ import annotations

import traceback


def exception_types(error: BaseException | None) -> list[str]:
    """The exception and what caused it, outermost first."""
    types: list[str] = []
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        types.append(f"{type(error).__module__}.{type(error).__qualname__}")
        error = error.__cause__ or error.__context__
    return types


def frames(error: BaseException) -> list[str]:
    """Where it was raised, innermost last: places in code, no values."""
    found = traceback.extract_tb(error.__traceback__)
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in found]
