"""Durable Memory: the memory of record for AI agents, served over gRPC."""

from typing import Final

__version__: Final = "0.1.0"
