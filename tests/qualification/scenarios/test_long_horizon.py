"""Half a year of hosts does what the row's checks look at, by whatever seed and however little time there is."""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

from durable_memory_client import (
    Activated,
    ActivationOutcome,
    ChangeSet,
    ChangeToken,
    Citation,
    Create,
    Namespace,
    NodeChange,
    NodeStatus,
    OperationKind,
    ProposalOutcome,
    Proposed,
    Reactivated,
    ReactivateMemoryOutcome,
    Rejected,
    RejectionOutcome,
    Remembered,
    RememberOutcome,
    Retired,
    Revised,
    SetStatus,
)
from tests.qualification.checks.horizon import never_happened
from tests.qualification.mutants.planted import ARCHIVED_BELOW
from tests.qualification.report.timeline import Timeline
from tests.qualification.scenarios import horizon_life, long_horizon
from tests.qualification.scenarios.horizon_life import Ground, Life
from tests.qualification.scenarios.table import BY_NUMBER, ROWS

NAMESPACE = Namespace("acme", "user-1", "default")
DIGEST = "0" * 64

T = TypeVar("T")


class Service:
    """What hosts see of the service: to a request id it answers the second time what it answered the first time."""

    def __init__(self) -> None:
        self.importances: list[float] = []
        """That revisions have brought."""
        self._revision = 0
        self._nodes: dict[str, tuple[int, NodeStatus]] = {}
        self._answers: dict[str, Any] = {}

    async def remember(self, draft: object, *, node_id: str = "", request_id: str = "", **_: object) -> Remembered:
        def answer() -> Remembered:
            cited = self._moved(node_id, NodeStatus.ACTIVE)
            return Remembered(outcome=RememberOutcome.CREATED, citation=cited, change_token=self._token())

        return await self._once(request_id or node_id, answer)

    async def propose(self, draft: object, *, node_id: str, request_id: str, **_: object) -> Proposed:
        def answer() -> Proposed:
            cited = self._moved(node_id, NodeStatus.CANDIDATE)
            return Proposed(outcome=ProposalOutcome.CREATED, citation=cited, change_token=self._token())

        return await self._once(request_id, answer)

    async def activate(self, cited: Citation, decision: object, *, request_id: str, **_: object) -> Activated:
        def answer() -> Activated:
            now = self._moved(cited.node_id, NodeStatus.ACTIVE)
            return Activated(outcome=ActivationOutcome.ACTIVATED, cited=now, error=None, change_token=self._token())

        return await self._once(request_id, answer)

    async def reject(self, cited: Citation, decision: object, *, request_id: str, **_: object) -> Rejected:
        def answer() -> Rejected:
            now = self._moved(cited.node_id, NodeStatus.TOMBSTONED)
            return Rejected(outcome=RejectionOutcome.REJECTED, cited=now, error=None, change_token=self._token())

        return await self._once(request_id, answer)

    async def revise(
        self, cited: Citation, *, request_id: str, importance: float | None = None, **_: object
    ) -> Revised:
        def answer() -> Revised:
            if importance is not None:
                self.importances.append(importance)
            return Revised(citation=self._moved(cited.node_id, NodeStatus.ACTIVE), change_token=self._token())

        return await self._once(request_id, answer)

    async def retire(self, cited: Citation, *, request_id: str, **_: object) -> Retired:
        def answer() -> Retired:
            return Retired(citation=self._moved(cited.node_id, NodeStatus.ARCHIVED), change_token=self._token())

        return await self._once(request_id, answer)

    async def reactivate(self, cited: Citation, *, request_id: str, **_: object) -> Reactivated:
        def answer() -> Reactivated:
            now = self._moved(cited.node_id, NodeStatus.ACTIVE)
            outcome = ReactivateMemoryOutcome.REACTIVATED
            return Reactivated(outcome=outcome, citation=now, change_token=self._token())

        return await self._once(request_id, answer)

    async def apply_change_set(self, operations: Sequence[Any], *, request_id: str, **_: object) -> ChangeSet:
        def answer() -> ChangeSet:
            stated = {one.node_id: one.status for one in operations if isinstance(one, Create | SetStatus)}
            changes = []
            for node_id in dict.fromkeys(one.node_id for one in operations):
                after = stated.get(node_id) or self._nodes[node_id][1]
                changes.append(
                    NodeChange(
                        citation=self._moved(node_id, after),
                        revision_digest=DIGEST,
                        operations=(OperationKind.SET_STATUS,),
                        status_before=None,
                        status_after=after,
                        content_changed=False,
                    )
                )
            return ChangeSet(
                namespace=NAMESPACE,
                namespace_revision=self._revision,
                method="ApplyChangeSet",
                idempotency_key=request_id,
                occurred_at=datetime.now(UTC),
                committed_at=datetime.now(UTC),
                caller="",
                changes=tuple(changes),
                note="",
                digest=DIGEST,
                chain_digest=DIGEST,
            )

        return await self._once(request_id, answer)

    async def get_nodes(self, node_ids: Sequence[str]) -> Mapping[str, Any]:
        return {one: SimpleNamespace(id=one, revision=self._nodes[one][0], relations=()) for one in node_ids}

    async def preview(self, *_: object, **__: object) -> Sequence[Any]:
        return []

    async def open_session(self, *_: object, **__: object) -> Any:
        return SimpleNamespace(info=SimpleNamespace(binding_digest=DIGEST))

    async def set_schedule(self, **_: object) -> None: ...

    async def close(self) -> None: ...

    async def _once(self, request_id: str, answer: Callable[[], T]) -> T:
        await asyncio.sleep(0)
        if request_id not in self._answers:
            self._answers[request_id] = answer()
        known: T = self._answers[request_id]
        return known

    def _moved(self, node_id: str, status: NodeStatus) -> Citation:
        self._revision += 1
        revision, _ = self._nodes.get(node_id, (0, status))
        self._nodes[node_id] = (revision + 1, status)
        return Citation(self._revision, node_id, revision + 1, DIGEST)

    def _token(self) -> ChangeToken:
        return ChangeToken("history", self._revision)


