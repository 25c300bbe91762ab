"""All use cases, built over one store: what the gRPC surface is given."""

from __future__ import annotations

from dataclasses import dataclass

from durable_memory.app.access import AccessService
from durable_memory.app.candidates import CandidateService
from durable_memory.app.change_sets import ChangeSetService
from durable_memory.app.memories import MemoryService
from durable_memory.app.ranking import Ranker
from durable_memory.app.recall import RecallService
from durable_memory.app.repository import RepositoryReader
from durable_memory.app.semantic.current import CurrentGeneration
from durable_memory.app.semantic.runtime import SemanticParts, SemanticRuntime
from durable_memory.app.semantic.service import SemanticService
from durable_memory.app.sessions import PolicyDefaults, SessionService
from durable_memory.app.transfer import TransferService
from durable_memory.app.views.cache import ViewCache
from durable_memory.app.views.revisions import RevisionCache
from durable_memory.domain.session import NO_PROVIDER
from durable_memory.ports.observing import UNOBSERVED, Observer, ProcessState, ViewState
from durable_memory.ports.runtime import Clock, Ids
from durable_memory.ports.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class AppServices:
    """The use cases, and what the process keeps in memory for them."""

    change_sets: ChangeSetService
    memories: MemoryService
    candidates: CandidateService
    sessions: SessionService
    recall: RecallService
    access: AccessService
    repository: RepositoryReader
    transfer: TransferService
    defaults: PolicyDefaults
    views: ViewCache
    revisions: RevisionCache
    clock: Clock
    ids: Ids
    semantic: SemanticService | None = None
    """None where the server makes no vectors: recall is lexical then."""

    runtime: SemanticRuntime | None = None

    def state(self) -> ProcessState:
        """How the process stands, for whoever measures it."""
        views = self.views.statistics()
        return ProcessState(
            views=ViewState(
                views=views.views,
                bytes=views.bytes,
                hits=views.hits,
                loads=views.loads,
                deltas=views.deltas,
                evictions=views.evictions,
            ),
            semantic=None if self.runtime is None else self.runtime.state(),
        )

    async def start(self) -> None:
        """Begin what the use cases do on their own; the store is open."""
        if self.runtime is not None:
            await self.runtime.start()

    async def close(self) -> None:
        """Stop it again; the store is the caller's to close."""
        if self.runtime is not None:
            await self.runtime.close()
        await self.views.close()


def build_services(
    store: Store,
    clock: Clock,
    ids: Ids,
    *,
    view_budget_bytes: int,
    view_max_bytes: int,
    revision_cache_bytes: int,
    semantic_parts: SemanticParts | None = None,
    no_vectors: str = NO_PROVIDER,
    observer: Observer = UNOBSERVED,
) -> AppServices:
    """Wire the use cases. Bounds are bytes of memory: for all views, for one view, for texts of hits.

    `no_vectors`: why there are no `semantic_parts`, in one phrase for whoever asks for what needs them.
    """
    current = CurrentGeneration(problem=no_vectors)
    defaults = PolicyDefaults(current=current)
    views = ViewCache(store, budget_bytes=view_budget_bytes, view_max_bytes=view_max_bytes)
    revisions = RevisionCache(store, budget_bytes=revision_cache_bytes)
    access = AccessService(store, clock)
    sessions = SessionService(store, clock, ids, defaults)
    runtime = None
    if semantic_parts is not None:
        runtime = SemanticRuntime(semantic_parts, store, revisions, clock, ids, current, observer)
    if semantic_parts is None or runtime is None:
        ranker = Ranker(current, None, observer)
    else:
        ranker = Ranker(current, runtime.search, observer, budget_seconds=semantic_parts.search_budget_seconds)
    return AppServices(
        change_sets=ChangeSetService(store, clock),
        memories=MemoryService(store, clock, ids),
        candidates=CandidateService(store, clock, ids),
        sessions=sessions,
        recall=RecallService(store, clock, views, revisions, access, defaults, ranker, observer),
        access=access,
        repository=RepositoryReader(store),
        transfer=TransferService(store, clock, ids),
        defaults=defaults,
        views=views,
        revisions=revisions,
        clock=clock,
        ids=ids,
        semantic=None if runtime is None else _semantic_service(runtime, store, sessions, clock, current),
        runtime=runtime,
    )


def _semantic_service(
    runtime: SemanticRuntime, store: Store, sessions: SessionService, clock: Clock, current: CurrentGeneration
) -> SemanticService:
    return SemanticService(
        store,
        runtime.records,
        runtime.index,
        runtime.holder,
        runtime.vectors,
        runtime.refresh,
        runtime.maintenance,
        sessions,
        clock,
        runtime.health,
        current=current,
    )
