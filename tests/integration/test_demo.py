"""The demonstration that the README promises: it passes, is quick, and does not run past a step that fails."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from examples import demo

_ROOT = Path(__file__).resolve().parents[2]
_SECONDS = 60


def test_the_demo_tells_its_whole_story():
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DURABLE_MEMORY_")}
    paths = os.pathsep.join([str(_ROOT / "service"), str(_ROOT / "clients" / "python" / "src")])

    told = subprocess.run(
        [sys.executable, "-m", "examples.demo"],
        cwd=_ROOT,
        env={**environment, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
    )

    assert (told.returncode, told.stderr) == (0, "")
    lines = told.stdout.splitlines()
    assert lines[-1].startswith("All of it held")
    assert 40 <= len(lines) <= 60
    assert max(map(len, lines)) <= 120
    for word in ("EVIDENCE_REQUIRED", "dm1:", "花生", "kill -9"):
        assert word in told.stdout


def test_a_step_that_does_not_hold_ends_the_demo_as_failed(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit, match="not true: water runs uphill"):
        demo.check(False, "water runs uphill")

    assert capsys.readouterr().out == ""
