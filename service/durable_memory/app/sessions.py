"""Sessions and runs: who recalls from where, under which policy, and in which invocation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, TypeVar

import structlog

from durable_memory.app.call import Call, Mutation
from durable_memory.app.semantic.current import CurrentGeneration, generation_not_served
from durable_memory.app.stored_results import parse_run, parse_session, run_json, session_json
from durable_memory.domain.canonical import JsonObject, JsonValue, digest_json
from durable_memory.domain.errors import DomainError, Reason, limit_exceeded
from durable_memory.domain.lexical.profiles import DEFAULT_LEXICAL_PROFILE
from durable_memory.domain.limits import RUN_IDLE_MAX, SESSION_MAX_BINDINGS
from durable_memory.domain.session import (
    DEFAULT_CANDIDATE_LIMIT,
    DEFAULT_FUSION_PROFILE,
    DEFAULT_MAX_RESULTS,
    DEFAULT_MIN_SIMILARITY,
    BindingRecord,
    Context,
    RecallMode,
    RecallPolicy,
    Run,
    RunState,
    SemanticGeneration,
    Session,
    SessionBinding,
    SessionState,
    check_digest,
    check_no_drift,
    run_not_found,
    session_not_found,
)
from durable_memory.ports.runtime import Clock, Ids
from durable_memory.ports.store import Decision, Loaded, Lock, Plan, Reads, Store

_T = TypeVar("_T")

_log = structlog.stdlib.get_logger(__name__)

_INSTANT: Final = timedelta(microseconds=1)
"""The least difference between two times that a store keeps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRequest:
    """A recall policy as a caller asks for it: `None` means the server's default, settled when a session opens."""

    mode: RecallMode | None = None
    max_results: int | None = None
    min_score: float | None = None
    min_relative_score: float | None = None
    related_lookups: int | None = None
    lexical_profile: str | None = None
    fusion_profile: str | None = None
    authority_digest: str | None = None
    candidate_limit: int | None = None
    min_similarity: float | None = None

    def canonical(self) -> dict[str, JsonValue]:
        """What was asked for, and nothing else."""
        asked: dict[str, JsonValue] = {
            "mode": None if self.mode is None else self.mode.name,
            "max_results": self.max_results,
            "min_score": self.min_score,
            "min_relative_score": self.min_relative_score,
            "related_lookups": self.related_lookups,
            "lexical_profile": self.lexical_profile,
            "fusion_profile": self.fusion_profile,
            "authority_digest": self.authority_digest,
            "candidate_limit": self.candidate_limit,
            "min_similarity": self.min_similarity,
        }
        return {name: value for name, value in asked.items() if value is not None}

    def digest(self) -> str:
        return digest_json("session-request/v1", self.canonical())


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyDefaults:
    """What the server fills in."""

    lexical_profile: str = DEFAULT_LEXICAL_PROFILE
    mode: RecallMode = RecallMode.AUTO
    max_results: int = DEFAULT_MAX_RESULTS
    min_score: float = 0.0
    min_relative_score: float = 0.0
    related_lookups: int = 0
    fusion_profile: str = DEFAULT_FUSION_PROFILE
    current: CurrentGeneration = field(default_factory=CurrentGeneration)

    def settle(self, request: PolicyRequest) -> RecallPolicy:
        """An exact policy, with nothing left open.

        Raises: INVALID_FIELD for bounds and unknown profiles, SEMANTIC_UNAVAILABLE for what needs a generation.
        """
        mode = _chosen(request.mode, self.mode)
        return RecallPolicy(
            mode=mode,
            max_results=_chosen(request.max_results, self.max_results),
            min_score=_chosen(request.min_score, self.min_score),
            min_relative_score=_chosen(request.min_relative_score, self.min_relative_score),
            related_lookups=_chosen(request.related_lookups, self.related_lookups),
            lexical_profile=_chosen(request.lexical_profile, self.lexical_profile),
            fusion_profile=_chosen(request.fusion_profile, self.fusion_profile),
            semantic=self._generation(request, mode),
        )

    def _generation(self, request: PolicyRequest, mode: RecallMode) -> SemanticGeneration | None:
        """The generation to bind: the server's, unless the mode has no use for one.

        Raises: SEMANTIC_UNAVAILABLE if one is asked for, by digest or mode, that this server does not make.
        """
        generation = self.current.known
        asked = request.authority_digest
        if asked is None and mode is RecallMode.LEXICAL:
            return None
        if generation is None:
            if asked is not None or mode is not RecallMode.AUTO:
                self.current.required()  # says why there is none
            return None
        if asked not in (None, generation.authority_digest):
            raise generation_not_served()
        return SemanticGeneration(
            authority_digest=generation.authority_digest,
            provider=generation.provider,
            model=generation.model,
            model_revision=generation.revision,
            dimension=generation.dimension,
            normalization=generation.normalization.value,
            metric=generation.metric.value,
            candidate_limit=_chosen(request.candidate_limit, DEFAULT_CANDIDATE_LIMIT),
            min_similarity=_chosen(request.min_similarity, DEFAULT_MIN_SIMILARITY),
        )


