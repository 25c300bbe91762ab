"""The table of reasons that the clients of all languages share."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Final

PREFIX: Final = "ERROR_REASON_"
DOMAIN: Final = "durablememory.dev"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonRow:
    """What a reason means to a client. The columns are explained in the file itself."""

    code: str
    definite: bool | None
    retry: str
    outage: bool


@cache
def reason_rows() -> Mapping[str, ReasonRow]:
    """The rows by reason without prefix."""
    table = json.loads(files("durable_memory_client").joinpath("reasons.json").read_text("utf-8"))
    return MappingProxyType(
        {
            row["reason"].removeprefix(PREFIX): ReasonRow(
                code=row["code"], definite=row["definite"], retry=row["retry"], outage=row["outage"]
            )
            for row in table["reasons"]
        }
    )
