"""What the stories of this folder share: servers with semantic recall, memories, and questions without their words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from durable_memory_client import DegradationReason, IndexState, Recall, RecallMode, RefreshReceipt, SemanticPolicy
from durable_memory_client.errors import LeaseHeldError, MemoryUnavailableError
from durable_memory_client.sync import MemoryClient, MemoryNamespace, MemorySession
from tests.fixture_embedder import DIMENSION
from tests.processes.embedding_provider import Behaviour, ProviderThread, knows
from tests.processes.polling import wait_until
from tests.processes.redis import RedisProcess
from tests.processes.server import ServerProcess

TEA, RAIN, MONEY, SLEEP = "Kettles boil water.", "Umbrellas stop drizzle.", "Invoices fall due.", "Pillows stay soft."
ABOUT_TEA, ABOUT_RAIN, ABOUT_MONEY, ABOUT_SLEEP = "warm beverage", "bad weather", "owed sums", "nightly rest"
"""Questions that have no word in common with what they are about."""

BRIEF_LEASE_SECONDS: Final = 5.0
"""For stories of servers that are killed: their successors wait for so long."""

LONG_SECONDS: Final = 60.0
"""The deadline of a call that ends much sooner, of a provider that answers, and of whatever it is not about."""

EXPLICIT: Final = (RecallMode.SEMANTIC, RecallMode.HYBRID)

_SETTINGS: Final[Mapping[str, object]] = {
    "embedding_provider": "openai",
    "embedding_model": "fixture",
    "embedding_query_timeout_seconds": LONG_SECONDS,
    "vectors_search_budget_seconds": LONG_SECONDS,
    "vectors_poll_interval_seconds": 0.1,
    "vectors_refresh_delay_seconds": 0.0,
}

# A server that was killed is found again as soon as it listens.
_RECONNECT_AT_ONCE: Final = (
    ("grpc.initial_reconnect_backoff_ms", 20),
    ("grpc.min_reconnect_backoff_ms", 20),
    ("grpc.max_reconnect_backoff_ms", 100),
)


def meanings(dimension: int = DIMENSION) -> dict[str, list[float]]:
    """Each memory and the question about it point the same way, and at right angles to all others."""
    pairs = ((TEA, ABOUT_TEA), (RAIN, ABOUT_RAIN), (MONEY, ABOUT_MONEY), (SLEEP, ABOUT_SLEEP))
    return {
        text: [float(place == other) for other in range(dimension)] for place, pair in enumerate(pairs) for text in pair
    }


def understands(dimension: int = DIMENSION) -> Behaviour:
    """What a good provider says."""
    return knows(meanings(dimension))


class Replica:
    """A server, and a client of it."""

    def __init__(self, server: ServerProcess) -> None:
        self.server = server
        self.client = MemoryClient(
            server.address, tenant="acme", principal="user-1", channel_options=_RECONNECT_AT_ONCE
        )

    def at(self, scope: str) -> MemoryNamespace:
        return self.client.namespace(scope=scope)

    def wait_ready(self) -> None:
        """Return when it knows which vectors it makes: sessions are bound to them from then on."""
        wait_until(self._knows_a_generation, what="a semantic generation")

    def _knows_a_generation(self) -> bool:
        try:
            return bool(self.client.server_info().semantic_generations)
        except MemoryUnavailableError:
            return False  # its connection is of the time before a restart


class Deployment:
    """Servers over one store and one index, with one provider. All end with the block; none may have died by itself."""

    def __init__(self, store: str, provider: ProviderThread, folder: Path, redis: RedisProcess | None = None) -> None:
        self.store = store
        self.provider = provider
        self._folder = folder
        self._redis = redis
        self._stack = ExitStack()
        self.replicas: list[Replica] = []

    @property
    def redis(self) -> RedisProcess:
        assert self._redis is not None
        return self._redis

    def start(self, **settings: object) -> Replica:
        """Another server that knows its generation; settings by their name in lower case, as `embedding_attempts=1`."""
        replica = self.launch(**settings)
        replica.wait_ready()
        return replica

    def launch(self, **settings: object) -> Replica:
        """Another server, whether or not its provider answers."""
        index = {} if self._redis is None else {"vectors_redis_url": self._redis.url}
        stated = {**_SETTINGS, "embedding_base_url": self.provider.provider.base_url, **index, **settings}
        server = ServerProcess(
            self.store,
            self._folder / f"server-{len(self.replicas)}.log",
            env={f"DURABLE_MEMORY_SERVER_{name.upper()}": str(value) for name, value in stated.items()},
        )
        replica = Replica(self._stack.enter_context(server))
        self._stack.callback(replica.client.close)
        self.replicas.append(replica)
        return replica

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        died = [replica.server for replica in self.replicas if replica.server.ended_by_itself]
        self._stack.close()
        assert not died, "\n".join(server.log_text() for server in died)


def assistant(memory: MemoryNamespace, session_id: str = "assistant") -> MemorySession:
    """An open session whose semantic branch finds what is meant, and nothing unrelated."""
    return memory.open_session(session_id, max_results=20, semantic=SemanticPolicy(min_similarity=0.9))


def by_hand(memory: MemoryNamespace) -> MemorySession:
    """The same, in a namespace whose index moves only when it is told to."""
    session = assistant(memory)
    memory.set_schedule()
    return session


def remember(memory: MemoryNamespace, *contents: str) -> None:
    """Memories whose id is the first word of their text, in lower case."""
    for content in contents:
        memory.remember(content, node_id=content.split()[0].lower())


def refresh(memory: MemoryNamespace, *, timeout: float | None = None) -> RefreshReceipt:
    return memory.refresh_semantic_recall("assistant", timeout=timeout).wait()


def refresh_when_free(memory: MemoryNamespace) -> RefreshReceipt:
    """A refresh that begins as soon as nobody else holds the lease."""
    receipts: list[RefreshReceipt] = []

    def refreshed() -> bool:
        try:
            receipts.append(refresh(memory))
        except LeaseHeldError:
            return False
        return True

    wait_until(refreshed, what="nobody holds the lease any more")
    return receipts[0]


def covered(memory: MemoryNamespace) -> bool:
    """Whether the index has all that is there now, and the receipt that says so is written."""
    status = memory.get_index_status()
    return (
        status.state is IndexState.CURRENT
        and status.unindexed_active_count == 0
        and status.last_receipt is not None
        and status.last_receipt.source == status.change_token
    )


def ids(recall: Recall) -> Sequence[str]:
    return [hit.node_id for hit in recall]


def without(recall: Recall) -> DegradationReason | None:
    """Why the recall went without vectors; None if it did not."""
    return None if recall.degradation is None else recall.degradation.reason


def understood(session: MemorySession, question: str = ABOUT_TEA, found: str = "kettles") -> bool:
    """Whether the whole of hybrid recall works: what is meant is found, with nothing left out."""
    recall = session.recall(question)
    return (ids(recall), recall.mode_used, without(recall)) == ([found], RecallMode.HYBRID, None)