class BeginOutcome(StrEnum):
    """TAKEN_OVER: another host instance's open incarnation of this run id was ended by this call."""

    BEGUN = "BEGUN"
    TAKEN_OVER = "TAKEN_OVER"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedSession:
    """`existing` is true if an equal request had opened it before."""

    session: Session
    existing: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReboundSession:
    session: Session
    previous_digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BegunRun:
    run: Run
    outcome: BeginOutcome


class SessionService:
    """Open, resume, rebind, close; begin and end runs. Works on any replica, after any number of restarts."""

    def __init__(self, store: Store, clock: Clock, ids: Ids, defaults: PolicyDefaults) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._defaults = defaults

    async def open(self, call: Mutation, session_id: str | None, request: PolicyRequest) -> OpenedSession:
        """Open a session, or get the one that an equal request opened.

        In mode AUTO it is bound to no generation where nobody has ever heard of the provider what it makes, and stays
        so: its recalls say it, and the log does when it is opened first.

        Raises: BINDING_DRIFT (fields) if the id is bound otherwise, SESSION_CLOSED if it is closed.
        """
        binding = SessionBinding(namespace=call.namespace, policy=self._defaults.settle(request))
        now = self._clock.now()
        opened = Session(
            session_id=session_id or self._ids.time_ordered(),
            binding=binding,
            binding_version=1,
            request_digest=request.digest(),
            state=SessionState.OPEN,
            opened_by=call.caller.name,
            opened_at=now,
        )

        def decide(loaded: Loaded) -> Decision:
            stored = loaded.sessions.get(opened.session_id)
            if stored is None:
                return Decision(
                    result={"session": session_json(opened), "existing": False},
                    sessions=(opened,),
                    bindings=(_binding_record(opened, now, call.caller.name),),
                )
            stored.require_open()
            if stored.request_digest != opened.request_digest:
                check_no_drift(stored.binding, binding)
            return Decision(result={"session": session_json(stored), "existing": True})

        result = await self._transact(call, Reads(session_ids=frozenset({opened.session_id})), decide)
        session = parse_session(result["session"])
        policy = session.binding.policy
        existing = result["existing"] is True
        unbound = policy.mode is RecallMode.AUTO and policy.semantic is None
        if unbound and not existing and self._defaults.current.has_provider:
            _log.warning("session_without_generation", known=self._knows_generation)
        return OpenedSession(session=session, existing=existing)

    @property
    def _knows_generation(self) -> bool:
        return self._defaults.current.known is not None

    async def resume(self, call: Call, session_id: str, expected: SessionBinding | str) -> Session:
        """The session, if it is open and bound to exactly `expected`: a whole binding, or a binding's digest.

        Raises: SESSION_NOT_FOUND, SESSION_CLOSED, BINDING_DRIFT (fields).
        """
        session = await self.get(call, session_id)
        session.require_open()
        if isinstance(expected, str):
            check_digest(session.binding, expected)
        else:
            check_no_drift(session.binding, expected)
        return session

    async def rebind(
        self, call: Mutation, session_id: str, expected_digest: str, request: PolicyRequest
    ) -> ReboundSession:
        """Give an open session another binding: the one way in which it ever changes, kept in its audit trail.

        Raises: SESSION_NOT_FOUND, SESSION_CLOSED, BINDING_DRIFT if it is not bound to `expected_digest`, LIMIT_EXCEEDED
        if it has had as many bindings as a session may have.
        """
        binding = SessionBinding(namespace=call.namespace, policy=self._defaults.settle(request))
        now = self._clock.now()

        def decide(loaded: Loaded) -> Decision:
            stored = _open_session(loaded, session_id)
            check_digest(stored.binding, expected_digest)
            if stored.binding_version >= SESSION_MAX_BINDINGS:
                raise limit_exceeded("session_id", SESSION_MAX_BINDINGS, stored.binding_version + 1, "bindings")
            rebound = replace(
                stored,
                binding=binding,
                binding_version=stored.binding_version + 1,
                request_digest=request.digest(),
                rebound_at=now,
            )
            return Decision(
                result={"session": session_json(rebound), "previous_digest": expected_digest},
                sessions=(rebound,),
                bindings=(_binding_record(rebound, now, call.caller.name),),
            )

        result = await self._transact(call, Reads(session_ids=frozenset({session_id})), decide)
        return ReboundSession(session=parse_session(result["session"]), previous_digest=str(result["previous_digest"]))

    async def get(self, call: Call, session_id: str) -> Session:
        """Raises: SESSION_NOT_FOUND."""
        session = await self._store.get_session(call.namespace, session_id)
        if session is None:
            raise session_not_found(session_id)
        return session

    async def list(self, call: Call, *, after_session_id: str, limit: int) -> Sequence[Session]:
        """In byte order of their ids, open and closed ones."""
        return await self._store.list_sessions(call.namespace, after_session_id=after_session_id, limit=limit)

    async def close(self, call: Mutation, session_id: str) -> Session:
        """Refuse every later recall, admission and use of the session. Closing a closed one changes nothing.

        Raises: SESSION_NOT_FOUND.
        """
        now = self._clock.now()

        def decide(loaded: Loaded) -> Decision:
            stored = loaded.sessions.get(session_id)
            if stored is None:
                raise session_not_found(session_id)
            if stored.state is SessionState.CLOSED:
                return Decision(result={"session": session_json(stored)})
            closed = replace(stored, state=SessionState.CLOSED, closed_at=now)
            return Decision(result={"session": session_json(closed)}, sessions=(closed,))

        result = await self._transact(call, Reads(session_ids=frozenset({session_id})), decide)
        return parse_session(result["session"])

    async def begin_run(self, call: Mutation, session_id: str, run_id: str | None, host_instance: str) -> BegunRun:
        """A new incarnation of a run, with its first context id.

        Raises: SESSION_NOT_FOUND, SESSION_CLOSED; RUN_IDENTITY_CONFLICT (incarnation, opened_at) if the same host
        instance has this run id open.
        """
        now = self._clock.now()
        settled_id = run_id or self._ids.time_ordered()
        incarnation = self._ids.random_hex(16)
        first = Context.of(session_id, settled_id, incarnation, 0)

        def decide(loaded: Loaded) -> Decision:
            _open_session(loaded, session_id)
            opened_at = now
            outcome = BeginOutcome.BEGUN
            ended: tuple[Run, ...] = ()
            previous = loaded.latest_runs.get((session_id, settled_id))
            if previous is not None:
                # The newest incarnation is the one that was opened last, also where two hosts' clocks disagree.
                opened_at = max(now, previous.opened_at + _INSTANT)
                if previous.state is RunState.OPEN and not idle(previous, now):
                    if previous.host_instance == host_instance:
                        raise _run_identity_conflict(previous)
                    outcome = BeginOutcome.TAKEN_OVER
                    ended = (replace(previous, state=RunState.TAKEN_OVER, ended_at=now),)
                elif previous.state is RunState.OPEN:
                    ended = (_ended(previous, now),)
            run = Run(
                session_id=session_id,
                run_id=settled_id,
                incarnation=incarnation,
                host_instance=host_instance,
                state=RunState.OPEN,
                sequence=0,
                context_id=first.context_id,
                begun_by=call.caller.name,
                opened_at=opened_at,
                active_at=opened_at,
            )
            return Decision(
                result={"run": run_json(run), "outcome": outcome.value}, runs=(*ended, run), contexts=(first,)
            )

        reads = Reads(session_ids=frozenset({session_id}), latest_runs=frozenset({(session_id, settled_id)}))
        result = await self._transact(call, reads, decide)
        return BegunRun(run=parse_run(result["run"]), outcome=BeginOutcome(str(result["outcome"])))

    async def end_run(self, call: Mutation, session_id: str, run_id: str, incarnation: str) -> Run:
        """End one incarnation. Ending an ended one changes nothing.

        Raises: SESSION_NOT_FOUND; RUN_NOT_FOUND if the session never had this incarnation.
        """
        now = self._clock.now()
        first = Context.of(session_id, run_id, incarnation, 0).context_id

        def decide(loaded: Loaded) -> Decision:
            if session_id not in loaded.sessions:
                raise session_not_found(session_id)
            run = loaded.runs.get((session_id, run_id, incarnation))
            if run is None:
                raise run_not_found(session_id=session_id, run_id=run_id, incarnation=incarnation)
            if run.state is not RunState.OPEN:
                return Decision(result={"run": run_json(run)})
            ended = _ended(run, now)
            return Decision(result={"run": run_json(ended)}, runs=(ended,))

        reads = Reads(session_ids=frozenset({session_id}), contexts=frozenset({first}))
        result = await self._transact(call, reads, decide)
        return parse_run(result["run"])

    async def _transact(self, call: Mutation, reads: Reads, decide: Callable[[Loaded], Decision]) -> JsonObject:
        plan = Plan(lock=Lock.NAMESPACE, reads=reads, decide=decide, request=call.request)
        return (await self._store.transact(call.namespace, plan)).result


