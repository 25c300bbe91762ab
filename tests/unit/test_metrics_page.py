"""The page of metrics and the instruments that a server makes name the same."""

import re
from pathlib import Path

import pytest
from opentelemetry.metrics import MeterProvider, NoOpMeter
from opentelemetry.sdk.trace import TracerProvider

from durable_memory.config import EmbeddingSettings, Settings
from durable_memory.main import build
from durable_memory.store_url import MemoryUrl
from durable_memory.telemetry import Telemetry

_PAGE = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"
_KINDS = {
    "create_counter": "counter",
    "create_histogram": "histogram",
    "create_up_down_counter": "up/down counter",
    "create_observable_counter": "counter",
    "create_observable_gauge": "gauge",
}


class _Names(NoOpMeter):
    """Notes the kind of every instrument that is made."""

    def __init__(self, made: dict[str, str]) -> None:
        super().__init__("names")
        self._made = made

    def __getattribute__(self, name):
        method = super().__getattribute__(name)
        if not name.startswith("create_"):
            return method

        def create(instrument, *arguments, **options):
            assert instrument not in self._made, "made twice"
            self._made[instrument] = _KINDS[name]
            return method(instrument, *arguments, **options)

        return create


class _Meters(MeterProvider):
    def __init__(self, made: dict[str, str]) -> None:
        self._made = made

    def get_meter(self, *arguments, **options):
        return _Names(self._made)


@pytest.fixture
async def made():
    """The instruments of a server that has all it can have, by name."""
    instruments: dict[str, str] = {}
    settings = Settings(
        store=MemoryUrl(), embedding=EmbeddingSettings(provider="openai", base_url="http://127.0.0.1:9/v1", model="m")
    )
    build(settings, telemetry=Telemetry(TracerProvider(shutdown_on_exit=False), _Meters(instruments)))
    return instruments


def _documented() -> dict[str, str]:
    kinds = "|".join(_KINDS.values())
    rows = re.findall(rf"^\| (`.*?) \| ({kinds})(?:, \S+)? \|", _PAGE.read_text("utf-8"), re.MULTILINE)
    return {name: kind for names, kind in rows for name in re.findall(r"`(\S+)`", names)}


async def test_every_metric_is_documented_with_its_kind_and_every_documented_one_exists(made):
    assert _documented() == made


async def test_metrics_that_are_spoken_of_exist(made):
    mentioned = set(
        re.findall(
            r"`(durable_memory\.[a-z_.]+)`",
            "".join(page.read_text("utf-8") for page in sorted(_PAGE.parent.glob("*.md"))),
        )
    )
    assert mentioned <= made.keys()
