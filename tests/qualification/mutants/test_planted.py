"""Each bug can be planted into the service as it is now, and what results is a program; how it comes to be caught."""

import compileall
import filecmp
from pathlib import Path

import pytest

from tests.qualification.checks.by_hand import Story
from tests.qualification.checks.kernel import lost_acknowledgements
from tests.qualification.mutants.__main__ import plant_all, said_of
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


class Seeds:
    """Catches with these seeds alone, and keeps what it was asked."""

    def __init__(self, *seeds: int) -> None:
        self.asked: list[tuple[str, int, str]] = []
        self._seeds = seeds

    async def catch(self, bug: PlantedBug, seed: int, out: Path) -> list[str]:
        self.asked.append((bug.name, seed, out.name))
        return ["row 5, a check: a problem"] if seed in self._seeds else []


async def test_a_bug_that_was_caught_is_not_tried_again(tmp_path):
    seeds = Seeds(7)
    assert await plant_all(ALL[:2], 7, tmp_path, catch=seeds.catch) == 0
    assert seeds.asked == [(bug.name, 7, bug.name) for bug in ALL[:2]]


async def test_a_bug_that_a_run_misses_is_tried_once_more_by_the_next_seed(tmp_path, capsys):
    seeds = Seeds(8)
    assert await plant_all(ALL[:1], 7, tmp_path, catch=seeds.catch) == 0
    name = ALL[0].name
    assert seeds.asked == [(name, 7, name), (name, 8, f"{name}-again")]
    assert "NOT CAUGHT" not in capsys.readouterr().out


async def test_a_bug_that_no_check_knows_is_missed(tmp_path, capsys):
    seeds = Seeds()
    assert await plant_all(ALL[:1], 7, tmp_path, catch=seeds.catch) == 1
    assert len(seeds.asked) == 2
    assert "NOT CAUGHT" in capsys.readouterr().out
