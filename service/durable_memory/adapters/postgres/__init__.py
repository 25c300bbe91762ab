"""The production store: PostgreSQL 15 or newer, through asyncpg."""

from durable_memory.adapters.postgres.settings import PostgresSettings
from durable_memory.adapters.postgres.store import PostgresStore

__all__ = ["PostgresSettings", "PostgresStore"]
