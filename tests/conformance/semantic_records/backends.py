"""The records of each store that the suite runs against; a store's records share its data, connections and life."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from durable_memory.adapters.memory.semantic_records import MemorySemanticRecords
from durable_memory.adapters.postgres.semantic_records import PostgresSemanticRecords
from durable_memory.adapters.sqlite.semantic_records import SqliteSemanticRecords
from durable_memory.ports.semantic_records import SemanticRecords

RECORDS: Final[Mapping[str, Callable[[Any], SemanticRecords]]] = {
    "memory": MemorySemanticRecords,
    "sqlite": SqliteSemanticRecords,
    "postgres": PostgresSemanticRecords,
}
"""Over an open store of the backend with that name."""
