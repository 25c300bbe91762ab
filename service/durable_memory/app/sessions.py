"""Sessions and runs: who recalls from where, under which policy, and in which invocation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import TypeVar

from durable_memory.app.call import Call, Mutation
from durable_memory.domain.canonical import JsonObject, JsonValue, digest_json
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.limits import RUN_IDLE_MAX
from durable_memory.domain.session import (
    DEFAULT_FUSION_PROFILE,
    DEFAULT_MAX_RESULTS,
    BindingRecord,
    Context,
    RecallMode,
    RecallPolicy,
    Run,
    RunState,
    Session,
    SessionBinding,
    SessionState,
    check_digest,
    check_no_drift,
    run_not_found,
    semantic_not_configured,
    session_not_found,
)
from durable_memory.ports.runtime import Clock, Ids
from durable_memory.ports.store import Decision, Loaded, Lock, Plan, Reads, Store

_T = TypeVar("_T")


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
    """What the server fills in, and the profiles that it has."""

    lexical_profile: str
    lexical_profiles: frozenset[str]
    mode: RecallMode = RecallMode.AUTO
    max_results: int = DEFAULT_MAX_RESULTS
    min_score: float = 0.0
    min_relative_score: float = 0.0
    related_lookups: int = 0
    fusion_profile: str = DEFAULT_FUSION_PROFILE

    def settle(self, request: PolicyRequest) -> RecallPolicy:
        """An exact policy, with nothing left open.

        Raises: INVALID_FIELD for bounds and unknown profiles, SEMANTIC_UNAVAILABLE for what needs a generation.
        """
        if request.authority_digest is not None or request.mode in (RecallMode.SEMANTIC, RecallMode.HYBRID):
            raise semantic_not_configured()
        policy = RecallPolicy(
            mode=_chosen(request.mode, self.mode),
            max_results=_chosen(request.max_results, self.max_results),
            min_score=_chosen(request.min_score, self.min_score),
            min_relative_score=_chosen(request.min_relative_score, self.min_relative_score),
            related_lookups=_chosen(request.related_lookups, self.related_lookups),
            lexical_profile=_chosen(request.lexical_profile, self.lexical_profile),
            fusion_profile=_chosen(request.fusion_profile, self.fusion_profile),
        )
        if policy.lexical_profile not in self.lexical_profiles:
            raise DomainError(
                Reason.INVALID_FIELD,
                f"policy.lexical_profile is not a profile of this server: {', '.join(sorted(self.lexical_profiles))}",
                field="policy.lexical_profile",
            )
        return policy


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
                    result={"session_id": opened.session_id, "existing": False},
                    sessions=(opened,),
                    bindings=(_binding_record(opened, now, call.caller.name),),
                )
            stored.require_open()
            if stored.request_digest != opened.request_digest:
                check_no_drift(stored.binding, binding)
            return Decision(result={"session_id": opened.session_id, "existing": True})

        result = await self._transact(call, Reads(session_ids=frozenset({opened.session_id})), decide)
        session = await self.get(call, str(result["session_id"]))
        return OpenedSession(session=session, existing=result["existing"] is True)

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

        Raises: SESSION_NOT_FOUND, SESSION_CLOSED, BINDING_DRIFT if it is not bound to `expected_digest`.
        """
        binding = SessionBinding(namespace=call.namespace, policy=self._defaults.settle(request))
        now = self._clock.now()

        def decide(loaded: Loaded) -> Decision:
            stored = _open_session(loaded, session_id)
            check_digest(stored.binding, expected_digest)
            rebound = replace(
                stored,
                binding=binding,
                binding_version=stored.binding_version + 1,
                request_digest=request.digest(),
                rebound_at=now,
            )
            return Decision(
                result={"session_id": session_id, "previous_digest": expected_digest},
                sessions=(rebound,),
                bindings=(_binding_record(rebound, now, call.caller.name),),
            )

        result = await self._transact(call, Reads(session_ids=frozenset({session_id})), decide)
        return ReboundSession(session=await self.get(call, session_id), previous_digest=str(result["previous_digest"]))

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
            closed = () if stored.state is SessionState.CLOSED else (_closed(stored, now),)
            return Decision(result={"session_id": session_id}, sessions=closed)

        await self._transact(call, Reads(session_ids=frozenset({session_id})), decide)
        return await self.get(call, session_id)

    async def begin_run(self, call: Mutation, session_id: str, run_id: str | None, host_instance: str) -> BegunRun:
        """A new incarnation of a run, with its first context id.

        Raises: SESSION_NOT_FOUND, SESSION_CLOSED; RUN_IDENTITY_CONFLICT (incarnation, opened_at) if the same host
        instance has this run id open.
        """
        now = self._clock.now()
        settled_id = run_id or self._ids.time_ordered()
        incarnation = self._ids.random_hex(16)
        first = Context.of(session_id, settled_id, incarnation, 0)
        run = Run(
            session_id=session_id,
            run_id=settled_id,
            incarnation=incarnation,
            host_instance=host_instance,
            state=RunState.OPEN,
            sequence=0,
            context_id=first.context_id,
            begun_by=call.caller.name,
            opened_at=now,
            active_at=now,
        )

        def decide(loaded: Loaded) -> Decision:
            _open_session(loaded, session_id)
            outcome = BeginOutcome.BEGUN
            ended: tuple[Run, ...] = ()
            previous = loaded.latest_runs.get((session_id, settled_id))
            if previous is not None and previous.state is RunState.OPEN:
                if idle(previous, now):
                    ended = (replace(previous, state=RunState.IDLE_ENDED, ended_at=now),)
                elif previous.host_instance == host_instance:
                    raise _run_identity_conflict(previous)
                else:
                    ended = (replace(previous, state=RunState.TAKEN_OVER, ended_at=now),)
                    outcome = BeginOutcome.TAKEN_OVER
            return Decision(
                result={"context_id": first.context_id, "outcome": outcome.value},
                runs=(*ended, run),
                contexts=(first,),
            )

        reads = Reads(session_ids=frozenset({session_id}), latest_runs=frozenset({(session_id, settled_id)}))
        result = await self._transact(call, reads, decide)
        begun = await self._run_of(call, str(result["context_id"]))
        return BegunRun(run=begun, outcome=BeginOutcome(str(result["outcome"])))

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
            ended = () if run.state is not RunState.OPEN else (replace(run, state=RunState.ENDED, ended_at=now),)
            return Decision(result={"context_id": first}, runs=ended)

        reads = Reads(session_ids=frozenset({session_id}), contexts=frozenset({first}))
        await self._transact(call, reads, decide)
        return await self._run_of(call, first)

    async def _run_of(self, call: Call, context_id: str) -> Run:
        found = await self._store.get_context(call.namespace, context_id)
        if found is None:
            raise run_not_found()
        return found[1]

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


def _closed(session: Session, now: datetime) -> Session:
    return replace(session, state=SessionState.CLOSED, closed_at=now)


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
