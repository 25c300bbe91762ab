"""The cases are complete, and what compares them can fail."""

import json

import pytest

from clients.conformance.cases import REASONS, Case, load
from clients.conformance.executors import Language
from clients.conformance.matching import differences
from clients.conformance.table import Cell, Verdict, closing_line, table
from durable_memory_client.methods import METHODS

CASES = load()

# What takes a client's own code around the RPC is there as a helper.
BY_HELPERS = {"TransferService.ExportNamespace", "TransferService.ImportNamespace"}


def test_every_rpc_is_in_some_case():
    called = {step.get("call") or step.get("stream") for case in CASES for step in case.steps}
    assert {method.name for method in METHODS.values()} - called == BY_HELPERS
    assert any(step.get("helper") == "copy" for case in CASES for step in case.steps)


def test_every_reason_is_in_some_case_with_what_a_client_does_about_it():
    reasons = {row["reason"].removeprefix("ERROR_REASON_") for row in json.loads(REASONS.read_text())["reasons"]}
    assert {case.name.split()[0] for case in CASES if case.group == "reasons"} == reasons


@pytest.mark.parametrize(
    ("expected", "actual", "where"),
    [
        ({"ok": {"a": 1}}, {"ok": {"a": 2}}, "ok.a"),
        ({"ok": {"a": 1}}, {"ok": {}}, "ok.a"),
        ({"ok": {"a": "$absent"}}, {"ok": {"a": 1}}, "ok.a"),
        ({"ok": [1, 2]}, {"ok": [1]}, "ok"),
        ({"ok": [1, 2]}, {"ok": [1, 3]}, "ok[1]"),
        ({"ok": 1}, {"ok": True}, "ok"),
        ({"ok": "tea"}, {"ok": "tee"}, "ok"),
        ({"ok": "$any"}, {"error": {}}, "ok"),
        ({"error": {"definite": False}}, {"error": {"definite": None}}, "error.definite"),
    ],
)
def test_a_difference_is_found_and_said_where(expected, actual, where):
    (difference,) = differences(expected, actual)
    assert difference.startswith(f"{where}: ")


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ({"ok": {"a": 1}}, {"ok": {"a": 1, "b": 2}}),
        ({"ok": {"a": "$any", "b": "$absent"}}, {"ok": {"a": None}}),
        ({"ok": ["$any", {"x": []}]}, {"ok": [7, {"x": [], "y": 1}]}),
    ],
)
def test_more_than_expected_is_no_difference(expected, actual):
    assert differences(expected, actual) == []


def test_a_language_that_was_not_run_is_neither_passed_nor_failed_and_is_said():
    case = Case(group="group", name="case", given="server", steps=())
    python, go = Language("python", (), (), ()), Language("go", ("no-such-tool",), (), ())
    assert go.missing() == "no-such-tool"
    cells = {("case", "python"): Cell(Verdict.PASSED), ("case", "go"): Cell(Verdict.NOT_RUN, ["go is not installed"])}
    assert closing_line(cells) == "1 passed, 0 failed, 1 skipped"
    text = "\n".join(table([case], [python, go], cells, color=False))
    assert "go was not run: go is not installed" in text
