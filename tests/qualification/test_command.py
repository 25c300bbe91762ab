"""The command line of the harness: rows as people name them, and what is refused before anything is started."""

import os
from pathlib import Path

import pytest

from tests.qualification.__main__ import chosen_rows, main
from tests.qualification.scenarios.table import ROWS
from tests.qualification.visit import USE


@pytest.fixture(autouse=True)
def own_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command forgets those of its process, which is that of other tests too."""
    for name in [name for name in os.environ if name.startswith("DURABLE_MEMORY_")]:
        monkeypatch.delenv(name)


def test_a_setting_of_the_environment_is_forgotten(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DURABLE_MEMORY_TOKEN", "stated nowhere")
    assert main(["--list"]) == 0
    assert "DURABLE_MEMORY_TOKEN" not in os.environ


def test_rows_are_named_one_by_one_as_stretches_and_by_word():
    assert chosen_rows("") == set()
    assert chosen_rows("1, 4,exploratory") == {0, 1, 4}
    assert chosen_rows("2-5,11") == {2, 3, 4, 5, 11}
    assert chosen_rows("2,use", USE) == {0, 2}


@pytest.mark.parametrize("said", ["12", "0", "four", "3-", "5-2", "1,,4", ",", "use"])
def test_what_is_no_row_is_refused(said: str):
    with pytest.raises(ValueError, match="row"):
        chosen_rows(said)


def test_of_a_deployment_its_use_is_a_row_and_exploring_is_none():
    with pytest.raises(ValueError, match="or use"):
        chosen_rows("exploratory", USE)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--rows", "99"],
        ["--minutes", "0"],
        ["--endpoint", ""],
        ["--endpoint", "127.0.0.1:1", "--token-file", "nowhere"],
        ["--endpoint", "127.0.0.1:1", "--rows", "exploratory"],
        ["--endpoint", "127.0.0.1:1", "--other-token-file", __file__],
    ],
)
def test_a_wrong_command_line_ends_with_two(arguments: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path):
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--out", str(tmp_path)])

    assert ended.value.code == 2
    assert capsys.readouterr().err


@pytest.mark.parametrize(("token", "said"), [("\n", "holds no token"), ("short\n", "fewer than 6 characters")])
def test_a_token_that_could_not_be_looked_for_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, token: str, said: str
):
    (tmp_path / "token").write_text(token)

    with pytest.raises(SystemExit):
        main(["--endpoint", "127.0.0.1:1", "--token-file", str(tmp_path / "token"), "--out", str(tmp_path / "out")])

    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_rows_are_listed_with_what_they_promise(capsys: pytest.CaptureFixture[str]):
    assert main(["--list"]) == 0

    said = capsys.readouterr().out
    assert all(row.promise in said for row in ROWS)
