"""Stores as `durable-memory serve` takes them."""

import pytest


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path) -> str:
    """The URL of a fresh store. Ask for it before `start_server`, so that it outlives the servers."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/memory.db"
    dsn: str = request.getfixturevalue("postgres_database")
    return dsn
