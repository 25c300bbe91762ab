"""Every fault there is, in a fixed order: a seed chooses the same ones again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tests.qualification.faults.fault import Fault
from tests.qualification.faults.postgres import (
    COMMIT_SWALLOWED,
    COMMIT_UNANSWERED,
    COMMIT_UNHEARD,
    ConnectionsCut,
    PrimaryCrashed,
    StandbyLost,
    StandbyPromoted,
)
from tests.qualification.faults.processes import (
    EmbeddingKilled,
    EveryServerKilled,
    ServerDrained,
    ServerKilled,
    ServerPaused,
)
from tests.qualification.faults.redis import (
    KILLED_OUTAGE,
    SILENT_OUTAGE,
    EmptyRestart,
    PrimaryFrozen,
    PrimaryKilled,
    PromotionWithLoss,
)
from tests.qualification.faults.wire import WIRE as WIRE_FAULTS

PROCESSES: Final[Sequence[Fault]] = (
    ServerKilled(),
    EveryServerKilled(),
    ServerDrained(),
    ServerPaused(),
    EmbeddingKilled(),
)
POSTGRES: Final[Sequence[Fault]] = (
    PrimaryCrashed(),
    StandbyPromoted(),
    StandbyLost(),
    ConnectionsCut(),
    COMMIT_UNHEARD,
    COMMIT_UNANSWERED,
    COMMIT_SWALLOWED,
)
REDIS: Final[Sequence[Fault]] = (
    PrimaryKilled(),
    PromotionWithLoss(),
    EmptyRestart(),
    SILENT_OUTAGE,
    KILLED_OUTAGE,
    PrimaryFrozen(),
)
WIRE: Final[Sequence[Fault]] = WIRE_FAULTS
ALL: Final[Sequence[Fault]] = (*PROCESSES, *POSTGRES, *REDIS, *WIRE)
