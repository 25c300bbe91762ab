"""The store in the process's memory: the executable reference that the other stores are compared with."""

from durable_memory.adapters.memory.store import MemoryStore

__all__ = ["MemoryStore"]