def idle(run: Run, now: datetime) -> bool:
    """Whether nobody has used an open run for so long that it counts as ended."""
    return now - run.active_at > RUN_IDLE_MAX


def _chosen(asked: _T | None, default: _T) -> _T:
    return default if asked is None else asked


def _open_session(loaded: Loaded, session_id: str) -> Session:
    session = loaded.sessions.get(session_id)
    if session is None:
        raise session_not_found(session_id)
    session.require_open()
    return session


def _ended(run: Run, now: datetime) -> Run:
    """An open run, ended: by this call, or by the time that nobody used it."""
    if idle(run, now):
        return replace(run, state=RunState.IDLE_ENDED, ended_at=run.active_at + RUN_IDLE_MAX)
    return replace(run, state=RunState.ENDED, ended_at=now)


def _binding_record(session: Session, now: datetime, caller: str) -> BindingRecord:
    return BindingRecord(
        session_id=session.session_id,
        binding_version=session.binding_version,
        binding=session.binding,
        bound_at=now,
        bound_by=caller,
    )


def _run_identity_conflict(run: Run) -> DomainError:
    return DomainError(
        Reason.RUN_IDENTITY_CONFLICT,
        f"run {run.run_id} is open since {run.opened_at.isoformat()} in this host instance",
        run_id=run.run_id,
        incarnation=run.incarnation,
        opened_at=run.opened_at.isoformat(),
    )
