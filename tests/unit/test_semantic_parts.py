"""Which adapters stand beside which store."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from durable_memory.adapters.memory.vector_index import MemoryVectorIndex
from durable_memory.adapters.redis import RedisLeaseStore, RedisVectorIndex
from durable_memory.adapters.runtime import ManualClock, SystemIds
from durable_memory.adapters.sqlite.vector_index import SqliteVectorIndex
from durable_memory.config import EmbeddingSettings, Settings, SettingsError, VectorSettings
from durable_memory.main import build_store
from durable_memory.semantic_parts import build_semantic_parts
from durable_memory.store_url import MemoryUrl, PostgresUrl, SqliteUrl
from tests.fixture_embedder import FixtureEmbedder

LOCAL = EmbeddingSettings(provider="local")
REDIS = VectorSettings.model_validate({"redis_url": "redis://127.0.0.1:1"})


def parts(*, embedder=None, **settings):
    chosen = Settings(**settings)
    ids = SystemIds()
    clock = ManualClock(datetime(2026, 1, 1, tzinfo=UTC))
    return build_semantic_parts(chosen, build_store(chosen, ids), clock, ids, embedder)


def test_without_an_embedder_there_are_no_parts():
    with capture_logs() as logged:
        assert parts(store=MemoryUrl(), embedding=EmbeddingSettings(provider="none")) is None
    assert logged == []


def test_an_embedder_that_is_given_stands_in_for_the_one_of_the_settings():
    embedder = FixtureEmbedder()
    made = parts(store=MemoryUrl(), embedding=EmbeddingSettings(provider="none"), embedder=embedder)
    assert made.embedder is embedder


def test_a_server_that_found_no_place_for_vectors_by_itself_recalls_by_words_and_says_why_once():
    with capture_logs() as logged:
        assert parts(store=PostgresUrl("postgresql://h/d")) is None
    (line,) = logged
    assert (line["event"], line["log_level"]) == ("semantic_off", "info")
    assert "VECTORS_REDIS_URL" in line["problem"]


@pytest.mark.parametrize(
    ("store", "index"), [(MemoryUrl(), MemoryVectorIndex), (SqliteUrl(Path("a.db")), SqliteVectorIndex)]
)
def test_an_embedded_store_keeps_its_own_index(store, index):
    assert isinstance(parts(store=store, embedding=LOCAL).index, index)


@pytest.mark.parametrize("store", [SqliteUrl(Path("a.db")), PostgresUrl("postgresql://h/d")])
def test_a_redis_server_that_is_named_has_index_and_leases(store):
    made = parts(store=store, embedding=LOCAL, vectors=REDIS)
    assert isinstance(made.index, RedisVectorIndex)
    assert isinstance(made.leases, RedisLeaseStore)


@pytest.mark.parametrize("store", [MemoryUrl(), SqliteUrl(Path("a.db")), PostgresUrl("postgresql://h/d")])
def test_a_redis_server_that_is_named_where_nobody_makes_vectors_is_told_in_one_line(store):
    with capture_logs() as logged:
        assert parts(store=store, embedding=EmbeddingSettings(provider="none"), vectors=REDIS) is None
    (line,) = logged
    assert (line["event"], line["log_level"]) == ("setting_without_effect", "warning")
    assert line["setting"] == "DURABLE_MEMORY_SERVER_VECTORS_REDIS_URL"
    assert "127.0.0.1" not in str(line), "a URL may hold a password"


def test_a_shared_store_needs_a_shared_index():
    with pytest.raises(SettingsError, match="VECTORS_REDIS_URL"):
        parts(store=PostgresUrl("postgresql://h/d"), embedding=LOCAL)
