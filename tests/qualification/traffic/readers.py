"""Callers that recall, and that admit and use what they found, in sessions that outlive connections and servers."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from durable_memory_client import (
    MemoryClient,
    MemoryRun,
    MemoryServiceError,
    MemorySession,
    MemoryUnavailableError,
    NodeRevision,
    Recall,
    RecallMode,
    Run,
    SessionBinding,
)
from tests.processes.polling import WaitTimeoutError, wait_until_async
from tests.qualification.recorder.history import Begun, BegunAgain, Recorded, Resumed
from tests.qualification.recorder.recorder import Question
from tests.qualification.traffic.callers import Caller
from tests.qualification.traffic.wording import SHARED_WORD

MOST_RESULTS = 5
_RECENT = 20
_SESSIONS = 12
_RUN_IDS = ("turn-1", "turn-2")
_LAST_TRIES = 10
_STATUS_SECONDS = 60.0
_CAUGHT_UP_SECONDS = 300.0
_LOOK_SECONDS = 0.2


class Recaller(Caller):
    """Asks about memories that were acknowledged at some time, in every mode, with and without a session."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._opened: dict[int, MemorySession] = {}

    async def step(self) -> None:
        known = self._recorder.questions
        if not known:
            await self._recorder.read(lambda: self.memory.get_change_token(timeout=self._timeout), caller=self.name)
            return
        question = self.rng.choice(known[-_RECENT:] if self.rng.random() < 0.5 else known)
        mode = self.rng.choice(list(RecallMode))
        if mode is RecallMode.LEXICAL and self.rng.random() < 0.5:
            # Words alone find it by its own word alone.
            question = replace(question, text=" ".join(question.text.split()[:2]))
        await (self._preview if self.rng.random() < 0.3 else self._active)(question, mode)

    async def _preview(self, question: Question, mode: RecallMode) -> None:
        memory = self.memory
        await self._ask(
            question,
            mode,
            "PreviewRecall",
            lambda: memory.preview(question.text, mode=mode, max_results=MOST_RESULTS, timeout=self._timeout),
        )

    async def _active(self, question: Question, mode: RecallMode) -> None:
        memory = self.memory
        session = self._opened.get(id(memory))
        if session is None:
            session_id = f"{self.name}-recall"
            session = await memory.open_session(session_id, max_results=MOST_RESULTS, timeout=self._timeout)
            self._opened[id(memory)] = session
        asked = session
        await self._ask(
            question,
            mode,
            "ActiveRecall",
            lambda: asked.recall(question.text, mode=mode, timeout=self._timeout),
            session_id=session.session_id,
        )

    async def _ask(
        self,
        question: Question,
        mode: RecallMode,
        method: str,
        recalling: Callable[[], Awaitable[Recall]],
        session_id: str = "",
    ) -> Recall | None:
        answer = await self._recorder.recall(
            recalling,
            question=question,
            method=method,
            mode=mode,
            max_results=MOST_RESULTS,
            session_id=session_id,
            caller=self.name,
        )
        if answer is None:
            await self._reach.again()
        return answer


class LastingRecaller(Recaller):
    """One that asks by meaning when nobody writes any more and everything has a vector: a slow machine may have been
    behind all the time before."""

    async def finish(self) -> None:
        """Wait until the index has everything, which it may never have; then ask about what was written last."""
        if not self._recorder.questions:
            return
        question = self._recorder.questions[-1]

        async def is_answered_by_all_vectors() -> bool:
            memory = self.memory
            try:
                status = await memory.get_index_status(timeout=_STATUS_SECONDS)
            except MemoryServiceError:
                return False
            if status.unindexed_active_count:
                return False
            answer = await self._ask(
                question,
                RecallMode.HYBRID,
                "PreviewRecall",
                lambda: memory.preview(question.text, mode=RecallMode.HYBRID, max_results=MOST_RESULTS),
            )
            return answer is not None and answer.semantic is not None and not answer.semantic.unindexed_active_count

        with suppress(WaitTimeoutError):
            await wait_until_async(is_answered_by_all_vectors, _CAUGHT_UP_SECONDS, interval=_LOOK_SECONDS)


