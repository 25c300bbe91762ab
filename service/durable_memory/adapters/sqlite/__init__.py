"""The embedded store: one SQLite file, no server to install."""

from durable_memory.adapters.sqlite.lock_file import live_server_address
from durable_memory.adapters.sqlite.store import SqliteStore

__all__ = ["SqliteStore", "live_server_address"]
