"""Row 1: replicas are killed at random points, again and again, and nothing acknowledged is missing or there twice."""

from __future__ import annotations

from typing import Final

from tests.qualification.checks.doubts import in_doubt, unsettled
from tests.qualification.faults.fault import Fault
from tests.qualification.faults.processes import EveryServerKilled, ServerDrained, ServerKilled, ServerPaused
from tests.qualification.scenarios.endurance import endure, spans_of, traffic_on
from tests.qualification.scenarios.past_faults import WATCH_THROUGH_PROXY
from tests.qualification.scenarios.stage import Stage
from tests.qualification.traffic.traffic import Traffic

_EPOCHS: Final = 10
_FAULTS: Final[tuple[Fault, ...]] = (
    ServerKilled(),
    EveryServerKilled(),
    ServerKilled(),
    ServerDrained(),
    ServerPaused(),
)


_KILLS: Final = frozenset({ServerKilled.name, EveryServerKilled.name})


class RepeatedRestart:
    row = 1
    name = "repeated_restart"
    promise = (
        "kill -9 of replicas at random points, many epochs: every acknowledged write is there once; exact binding "
        "resumes; a drifted one is refused; run ids reused after restart never collapse admissions"
    )

    async def run(self, stage: Stage) -> None:
        traffic = traffic_on(stage)
        await endure(stage, traffic, _FAULTS, least=_EPOCHS)
        _settled(stage, traffic)


def _settled(stage: Stage, traffic: Traffic) -> None:
    """Kills are to leave commands in doubt: what became of those is what the row is about."""
    spans = spans_of(stage, traffic, _KILLS)
    left, problems = 0, []
    for tenancy in traffic.tenancies:
        found = in_doubt(tenancy.history.calls, tenancy.committed, spans)
        left += len(found)
        problems += unsettled(found, tenancy.history.calls, tenancy.committed)
    stage.found("what kills leave in doubt is settled by the same request id", left, problems)
    stage.result.figures["attempts_in_doubt_by_kills"] = left


SCENARIO: Final = RepeatedRestart()
REGRESSIONS: Final = (WATCH_THROUGH_PROXY,)
