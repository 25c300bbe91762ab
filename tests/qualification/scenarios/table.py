"""The rows of the table: what a run has to show, in order, and which module shows it.

A row whose module is not there, or says that it is another row, is an error of the run: no row is left out unseen.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, cast

from tests.qualification.scenarios.stage import Scenario


class MissingRowError(Exception):
    """A row of the table has no scenario."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """`share` is how much of the run's time it is given, against the shares of the others."""

    number: int
    module: str
    name: str
    promise: str
    share: float


ROWS: Final[Sequence[Row]] = (
    Row(
        number=1,
        module="repeated_restart",
        name="repeated restart",
        promise="kill -9 of replicas at random points, many epochs: every acknowledged write is there once; exact "
        "binding resumes; a drifted one is refused; run ids reused after restart never collapse admissions",
        share=60,
    ),
    Row(
        number=2,
        module="concurrent_writers",
        name="concurrent writers",
        promise="N processes on M replicas against one partition: exactly one CAS winner per revision, nobody's "
        "records lost, revisions rise by one per publication",
        share=40,
    ),
    Row(
        number=3,
        module="lease_life",
        name="lease life",
        promise="renewal over many TTLs; a holder paused past its TTL and woken: its publication is refused; at most "
        "one holder at any time by the store's clock; fences strictly rise",
        share=45,
    ),
    Row(
        number=4,
        module="redis_failover",
        name="Redis failover",
        promise="Sentinel promotes a replica while refreshes run; also a promotion that loses acknowledged Redis "
        "writes, a restart with empty memory, and a full outage: fences stay monotonic, regress is detected, recall "
        "never serves a wrong item, rebuild costs zero provider calls",
        share=75,
    ),
    Row(
        number=5,
        module="postgres_failure",
        name="PostgreSQL failure",
        promise="kill -9 and crash recovery; promotion of a synchronous standby; connection cut in the middle of a "
        "commit: no acknowledged write lost, none applied twice, unknown outcomes resolved by the same request id",
        share=75,
    ),
    Row(
        number=6,
        module="long_horizon",
        name="long horizon",
        promise="simulated months by a manual clock: whatever hosts merge, let decay or prune, no ACTIVE node "
        "that they did not name is lost",
        share=25,
    ),
    Row(
        number=7,
        module="embedding_provider",
        name="real embedding provider",
        promise="an OpenAI-compatible server with a real model: identity recorded, latency and token distributions "
        "kept, recall rank of paraphrases kept",
        share=30,
    ),
    Row(
        number=8,
        module="drift_and_cache",
        name="drift and cache",
        promise="cache hits against rebuilds; no record ever outside its namespace's partition",
        share=35,
    ),
    Row(
        number=9,
        module="wire_faults",
        name="faults on the wire",
        promise="latency, black hole, reset, cut after n bytes, between client and server and server and stores",
        share=60,
    ),
    Row(
        number=10,
        module="isolation",
        name="isolation",
        promise="1:1000 tenant skew; every RPC tried with another tenant's ids; nothing returned, counted, timed or "
        "evicted across",
        share=35,
    ),
    Row(
        number=11,
        module="hygiene",
        name="hygiene",
        promise="reports, logs, metrics and spans hold no credential and no memory or query text",
        share=5,
    ),
)

EXPLORING: Final = Row(
    number=0,
    module="exploratory",
    name="exploratory",
    promise="whatever is broken, in any order, while everything is in use: all of the above holds",
    share=120,
)
"""Not of the table: faults by chance, for as long as there is time."""

BY_NUMBER: Final = MappingProxyType({row.number: row for row in ROWS})


def rows(numbers: Collection[int] = ()) -> Sequence[Row]:
    """The rows with these numbers in the order of the table; all of them if none is named.

    Raises: ValueError for a number that the table does not have.
    """
    strange = sorted(set(numbers) - set(BY_NUMBER))
    if strange:
        raise ValueError(f"there is no row {', '.join(map(str, strange))}; the rows are 1 to {len(ROWS)}")
    return tuple(row for row in ROWS if not numbers or row.number in numbers)


def scenario_of(row: Row) -> Scenario:
    """What shows the row.

    Raises: MissingRowError.
    """
    path = f"{__package__}.{row.module}"
    try:
        module = importlib.import_module(path)
    except ModuleNotFoundError as error:
        if error.name != path:
            raise
        raise MissingRowError(f"row {row.number}, {row.name}, has no module {path}") from None
    scenario = getattr(module, "SCENARIO", None)
    if scenario is None:
        raise MissingRowError(f"row {row.number}, {row.name}: {path} has no SCENARIO")
    if scenario.row != row.number:
        raise MissingRowError(f"row {row.number}, {row.name}: the SCENARIO of {path} is of row {scenario.row}")
    return cast(Scenario, scenario)


def regressions_of(row: Row) -> Sequence[Scenario]:
    """What shows that the past faults of the row have not come back, one for each."""
    module = importlib.import_module(f"{__package__}.{row.module}")
    return cast(Sequence[Scenario], tuple(getattr(module, "REGRESSIONS", ())))