class RunCaller(Caller):
    """Begins runs, and records what is admitted and used in them."""

    async def begin(self, session: MemorySession, run_id: str) -> MemoryRun | None:
        """A new invocation of a run; None if it was refused, or if nobody knows."""
        run = session.run(run_id)
        request_id = self.new_id()
        # In doubt it may be open, and only the one who began it can end it.
        begun = await self.do(
            "BeginRun", request_id, lambda _, options: run.begin(timeout=options["timeout"]), insist=True
        )
        if not isinstance(begun, Run):
            return None
        self._recorder.keep(
            Begun(
                at=time.monotonic(),
                request_id=request_id,
                session_id=begun.session_id,
                run_id=begun.run_id,
                incarnation=begun.incarnation,
                context_id=begun.context_id,
                outcome=str(run.outcome or ""),
            )
        )
        return run

    async def assemble(self, run: MemoryRun) -> bool:
        """Recall for a model, admit what was found, and use the best of it. Whether all of it is known."""
        # An assembly follows from the one before it, so nothing of it may stay in doubt.
        request_id = self.new_id()
        question = " ".join(filter(None, [self.canary, SHARED_WORD]))
        recall = await self.do(
            "ActiveRecall",
            request_id,
            lambda _, options: run.recall(question, admit=True, **options),
            insist=True,
        )
        if not isinstance(recall, Recall):
            return False
        if self.last is not None and self.last_attempts == 1:
            # A repetition returns what the first attempt found, and says where the namespace stands now.
            most = run.session.info.binding.max_results
            self._recorder.keep_admitted(recall, self.last, session_id=run.session.session_id, max_results=most)
        admitted = [outcome for outcome in recall.admissions if outcome.admitted]
        events = [(outcome.node_revision, outcome.event_id) for outcome in admitted]
        self._note("ActiveRecall", request_id, run, recall.context_id or "", events)
        if not recall.hits:
            return True
        best = recall.hits[0].citation
        request_id = self.new_id()
        uses = await self.do("RecordUse", request_id, lambda _, options: run.record_use([best], **options), insist=True)
        if not isinstance(uses, list):
            return False
        used = [(NodeRevision(best.node_id, best.node_revision), use.event_id) for use in uses if use.recorded]
        self._note("RecordUse", request_id, run, recall.context_id or "", used)
        return True

    async def end(self, run: MemoryRun) -> bool:
        """Whether it is known to have ended."""
        ended = await self.do("EndRun", self.new_id(), lambda _, options: run.end(timeout=options["timeout"]))
        return isinstance(ended, Run)

    def _note(
        self, method: str, request_id: str, run: MemoryRun, context_id: str, events: Iterable[tuple[NodeRevision, str]]
    ) -> None:
        for revision, event_id in events:
            self._recorder.keep(
                Recorded(
                    method=method,
                    request_id=request_id,
                    session_id=run.session.session_id,
                    run_id=run.run_id,
                    incarnation=run.info.incarnation,
                    context_id=context_id,
                    node_id=revision.node_id,
                    revision=revision.revision,
                    event_id=event_id,
                    used=method == "RecordUse",
                )
            )


