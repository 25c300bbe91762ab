"""All SQL of this store, by name.

A file is a list of statements, each after a line `-- name: <name>`; lines of comment may follow it and say why.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from types import MappingProxyType
from typing import Final

_MARK: Final = "-- name: "


def _load() -> Mapping[str, str]:
    statements: dict[str, str] = {}
    for file in sorted(files(__name__).iterdir(), key=lambda file: file.name):
        if file.name.endswith(".sql"):
            _, *blocks = file.read_text("utf-8").split(_MARK)
            for block in blocks:
                name, _, text = block.partition("\n")
                if name in statements:
                    raise ValueError(f"two statements are named {name}")
                statements[name] = text.strip()
    return MappingProxyType(statements)


SQL: Final = _load()
