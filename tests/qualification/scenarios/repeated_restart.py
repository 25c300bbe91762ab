"""Row 1: replicas are killed at random points, again and again, and nothing acknowledged is missing or there twice."""

from __future__ import annotations

from typing import Final

from tests.qualification.faults.fault import Fault
from tests.qualification.faults.processes import EveryServerKilled, ServerDrained, ServerKilled, ServerPaused
from tests.qualification.scenarios.endurance import endure, traffic_on
from tests.qualification.scenarios.past_faults import WATCH_THROUGH_PROXY
from tests.qualification.scenarios.stage import Stage

_EPOCHS: Final = 10
_FAULTS: Final[tuple[Fault, ...]] = (
    ServerKilled(),
    EveryServerKilled(),
    ServerKilled(),
    ServerDrained(),
    ServerPaused(),
)


class RepeatedRestart:
    row = 1
    name = "repeated_restart"
    promise = (
        "kill -9 of replicas at random points, many epochs: every acknowledged write is there once; exact binding "
        "resumes; a drifted one is refused; run ids reused after restart never collapse admissions"
    )
    needs_faults = True

    async def run(self, stage: Stage) -> None:
        await endure(stage, traffic_on(stage), _FAULTS, least=_EPOCHS)


SCENARIO: Final = RepeatedRestart()
REGRESSIONS: Final = (WATCH_THROUGH_PROXY,)
