"""Row 9: lines are late, silent, reset and cut in the middle of what is being said, each kind on each line."""

from __future__ import annotations

from typing import Final

from tests.qualification.faults.registry import WIRE
from tests.qualification.scenarios.endurance import endure, traffic_on
from tests.qualification.scenarios.past_faults import SILENT_HOST
from tests.qualification.scenarios.stage import Stage


class WireFaults:
    row = 9
    name = "wire_faults"
    promise = "latency, black hole, reset, cut after n bytes, between client and server and server and stores"

    async def run(self, stage: Stage) -> None:
        await endure(stage, traffic_on(stage), WIRE)
        stage.result.caveats.append(
            "The lines are connections through proxies of this machine: packets are neither reordered nor lost one by "
            "one, and no name is looked up."
        )


SCENARIO: Final = WireFaults()
REGRESSIONS: Final = (SILENT_HOST,)
