"""How this adapter uses its server."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisSettings:
    """Bounds of one process. Everything is positive.

    A call makes at most `attempts`, each with `call_timeout_seconds`; those that move segments have
    `transfer_timeout_seconds` instead. None of that is spent on waiting for a free connection, which ends with
    `acquire_timeout_seconds`. Replaced segments stay readable for `replaced_grace_seconds`: longer than the load of a
    view may take. A server that is left alone is asked whether it is back with pauses that grow up to
    `longest_pause_seconds`; so are, while something is in doubt, those who know which servers there are. Otherwise they
    are asked about every `look_seconds`, and have `look_timeout_seconds` to answer. All of this is for each server that
    there is: each shard of a cluster has `max_connections` of its own, besides a few for looks at it.

    All attempts of a call together take less than the three seconds of a look at the health of the service, and than
    any caller waits by default, so that what fails says why.
    """

    max_connections: int = 16
    connect_timeout_seconds: float = 0.8
    acquire_timeout_seconds: float = 1.6
    call_timeout_seconds: float = 0.8
    transfer_timeout_seconds: float = 10.0
    attempts: int = 3
    retry_pause_seconds: float = 0.05
    longest_pause_seconds: float = 0.5
    look_seconds: float = 0.8
    look_timeout_seconds: float = 0.5
    replaced_grace_seconds: float = 120.0

    def __post_init__(self) -> None:
        for item in fields(self):
            if not getattr(self, item.name) > 0:
                raise ValueError(f"{item.name} is not positive")