class ServerWithoutProcess:
    address = "127.0.0.1:1"

    async def start(self, timeout: float) -> None: ...

    async def terminate(self, timeout: float) -> None: ...

    async def kill9(self) -> None: ...


class HostsAlone(Life):
    """A life whose sessions, listings and refreshes are left out: hosts do what they do, in the order of the row."""

    async def jump_under_refresh(self) -> None:
        await self._hosts[0].day(horizon_life.DAYS // 30)

    async def keep_silent(self) -> None: ...

    async def _resume(self) -> None: ...

    async def _assemble(self) -> None: ...

    async def _remember_the_present(self) -> None: ...

    async def _page_through(self, day: int) -> None:
        await self._hosts[-1].day(day // 30)

    async def _take_up_old_page(self) -> None: ...


async def _covered(memory: object) -> bool:
    return True


@pytest.fixture
def half_a_year(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Any]:
    """Lets hosts live through it; returns their life."""
    services: list[Service] = []

    def client(*_: object, **__: object) -> Service:
        services.append(Service())
        return services[-1]

    monkeypatch.setattr(horizon_life, "MemoryClient", client)
    monkeypatch.setattr(horizon_life, "ClockedServer", lambda *_, **__: ServerWithoutProcess())
    monkeypatch.setattr(horizon_life, "covered", _covered)
    monkeypatch.setattr(long_horizon, "covered", _covered)

    async def lived(seed: int, *, hosts: int, activity: float) -> Life:
        life = HostsAlone(
            Ground(settings={}, folder=tmp_path),
            rng=random.Random(seed),
            tenant=f"tenant-{seed}",
            canary="canary",
            hosts=hosts,
            activity=activity,
            timeline=Timeline(),
        )
        async with life:
            await long_horizon._live(life)
        return life

    return lived


def _seconds(minutes: float) -> float:
    """Of the row in a run of all rows."""
    return 0.8 * minutes * 60 * BY_NUMBER[6].share / sum(row.share for row in ROWS)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("minutes", [1, 2, 5, 7, 10])
async def test_hosts_merge_let_decay_and_retire_however_little_time_there_is(half_a_year, minutes: int, seed: int):
    seconds = _seconds(minutes)
    life = await half_a_year(seed, hosts=long_horizon._hosts(seconds), activity=long_horizon._activity(seconds))
    assert never_happened(long_horizon._done(life.notes)) == []
    assert life.notes.refused == []
    # By which the planted bug that archives what matters little is seen.
    assert min(life.memory.importances) < ARCHIVED_BELOW


@pytest.mark.parametrize("seed", range(40))
async def test_a_rule_retires_what_it_is_for_even_if_hosts_do_next_to_nothing(half_a_year, seed: int):
    life = await half_a_year(seed, hosts=2, activity=0.0)
    assert life.notes.retired_by_rule
    assert life.notes.refused == []


@pytest.mark.parametrize("count", [0, 3, 5, 6, 40])
def test_what_is_repeated_are_the_first_commands_and_as_many_others_as_there_are(count: int):
    commands: list[Any] = [object() for _ in range(count)]
    repeated = horizon_life._to_repeat(commands, 20, random.Random(1))
    assert repeated[:5] == commands[:5]
    assert len(repeated) == min(count, 25)
    assert len(set(map(id, repeated))) == len(repeated)
