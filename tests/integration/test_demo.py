"""The demonstration that the README promises: it passes, is quick, and does not run past a step that fails."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from durable_memory_client import Degradation, DegradationReason, Namespace, Recall
from examples import demo
from tests.integration.command_line import MANY_SECONDS, ROOMY, SECONDS

pytestmark = pytest.mark.timeout(MANY_SECONDS)

_ROOT = Path(__file__).resolve().parents[2]


def _told(**variables: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DURABLE_MEMORY_")}
    paths = os.pathsep.join([str(_ROOT / "service"), str(_ROOT / "clients" / "python" / "src")])

    told = subprocess.run(
        [sys.executable, "-m", "examples.demo"],
        cwd=_ROOT,
        env={**environment, **ROOMY, "PYTHONPATH": paths, **variables},
        capture_output=True,
        text=True,
        timeout=4 * SECONDS,
    )

    assert (told.returncode, told.stderr) == (0, "")
    lines = told.stdout.splitlines()
    assert lines[-1].startswith("All of it held")
    assert 40 <= len(lines) <= 80
    assert max(map(len, lines)) <= 120
    return told.stdout


def _found(told: str, mode: str) -> list[str]:
    return re.findall(rf"^  ✓ {mode}: (.*)$", told, re.MULTILINE)


def test_the_demo_tells_its_whole_story():
    told = _told()

    for word in ("EVIDENCE_REQUIRED", "dm1:", "花生", "kill -9"):
        assert word in told
    # Before and after the crash: another wording, another language, and the memory's own words.
    assert _found(told, "LEXICAL") == ["nothing"] * 4
    channels = [re.findall(r"\b(LEXICAL|SEMANTIC|HYBRID)\b", found) for found in _found(told, "AUTO")]
    assert channels == [["SEMANTIC"], ["SEMANTIC"], ["HYBRID"]] * 2


def test_the_demo_of_a_server_without_a_model_says_what_it_goes_without_and_passes():
    told = _told(DURABLE_MEMORY_SERVER_EMBEDDING_PROVIDER="none")

    assert _found(told, "AUTO") == ["DEGRADED, lexical only: SEMANTIC_NOT_CONFIGURED"] * 4
    assert "pip install 'durable-memory[local]'" in told


@pytest.mark.parametrize("hits", [(), ("degraded",)])
def test_a_recall_that_went_without_vectors_or_found_nothing_ends_the_demo_as_failed(hits: tuple[str, ...]):
    degradation = Degradation(DegradationReason.PROVIDER_FAILED, "no vector") if hits else None
    with pytest.raises(SystemExit, match="no vector" if hits else "nothing was found"):
        demo.searched_by_meaning(Recall(namespace=Namespace("a", "b", "c"), degradation=degradation))


def test_a_step_that_does_not_hold_ends_the_demo_as_failed(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit, match="not true: water runs uphill"):
        demo.check(False, "water runs uphill")

    assert capsys.readouterr().out == ""