class Admitter(RunCaller):
    """Recalls for a model in one long run, admits what it found and uses the best of it."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._run: MemoryRun | None = None
        self._runs = 0

    async def step(self) -> None:
        if self._run is None:
            session = await self.memory.open_session(self.name, max_results=3, timeout=self._timeout)
            self._runs += 1
            self._run = await self.begin(session, f"run-{self._runs}")
        elif not await self.assemble(self._run):
            self._run = None


@dataclass(slots=True)
class _NamedRun:
    """What a run id was begun as the last time. `is_open`: None while its end is in doubt."""

    run: MemoryRun
    known: float
    is_open: bool | None = True


class SessionResumer(RunCaller):
    """Opens sessions, and resumes them for ever after, each as exactly what it is bound to; tries wrong bindings too.

    In each resumed session it begins runs under names that it has used before, in this session and in others. Some it
    leaves open, and begins them again all the same.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._bindings: dict[str, SessionBinding] = {}
        self._runs: dict[tuple[str, str], _NamedRun] = {}

    async def step(self) -> None:
        known = sorted(self.sessions)
        if not known or (len(known) < _SESSIONS and self.rng.random() < 0.2):
            await self._open_one()
            return
        session_id, run_id = self.rng.choice(known), self.rng.choice(_RUN_IDS)
        if self.rng.random() < 0.35:
            await self._resume_drifted(session_id)
            return
        if self._runs and self.rng.random() < 0.5:
            session_id, run_id = self._oldest()
        expected = self._bindings.get(session_id) if self.rng.random() < 0.5 else None
        session = await self._resume(session_id, expected or self.sessions[session_id], drifted=False)
        if session is not None:
            await self._work(session, run_id, leave_open=self.rng.random() < 0.3)

    async def finish(self) -> None:
        """Try a binding that drifted, resume the session whose run was left alone for the longest time, and begin that
        again: nothing that was begun before a restart is then left to be begun after it by chance."""
        for _ in range(_LAST_TRIES):
            if not self._bindings:
                await self._open_one()
                continue
            session_id, run_id = self._oldest() if self._runs else (min(self._bindings), _RUN_IDS[0])
            await self._resume_drifted(session_id)
            session = await self._resume(session_id, self.sessions[session_id], drifted=False)
            if session is None:
                continue
            await self._work(session, run_id)
            named = self._runs.get((session_id, run_id))
            if named is not None and named.is_open is False:
                await self._work(session, run_id)
                return

    def _oldest(self) -> tuple[str, str]:
        """Of the run ids that were begun, the one of which nothing was heard for the longest time."""
        return min(self._runs, key=lambda place: self._runs[place].known)

    async def _work(self, session: MemorySession, run_id: str, *, leave_open: bool = False) -> None:
        """Begin a run and end it. One that is open already is begun again, which is refused, and then ended."""
        place = session.session_id, run_id
        named = self._runs.get(place)
        if named is not None and named.is_open:
            await self._begin_again(session, named)
        elif named is None or named.is_open is False:
            run = await self.begin(session, run_id) if named is None else await self._begin_again(session, named)
            if run is None:
                return
            named = self._runs[place] = _NamedRun(run, time.monotonic())
            await self.assemble(run)
            if leave_open:
                return
        # One that it had left open and begun again in vain, one whose end is in doubt, or a new one.
        named.is_open = None
        if await self.end(named.run):
            named.is_open, named.known = False, time.monotonic()

    async def _begin_again(self, session: MemorySession, named: _NamedRun) -> MemoryRun | None:
        """The run that has the name now, and was noted as such; None if it was refused."""
        before, began = named.run.info, time.monotonic()
        run = await self.begin(session, before.run_id)
        self._recorder.keep(
            BegunAgain(
                began=began,
                ended=time.monotonic(),
                session_id=session.session_id,
                run_id=before.run_id,
                before=before.incarnation,
                known=named.known,
                is_open=bool(named.is_open),
                got="" if run is None else run.info.incarnation,
                outcome="" if run is None else str(run.outcome or ""),
                reason="" if run is not None or self.last is None else self.last.reason,
            )
        )
        return run

    async def _open_one(self) -> None:
        session_id = self.new_id()
        most = self.rng.randint(1, 9)
        session = await self._noted(
            session_id,
            "",
            lambda memory: memory.open_session(
                session_id, max_results=most, request_id=f"open {session_id}", timeout=self._timeout
            ),
        )
        if session is not None:
            self.sessions[session_id] = session.info.binding_digest
            self._bindings[session_id] = session.info.binding

    async def _resume_drifted(self, session_id: str) -> None:
        binding = self._bindings.get(session_id)
        others = sorted(set(self.sessions.values()) - {self.sessions[session_id]})
        if binding is not None and (not others or self.rng.random() < 0.5):
            await self._resume(session_id, replace(binding, max_results=binding.max_results + 1), drifted=True)
        elif others:
            await self._resume(session_id, self.rng.choice(others), drifted=True)

    async def _resume(self, session_id: str, expected: SessionBinding | str, *, drifted: bool) -> MemorySession | None:
        asked = expected if isinstance(expected, str) else self.sessions[session_id]
        return await self._noted(
            session_id,
            asked,
            lambda memory: memory.resume_session(session_id, expected, timeout=self._timeout),
            drifted=drifted,
        )

    async def _noted(
        self,
        session_id: str,
        asked: str,
        attempt: Callable[[MemoryClient], Awaitable[MemorySession]],
        *,
        drifted: bool = False,
    ) -> MemorySession | None:
        began = time.monotonic()
        session, reason = None, ""
        try:
            session = await attempt(self.memory)
        except MemoryServiceError as error:
            reason = str(error.reason or error.code.name)
            if isinstance(error, MemoryUnavailableError):
                await self._reach.again()
        self._recorder.keep(
            Resumed(
                began=began,
                ended=time.monotonic(),
                session_id=session_id,
                asked=asked,
                drifted=drifted,
                got="" if session is None else session.info.binding_digest,
                reason=reason,
                caller=self.name,
            )
        )
        return session
