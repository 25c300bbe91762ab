"""The statements of this adapter, from the .sql files beside this one.

Each block there is `-- name: <name>`, comment lines with its intent, `-- index: <the index that it was designed for>`
where there is one, and the statement. `-- fragment: <name>` is text that statements include as `{name}`. asyncpg
prepares each statement once per connection.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Final

_BLOCK: Final = re.compile(r"^-- (name|fragment): (\w+)\n(.*?)(?=^-- (?:name|fragment): |\Z)", re.MULTILINE | re.DOTALL)
_COMMENT: Final = re.compile(r"^--.*\n", re.MULTILINE)
_INDEX: Final = re.compile(r"^-- index: (.+)$", re.MULTILINE)


def _blocks() -> dict[tuple[str, str], str]:
    found: dict[tuple[str, str], str] = {}
    for file in sorted(files(__name__).iterdir(), key=lambda item: item.name):
        if file.name.endswith(".sql"):
            for kind, name, text in _BLOCK.findall(file.read_text("utf-8")):
                if (kind, name) in found:
                    raise RuntimeError(f"the {kind} {name} is there twice")
                found[kind, name] = text
    return found


def _statements(blocks: Mapping[tuple[str, str], str]) -> dict[str, str]:
    fragments = {name: _COMMENT.sub("", text).strip() for (kind, name), text in blocks.items() if kind == "fragment"}
    statements = {}
    for (kind, name), text in blocks.items():
        if kind == "name":
            bare = _COMMENT.sub("", text).strip().removesuffix(";")
            for fragment, included in fragments.items():
                bare = bare.replace(f"{{{fragment}}}", included)
            statements[name] = bare
    return statements


_TEXTS: Final = _blocks()

STATEMENTS: Final[Mapping[str, str]] = _statements(_TEXTS)
"""Every statement by its name."""

INDEXES: Final[Mapping[str, tuple[frozenset[str], ...]]] = {
    name: tuple(frozenset(indexes.split(" or ")) for indexes in _INDEX.findall(text))
    for (kind, name), text in _TEXTS.items()
    if kind == "name"
}
"""By the name of each statement, the indexes that it was designed for; of those in one set, any will do."""


def statement(name: str) -> str:
    """The statement of this name; a name that is not there fails at import."""
    return STATEMENTS[name]
