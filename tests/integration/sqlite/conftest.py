"""A store over a fresh file."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from durable_memory.adapters.runtime import SystemIds
from durable_memory.adapters.sqlite import SqliteStore
from durable_memory.domain.namespace import Namespace


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(path, SystemIds())
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def namespace() -> Namespace:
    return Namespace("acme", "user-1", "assistant")
