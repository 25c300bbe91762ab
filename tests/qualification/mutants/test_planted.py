"""Each bug can be planted into the service as it is now, and what results is a program."""

import compileall
import filecmp
from pathlib import Path

import pytest

from tests.qualification.checks.by_hand import Story
from tests.qualification.checks.kernel import lost_acknowledgements
from tests.qualification.mutants.__main__ import said_of
from tests.qualification.mutants.planted import (
    ACKNOWLEDGED_BEFORE_COMMIT,
    ALL,
    SERVICE_ROOT,
    Edit,
    PlantedBug,
    StaleEditError,
    planted,
)
from tests.qualification.report.results import Finding, RowResult

HERE = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("bug", ALL, ids=lambda bug: bug.name)
def test_a_bug_can_be_planted_and_changes_what_it_names_alone(bug: PlantedBug, tmp_path):
    root = planted(bug, tmp_path)
    changed = {
        str(path.relative_to(root / "durable_memory"))
        for path in (root / "durable_memory").rglob("*")
        if path.is_file() and not filecmp.cmp(path, SERVICE_ROOT / path.relative_to(root), shallow=False)
    }
    assert changed == {edit.path for edit in bug.edits}
    for path in changed:
        assert compileall.compile_file(root / "durable_memory" / path, quiet=1)


@pytest.mark.parametrize("bug", ALL, ids=lambda bug: bug.name)
def test_what_is_to_catch_a_bug_is_the_name_of_a_check(bug: PlantedBug):
    harness = "".join(path.read_text() for folder in ("scenarios", "traffic") for path in (HERE / folder).glob("*.py"))
    assert bug.checks
    assert [check for check in bug.checks if f'"{check}"' not in harness] == []


def test_an_edit_whose_place_is_gone_is_refused(tmp_path):
    gone = PlantedBug(name="gone", what="", edits=[Edit("main.py", "no such text", "")], rows=[1], checks=[])
    with pytest.raises(StaleEditError, match=r"gone: main.py has the text to replace 0 times"):
        planted(gone, tmp_path)


def test_a_bug_that_loses_something_is_caught_by_the_loss_and_not_by_what_else_the_same_check_says():
    written = Story()
    written.remember("n", "one")
    lost = lost_acknowledgements(written.calls, [])
    assert lost
    stale = "change token 40 was read after 41 was known"
    row = RowResult(row=5, name="", promise="")
    check = "what is acknowledged is there right after each fault"
    row.findings.append(Finding(check=check, looked_at=9, problems=[stale]))
    assert said_of(ACKNOWLEDGED_BEFORE_COMMIT, row) == []
    row.findings.append(Finding(check=check, looked_at=9, problems=[stale, *lost]))
    assert said_of(ACKNOWLEDGED_BEFORE_COMMIT, row) == [f"row 5, {check}: {lost[0]} (1 in all)"]
    row.findings.append(Finding(check="another check", looked_at=9, problems=lost))
    assert len(said_of(ACKNOWLEDGED_BEFORE_COMMIT, row)) == 1
