"""The cases, as data: what is given, what is called, and what must come of it. README.md describes the form."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).parent / "cases"
REASONS: Final = Path(__file__).parents[1] / "reasons.json"

STEP_KINDS: Final = ("call", "stream", "helper")
_STEP_KEYS: Final = frozenset(
    {*STEP_KINDS, "request", "arguments", "timeout_ms", "cancel", "read", "save", "expect", "on_unavailable"}
)
_CASE_KEYS: Final = frozenset({"name", "given", "token", "answers", "asked", "drop", "steps"})
_WHEN_ASKED: Final = "when_asked"
GIVENS: Final = ("server", "keys", "semantic", "two_servers", "script", "lost_answer", "killed_server", "nothing")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One case. `drop`: text of the request whose first answer is lost. `answers`, `asked`: see `Script`."""

    group: str
    name: str
    given: str
    steps: Sequence[Mapping[str, Any]]
    token: str | None = None
    answers: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    asked: Mapping[str, Any] = field(default_factory=dict)
    drop: str | None = None

    def orders(self) -> list[dict[str, Any]]:
        """The steps as an executor gets them: without what is expected of it."""
        return [{key: value for key, value in step.items() if key != "expect"} for step in self.steps]


def load() -> list[Case]:
    """All cases: those of the files, and one for each reason of the contract. Raises: ValueError."""
    cases = [case for path in sorted(FOLDER.glob("*.json")) for case in _of_file(path)]
    cases += _of_reasons()
    names = [case.name for case in cases]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"cases of the same name: {twice}")
    return cases


def _of_file(path: Path) -> list[Case]:
    return [_case(path.stem, row) for row in json.loads(path.read_text("utf-8"))["cases"]]


def _case(group: str, row: Mapping[str, Any]) -> Case:
    where = f"{group}: {row.get('name')!r}"
    if unknown := row.keys() - _CASE_KEYS:
        raise ValueError(f"{where}: unknown keys {sorted(unknown)}")
    case = Case(group=group, **{"given": "server", **row})
    if case.given not in GIVENS:
        raise ValueError(f"{where}: unknown condition {case.given!r}")
    for step in case.steps:
        if unknown := step.keys() - _STEP_KEYS:
            raise ValueError(f"{where}: unknown keys of a step {sorted(unknown)}")
        if sum(kind in step for kind in STEP_KINDS) != 1:
            raise ValueError(f"{where}: a step is one of {STEP_KINDS}")
        if step.get("cancel", _WHEN_ASKED) != _WHEN_ASKED or ("cancel" in step and case.given != "script"):
            raise ValueError(f"{where}: a call is cancelled {_WHEN_ASKED}, by a service that follows a script")
        if "expect" not in step:
            raise ValueError(f"{where}: a step without an expectation proves nothing")
    return case


def _of_reasons() -> list[Case]:
    """Each reason, said once by the service: its code, whether it is definite, and whether it is repeated."""
    cases = []
    for row in json.loads(REASONS.read_text("utf-8"))["reasons"]:
        reason = row["reason"].removeprefix("ERROR_REASON_")
        refusal: dict[str, Any] = {"code": row["code"], "reason": reason, "metadata": {"field": "memory"}}
        if row["retry"] == "retry_info":
            refusal["retry_after_ms"] = 20
        repeated = row["retry"] != "never"
        reply = {"outcome": "REMEMBER_OUTCOME_CREATED"}
        error = {
            "code": row["code"],
            "reason": reason,
            "metadata": {"field": "memory"},
            "definite": row["definite"] is True,
            "attempts": 1,
        }
        cases.append(
            Case(
                group="reasons",
                name=f"{reason} is {'repeated with the same request id' if repeated else 'never repeated'}",
                given="script",
                answers={"MemoryService.Remember": [{"refuse": refusal}, {"reply": reply}]},
                asked={
                    "MemoryService.Remember": {"attempts": 2 if repeated else 1, "same_request_id": True},
                },
                steps=[
                    {
                        "call": "MemoryService.Remember",
                        "request": {"memory": {"content": "x"}},
                        "expect": {"ok": reply} if repeated else {"error": error},
                    }
                ],
            )
        )
    return cases
