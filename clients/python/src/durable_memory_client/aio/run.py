"""A run: one invocation of an agent, to which admissions and uses belong."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sized
from types import TracebackType
from typing import TYPE_CHECKING, Self

from durable_memory_client.aio.calls import Calls, OnUnavailable, patient
from durable_memory_client.aio.transport import Gate
from durable_memory_client.call_policy import Limit
from durable_memory_client.errors import IncompleteStreamError, MemoryServiceError, MemoryUnavailableError
from durable_memory_client.identity import host_instance, new_request_id
from durable_memory_client.values.access import Admission, AdmissionOutcome, UseOutcome
from durable_memory_client.values.citation import Citable, citation_of, revision_ref
from durable_memory_client.values.enums import BeginRunOutcome, RecallMode
from durable_memory_client.values.evidence import Evidence
from durable_memory_client.values.namespace import ChangeToken, Namespace
from durable_memory_client.values.recall import Hit, Recall, RecallFilter, filter_to_proto
from durable_memory_client.values.session import Run
from durable_memory_client.values.wire import optional_number, stated
from durablememory.v1 import access_pb2, recall_service_pb2, session_service_pb2

if TYPE_CHECKING:
    from durable_memory_client.aio.session import MemorySession

_log = logging.getLogger("durable_memory_client")


class MemoryRun:
    """Recall, admit, record use. The run keeps track of context ids: each admission is one assembly of an input."""

    def __init__(self, calls: Calls, session: MemorySession, run_id: str | None, request_id: str | None) -> None:
        self._calls = calls
        self._session = session
        # Minted here and not by the service, so that evidence of this turn can name it even in an outage.
        self._run_id = run_id or new_request_id()
        self._begin_request_id = request_id or new_request_id()
        self._gate = Gate()  # of beginning, and of one assembly after the other
        self._info: Run | None = None
        self._context_id = ""
        self._admitted_in: dict[tuple[str, int], str] = {}
        self.outcome: BeginRunOutcome | None = None
        """Whether an incarnation of another process was ended for it; None until it has begun."""

    @property
    def info(self) -> Run:
        """The run as it began. Raises: RuntimeError while an outage has kept it from beginning."""
        if self._info is None:
            raise RuntimeError("the run has not begun; use `async with session.run(...)`, or reach the service first")
        return self._info

    @property
    def run_id(self) -> str:
        return self._run_id

    @property
    def session(self) -> MemorySession:
        return self._session

    @property
    def namespace(self) -> Namespace:
        return self._session.namespace

    @property
    def context_id(self) -> str:
        """The context id that the next admission is recorded under. It changes with every admission."""
        return self._context_id or self.info.context_id

    async def __aenter__(self) -> Self:
        async def beginning(limit: Limit) -> None:
            await self._begun(limit)

        await self._calls.guarded(self._session.on_unavailable, None, beginning)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._info is None or self._info.ended_at is not None:
            return
        try:
            await self._end(patient())
        except Exception as unended:  # noqa: BLE001 - nothing may take the place of the result of the work
            # The work of the block is done, or failed for its own reason; an idle run ends by itself.
            _log.warning("run %s was not ended: %s", self._info.run_id, unended)

    async def begin(self, *, timeout: float | None = None) -> Run:
        """Begin the run unless it has begun. `async with` does it.

        Raises: RunIdentityConflictError, if this process has a run with this id open already.
        """
        return await self._begun(Limit.usual(timeout))

    async def _begun(self, limit: Limit) -> Run:
        if self._info is not None:
            return self._info  # without waiting for somebody else's assembly
        async with self._gate.entered(limit):
            if self._info is None:
                session = await self._session.ensure_open(limit)
                response = await self._calls.unary(
                    stated(
                        session_service_pb2.BeginRunRequest,
                        namespace=session.binding.namespace.to_proto(),
                        request_id=self._begin_request_id,
                        session_id=session.session_id,
                        run_id=self._run_id,
                        host_instance=host_instance(),
                    ),
                    session_service_pb2.BeginRunResponse,
                    limit=limit,
                )
                self.outcome = BeginRunOutcome.from_number(response.outcome)
                self._context_id = response.run.context_id
                self._info = Run.from_proto(response.run)
            return self._info

    async def end(self, *, timeout: float | None = None) -> Run:
        """End the run: this incarnation of it, never one that another process began. `async with` does it."""
        return await self._end(Limit.usual(timeout))

    async def _end(self, limit: Limit) -> Run:
        run = self.info
        response = await self._calls.unary(
            stated(
                session_service_pb2.EndRunRequest,
                namespace=self.namespace.to_proto(),
                session_id=run.session_id,
                run_id=run.run_id,
                incarnation=run.incarnation,
            ),
            session_service_pb2.EndRunResponse,
            limit=limit,
        )
        self._info = Run.from_proto(response.run)
        return self._info

    async def recall(
        self,
        query: str,
        *,
        filter: RecallFilter | None = None,
        mode: RecallMode | None = None,
        include_surroundings: bool = False,
        admit: bool = False,
        on_unavailable: OnUnavailable | None = None,
        request_id: str | None = None,
        timeout: float | None = None,
    ) -> Recall:
        """The ACTIVE memories that fit a query, best first.

        With `admit`, what is found is recorded as entering the model's input, in the same call, and only what was
        admitted is among the hits. Without, `admit()` what you use before the model sees it.

        With `on_unavailable="empty"` (here, on the session or on the client) an unreachable service gives an empty
        recall whose `unavailable` is True.

        Raises: SessionClosedError, RunEndedError, SemanticUnavailableError, NamespaceTooLargeError.
        """

        def request(run: Run) -> recall_service_pb2.ActiveRecallRequest:
            return stated(
                recall_service_pb2.ActiveRecallRequest,
                namespace=self.namespace.to_proto(),
                request_id=request_id if admit else None,
                session_id=run.session_id,
                query=query,
                filter=filter_to_proto(filter),
                mode=optional_number(RecallMode, mode, "mode"),
                include_surroundings=include_surroundings,
                admit=admit,
                context_id=self.context_id,
            )

        async def recalling(limit: Limit) -> Recall:
            run = await self._begun(limit)
            response = await self._calls.unary(request(run), recall_service_pb2.ActiveRecallResponse, limit=limit)
            return Recall.from_proto(self.namespace, response)

        async def recalling_admitted(limit: Limit) -> Recall:
            run = await self._begun(limit)
            # One assembly after the other: each has the context id that the one before it returned.
            async with self._gate.entered(limit):
                context_id = self.context_id
                response = await self._calls.unary(request(run), recall_service_pb2.ActiveRecallResponse, limit=limit)
                admissions = self._admissions(response.admissions, context_id, response.next_context_id)
            return Recall.from_proto(self.namespace, response, admissions=admissions, context_id=context_id)

        found = await self._calls.guarded(
            on_unavailable or self._session.on_unavailable, timeout, recalling_admitted if admit else recalling
        )
        return Recall(namespace=self.namespace, error=found) if isinstance(found, MemoryUnavailableError) else found

    async def admit(
        self,
        hits: Iterable[Hit],
        *,
        on_unavailable: OnUnavailable | None = None,
        request_id: str | None = None,
        timeout: float | None = None,
    ) -> Admission:
        """Record that these hits enter the model's input; `hits` of the answer are those that may.

        Only what is still the current ACTIVE revision is admitted. What is refused must leave the input.

        Raises: SessionClosedError, RunEndedError, IncompleteStreamError (the answer is not about each hit).
        """
        wanted = tuple(hits)
        if not wanted:
            return Admission()

        async def admitting(limit: Limit) -> Admission:
            run = await self._begun(limit)
            async with self._gate.entered(limit):
                context_id = self.context_id
                response = await self._calls.unary(
                    stated(
                        recall_service_pb2.AdmitMemoriesRequest,
                        namespace=self.namespace.to_proto(),
                        request_id=request_id,
                        session_id=run.session_id,
                        context_id=context_id,
                        items=[recall_service_pb2.AdmissionItem(node_revision=revision_ref(hit)) for hit in wanted],
                    ),
                    recall_service_pb2.AdmitMemoriesResponse,
                    limit=limit,
                )
                _check_complete(response.outcomes, wanted, "hits")
                outcomes = self._admissions(response.outcomes, context_id, response.next_context_id)
            return Admission(
                hits=tuple(hit for hit, outcome in zip(wanted, outcomes, strict=True) if outcome.admitted),
                outcomes=outcomes,
                context_id=context_id,
                change_token=ChangeToken.from_proto(response.change_token),
            )

        admission = await self._calls.guarded(on_unavailable or self._session.on_unavailable, timeout, admitting)
        return Admission(error=admission) if isinstance(admission, MemoryUnavailableError) else admission

    async def record_use(
        self,
        used: Iterable[Citable],
        *,
        request_id: str | None = None,
        timeout: float | None = None,
    ) -> list[UseOutcome]:
        """Record that the answer cited these memories, or that the agent acted on them; one outcome each, in order.

        Each use is recorded under the assembly that the memory was admitted to in this run, so a repetition counts
        once. Memories of several assemblies take one call each. Nothing used: no call.

        Raises: SessionClosedError, IncompleteStreamError (the answer is not about each use).
        """
        by_context: dict[str, list[tuple[int, Citable]]] = {}
        for place, cited in enumerate(used):
            citation = citation_of(cited)
            context_id = self._admitted_in.get((citation.node_id, citation.node_revision), "")
            by_context.setdefault(context_id, []).append((place, cited))
        if not by_context:
            return []
        if request_id is not None and len(by_context) > 1:
            raise ValueError("memories of several assemblies take several calls, which cannot share one request id")
        limit = Limit.usual(timeout)
        run = await self._begun(limit)
        outcomes: dict[int, UseOutcome] = {}
        for context_id, items in by_context.items():
            request = stated(
                recall_service_pb2.RecordUseRequest,
                namespace=self.namespace.to_proto(),
                request_id=request_id,
                session_id=run.session_id,
                context_id=context_id or self.context_id,
                items=[access_pb2.UseEvent(citation=citation_of(cited).to_proto()) for _, cited in items],
            )
            try:
                response = await self._calls.unary(request, recall_service_pb2.RecordUseResponse, limit=limit)
            except MemoryServiceError as error:
                if outcomes:
                    error.definite = False  # of the whole, a part is recorded
                raise
            _check_complete(response.outcomes, items, "uses")
            for (place, _), outcome in zip(items, response.outcomes, strict=True):
                outcomes[place] = UseOutcome.from_proto(outcome)
        return [outcomes[place] for place in sorted(outcomes)]

    def evidence(self, body: str | bytes) -> Evidence:
        """Evidence for what was said in this turn, to propose memories with."""
        return Evidence.session_turn(self._session.session_id, self.run_id, body)

    def _admissions(
        self, messages: Iterable[access_pb2.AdmissionOutcome], context_id: str, next_context_id: str
    ) -> tuple[AdmissionOutcome, ...]:
        outcomes = tuple(map(AdmissionOutcome.from_proto, messages))
        for outcome in outcomes:
            if outcome.admitted:
                revision = outcome.node_revision
                self._admitted_in[revision.node_id, revision.revision] = context_id
        self._context_id = next_context_id
        return outcomes


def _check_complete(outcomes: Sized, asked: Sized, what: str) -> None:
    if len(outcomes) != len(asked):
        raise IncompleteStreamError(f"{len(outcomes)} outcomes of {len(asked)} {what}")
