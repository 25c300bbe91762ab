"""What the operations page says of Envoy is what is tested with a real one."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes.envoy import EnvoyProcess

_PAGE = Path(__file__).resolve().parents[2] / "docs" / "operations.md"
_ROW = re.compile(r"^\| `([a-z0-9_.]+)` \| (?:`([^`]+)`|none) \|", re.MULTILINE)


def _settings(document: object, path: str = "") -> Iterator[tuple[str, str]]:
    """Every value by the names that lead to it, joined by dots; lists have none of their own."""
    if isinstance(document, dict) and document:
        for name, value in document.items():
            yield from _settings(value, f"{path}.{name}")
    elif isinstance(document, list):
        for item in document:
            yield from _settings(item, path)
    else:
        yield path, document if isinstance(document, str) else json.dumps(document)


@pytest.fixture
def tested(tmp_path: Path) -> list[tuple[str, str]]:
    EnvoyProcess([1, 2], tmp_path)
    return list(_settings(json.loads((tmp_path / "envoy.json").read_text())))


def _documented() -> list[tuple[str, str]]:
    section = _PAGE.read_text("utf-8").partition("\n## Behind Envoy")[2].partition("\n## ")[0]
    return _ROW.findall(section)


def test_the_page_has_the_settings_that_matter():
    names = {name.rpartition(".")[2] for name, _ in _documented()}
    assert {"grpc_health_check", "update_merge_window", "stream_idle_timeout", "timeout", "retry_policy"} <= names


@pytest.mark.parametrize(("name", "value"), _documented())
def test_a_documented_setting_is_the_tested_one(tested: list[tuple[str, str]], name: str, value: str):
    if value:
        assert [found for path, found in tested if path.endswith(f".{name}")] == [value]
    else:
        assert not [path for path, _ in tested if f".{name}" in path]
