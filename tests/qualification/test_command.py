"""The command line of the harness: rows as people name them, and what is refused before anything is started."""

from pathlib import Path

import pytest

from tests.qualification.__main__ import chosen_rows, main
from tests.qualification.scenarios.table import ROWS


def test_rows_are_named_one_by_one_as_stretches_and_by_word():
    assert chosen_rows("") == set()
    assert chosen_rows("1, 4,exploratory") == {0, 1, 4}
    assert chosen_rows("2-5,11") == {2, 3, 4, 5, 11}


@pytest.mark.parametrize("said", ["12", "0", "four", "3-", "1,,x"])
def test_what_is_no_row_is_refused(said: str):
    with pytest.raises(ValueError, match="row"):
        chosen_rows(said)


@pytest.mark.parametrize(
    "arguments", [["--rows", "99"], ["--minutes", "0"], ["--endpoint", "127.0.0.1:1", "--token-file", "nowhere"]]
)
def test_a_wrong_command_line_ends_with_two(arguments: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path):
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--out", str(tmp_path)])

    assert ended.value.code == 2
    assert capsys.readouterr().err


def test_the_rows_are_listed_with_what_they_promise(capsys: pytest.CaptureFixture[str]):
    assert main(["--list"]) == 0

    said = capsys.readouterr().out
    assert all(row.promise in said for row in ROWS)
