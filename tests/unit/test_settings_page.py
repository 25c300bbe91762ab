"""The page of settings has every setting of a server, and no page names one that there is not."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from durable_memory.config import PREFIX, Settings
from durable_memory.store_url import MemoryUrl

_ROOT = Path(__file__).resolve().parents[2]
_TOOL = Path("tools/settings_table")
_CONFIG = Path("service/durable_memory/config.py")
_PAGES = [_ROOT / "README.md", *sorted((_ROOT / "docs").glob("*.md")), *sorted(_ROOT.glob("clients/*/README.md"))]
_OF_THE_CLIENTS = {PREFIX + "COMMAND"}
"""Names the program that their test servers start, and never reaches it."""


def _names() -> list[str]:
    return [name for name, _ in Settings(store=MemoryUrl()).variables()]


def _rows() -> dict[str, str]:
    """What the page says of each setting, by its variable; the default comes first."""
    text = (_ROOT / "docs" / "settings.md").read_text("utf-8")
    return {PREFIX + name: rest for name, rest in re.findall(r"^\| `([A-Z0-9_]+)` \| (.*) \|$", text, re.MULTILINE)}


def test_every_setting_stands_on_the_page_in_order():
    assert list(_rows()) == _names()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ADDRESS", "`127.0.0.1:7447` |  |"),
        ("REFLECTION", "`true` | `true`, `false` |"),
        ("CALLS_MAX_STREAMS", "1,024 | 1 to 1,000,000 |"),
        ("DRAIN_DELAY_SECONDS", "0 | 0 to 86,400 |"),
        ("DRAIN_GRACE_SECONDS", "20 | above 0 to 86,400 |"),
        ("VIEWS_BUDGET_BYTES", "512 MiB | 1 MiB to 1 TiB |"),
        ("EMBEDDING_DIMENSIONS", "none | 1 to 8,192 |"),
        ("EMBEDDING_SIMILARITY_FLOOR", "0 | -1 to under 1 |"),
        ("VECTORS_VECTOR_FORMAT", "`float32` | `float16`, `float32` |"),
    ],
)
def test_a_setting_stands_there_with_its_default_and_what_it_may_be(name: str, said: str):
    assert _rows()[PREFIX + name].startswith(said)


def test_a_setting_that_a_page_names_exists():
    named = {
        name
        for page in _PAGES
        for name in re.findall(rf"{PREFIX}[A-Z0-9_]*[A-Z0-9](?![A-Z0-9_*…])", page.read_text("utf-8"))
    }
    assert named - _OF_THE_CLIENTS <= set(_names())


def _tool_in(folder: Path, config: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The tool, in a tree of which only the settings are another's."""
    for file in [_TOOL, Path("docs/settings.md"), *(_ROOT / _CONFIG.parent).glob("*.py")]:
        copied = folder / file.relative_to(_ROOT) if file.is_absolute() else folder / file
        copied.parent.mkdir(parents=True, exist_ok=True)
        copied.write_text((_ROOT / file).read_text("utf-8"), "utf-8")
    (folder / _CONFIG).write_text(config, "utf-8")
    command = [sys.executable, str(folder / _TOOL), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("line", "changed", "complaint"),
    [
        ("", "", ""),
        ("max_concurrent: Count = 256", "max_concurrent: Count = 255", "run make gen"),
        ('    """Connections that read."""\n', "", "PostgresSettings.read_connections"),
    ],
    ids=["as it is", "another default", "no meaning"],
)
def test_the_page_is_stale_once_a_setting_changes(tmp_path: Path, line: str, changed: str, complaint: str):
    config = (_ROOT / _CONFIG).read_text("utf-8")
    assert line in config

    checked = _tool_in(tmp_path, config.replace(line, changed), "--check")

    assert (checked.returncode != 0) == bool(complaint)
    assert complaint in checked.stderr


_BOUNDS = {
    "int, Field(gt=0, le=10)": "1 to 10",
    "int, Field(gt=4, lt=10)": "5 to 9",
    "int, Field(gt=4)": "5 or more",
    "int, Field(le=10)": "10 or less",
    "float, Field(gt=4, lt=10)": "above 4 to under 10",
    "float, Field(gt=4)": "above 4",
    "float, Field(ge=4)": "4 or more",
    "float, Field(lt=10)": "under 10",
    "float, Field(allow_inf_nan=False)": "",
}


def test_the_page_says_each_bound_of_a_number(tmp_path: Path):
    config = (_ROOT / _CONFIG).read_text("utf-8")
    line = "    attempts: Annotated[int, Field(gt=0, le=10)] = 4\n"
    assert line in config
    bounded = (f'    x{i}: Annotated[{bounds}] = 7\n    """A number."""\n' for i, bounds in enumerate(_BOUNDS))

    made = _tool_in(tmp_path, config.replace(line, "".join(bounded) + line))

    assert made.returncode == 0, made.stderr
    page = (tmp_path / "docs" / "settings.md").read_text("utf-8")
    assert re.findall(r"^\| `EMBEDDING_X\d` \| 7 \| (.*) \| A number. \|$", page, re.MULTILINE) == list(
        _BOUNDS.values()
    )
