"""One namespace, with everything that can be done in it."""

from __future__ import annotations

from durable_memory_client.aio.calls import Calls
from durable_memory_client.aio.candidates import CandidateCalls
from durable_memory_client.aio.contract import ContractCalls
from durable_memory_client.aio.memories import MemoryCalls
from durable_memory_client.aio.recalls import RecallCalls
from durable_memory_client.aio.repository import RepositoryCalls
from durable_memory_client.aio.semantic import SemanticCalls
from durable_memory_client.aio.sessions import SessionCalls
from durable_memory_client.aio.transfer import TransferCalls
from durable_memory_client.values.namespace import Namespace


class MemoryNamespace(
    SessionCalls, RecallCalls, CandidateCalls, MemoryCalls, RepositoryCalls, SemanticCalls, TransferCalls, ContractCalls
):
    """A view of one namespace: all calls are made in it. Views share the connection of their client."""

    def __init__(self, calls: Calls, namespace: Namespace) -> None:
        self._calls = calls
        self._namespace = namespace

    @property
    def ref(self) -> Namespace:
        """Which namespace it is, as far as it was stated."""
        return self._namespace

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._namespace})"
