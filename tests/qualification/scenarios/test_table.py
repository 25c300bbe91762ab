"""The table is the design's, and every row has its scenario."""

import random
from pathlib import Path

import pytest

from tests.qualification.report.results import Finding, RowResult
from tests.qualification.scenarios import exploratory
from tests.qualification.scenarios.table import EXPLORING, ROWS, MissingRowError, Row, rows, scenario_of


def test_the_rows_are_numbered_in_order():
    assert [row.number for row in ROWS] == list(range(1, 12))


def test_every_module_of_a_row_is_the_scenario_of_that_row():
    for row in (*ROWS, EXPLORING):
        if (Path(__file__).parent / f"{row.module}.py").exists():
            assert scenario_of(row).row == row.number


def test_a_row_without_a_module_is_an_error():
    with pytest.raises(
        MissingRowError, match=r"row 12, nowhere, has no module tests\.qualification\.scenarios\.nowhere"
    ):
        scenario_of(Row(number=12, module="nowhere", name="nowhere", promise="", share=1))


def test_a_module_of_another_row_is_an_error():
    with pytest.raises(MissingRowError, match="is of row 11"):
        scenario_of(Row(number=12, module="hygiene", name="mine", promise="", share=1))


def test_rows_come_in_the_order_of_the_table():
    assert [row.number for row in rows([5, 2])] == [2, 5]
    with pytest.raises(ValueError, match="there is no row 0, 12"):
        rows([12, 1, 0])


def test_a_seed_explores_the_same_faults_again():
    def names(seed: int) -> list[str]:
        return [fault.name for fault in exploratory.chosen(random.Random(seed))]

    assert names(3) == names(3)
    assert len({tuple(names(seed)) for seed in range(20)}) == 20


def test_episodes_are_summed_up_by_check_and_name_their_episode():
    whole = RowResult(row=0, name="exploratory", promise="")
    episodes = []
    for problems, worst in ((["a"], 3.0), ([], 1.0), (["b"], 2.0)):
        one = RowResult(row=0, name="exploratory", promise="", figures={"worst_seconds": worst, "kept": 2})
        one.findings.append(Finding(check="c", looked_at=5, problems=problems))
        one.faults["kill"] += 1
        episodes.append(one)

    exploratory._sum_up(whole, episodes)

    (finding,) = whole.findings
    assert (finding.looked_at, list(finding.problems)) == (15, ["episode 1: a", "episode 3: b"])
    assert whole.figures == {"worst_seconds": 3.0, "kept": 6, "episodes": 3}
    assert whole.faults["kill"] == 3
