"""Leases in the store's file.

One process has the file, so its wall clock is the clock of all. Where that is set back, the leases granted later than
what it says now have ended: fences keep that safe, and nobody waits for a time that comes again in an hour.
"""

from __future__ import annotations

import sqlite3
from typing import Any, Final

from durable_memory.adapters.sqlite.connection import fetch_one, run
from durable_memory.adapters.sqlite.store import SqliteStore
from durable_memory.domain.canonical import to_micros
from durable_memory.domain.semantic.refusals import lease_fenced, lease_held
from durable_memory.ports.leases import Lease, LeaseState
from durable_memory.ports.runtime import Clock

MICROS_PER_SECOND: Final = 1_000_000


class SqliteLeaseStore:
    """`LeaseStore` in the file of `store`, which is opened and closed by its owner."""

    def __init__(self, store: SqliteStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def acquire(self, name: str, owner: str, *, ttl_seconds: float, floor: int, nonce: str) -> Lease:
        def work(connection: sqlite3.Connection) -> Lease:
            now = to_micros(self._clock.now())
            row = _find(connection, name)
            if not _is_live(row, now):
                fence = max(row["highest_fence"], floor) + 1
            elif (row["owner"], row["nonce"]) == (owner, nonce) and row["highest_fence"] > floor:
                fence = row["highest_fence"]
            else:
                raise lease_held((row["expires_at"] - now) / MICROS_PER_SECOND)
            _put(connection, name, owner=owner, nonce=nonce, fence=fence, now=now, ttl_seconds=ttl_seconds)
            return Lease(name=name, owner=owner, fence=fence, ttl_seconds=ttl_seconds)

        return await self._store.write_beside(work)

    async def renew(self, lease: Lease) -> None:
        def work(connection: sqlite3.Connection) -> None:
            now = to_micros(self._clock.now())
            nonce = require_live(connection, lease, now)["nonce"]
            _put(
                connection,
                lease.name,
                owner=lease.owner,
                nonce=nonce,
                fence=lease.fence,
                now=now,
                ttl_seconds=lease.ttl_seconds,
            )

        await self._store.write_beside(work)

    async def release(self, lease: Lease) -> None:
        def work(connection: sqlite3.Connection) -> None:
            row = _find(connection, lease.name)
            if (row["owner"], row["highest_fence"]) == (lease.owner, lease.fence):
                run(connection, "end_lease", {"name": lease.name})

        await self._store.write_beside(work)

    async def inspect(self, name: str) -> LeaseState:
        row = await self._store.read_beside(lambda connection: _find(connection, name))
        now = to_micros(self._clock.now())
        live = _is_live(row, now)
        return LeaseState(
            owner=row["owner"] if live else None,
            fence=row["highest_fence"],
            remaining_seconds=(row["expires_at"] - now) / MICROS_PER_SECOND if live else 0.0,
        )


def require_live(connection: sqlite3.Connection, lease: Lease, now: int) -> dict[str, Any]:
    """The row of a lease, inside a transaction of the writer; `now` is in microseconds.

    Raises: LEASE_FENCED if it is not the live one.
    """
    row = _find(connection, lease.name)
    if not _is_live(row, now) or (row["owner"], row["highest_fence"]) != (lease.owner, lease.fence):
        raise lease_fenced(lease.fence, row["highest_fence"])
    return row


def highest_fence(connection: sqlite3.Connection, name: str) -> int:
    fence: int = _find(connection, name)["highest_fence"]
    return fence


_NEVER_GRANTED: Final[dict[str, Any]] = {
    "highest_fence": 0,
    "owner": None,
    "nonce": None,
    "since": None,
    "expires_at": None,
}


def _find(connection: sqlite3.Connection, name: str) -> dict[str, Any]:
    return fetch_one(connection, "find_lease", {"name": name}) or _NEVER_GRANTED


def _is_live(row: dict[str, Any], now: int) -> bool:
    return row["owner"] is not None and row["since"] <= now < row["expires_at"]


def _put(
    connection: sqlite3.Connection, name: str, *, owner: str, nonce: str, fence: int, now: int, ttl_seconds: float
) -> None:
    parameters = {
        "name": name,
        "fence": fence,
        "owner": owner,
        "nonce": nonce,
        "since": now,
        "expires_at": now + round(ttl_seconds * MICROS_PER_SECOND),
    }
    run(connection, "put_lease", parameters)
