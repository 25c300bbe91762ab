"""How this adapter uses its database."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresSettings:
    """Bounds of one process. Everything is positive.

    A server runs `write + read + 2` connections at most, and one more as long as commits are not answered. Beside them
    are those on which it asks hosts whether they are the primary: one to each now and then, and while none is four a
    second, each for `connect_timeout_seconds` at the longest.

    One namespace has at most one connection for change sets and `namespace_connections` for admissions and uses at a
    time, with `namespace_queue` calls of each sort waiting behind them. A commit may take `commit_timeout_seconds`,
    and no longer than `commit_grace_seconds` once its caller has gone; after that its outcome counts as unknown.
    `silence_timeout_seconds` is for a connection that does not even bring the server's own timeout;
    `head_timeout_seconds` is the same for the one query that every recall waits for. `rollback_timeout_seconds`, in
    which a connection has to answer for itself after a call that failed, is shorter than both: after that time the
    driver ends the connection by itself, and nobody would learn that it was silent.

    Of several hosts, the one that was the primary last has `host_patience_seconds` before all are asked, and once one
    takes writes the others have `other_hosts_seconds` to say that they were promoted later. All are asked again every
    `survey_seconds`, lest a primary that another has overtaken, and nobody has stopped, is believed for long.
    """

    write_connections: int = 8
    read_connections: int = 8
    namespace_connections: int = 2
    namespace_queue: int = 64
    connect_timeout_seconds: float = 5.0
    host_patience_seconds: float = 1.0
    other_hosts_seconds: float = 0.5
    survey_seconds: float = 10.0
    acquire_timeout_seconds: float = 5.0
    lock_timeout_seconds: float = 5.0
    statement_timeout_seconds: float = 15.0
    silence_timeout_seconds: float = 20.0
    head_timeout_seconds: float = 3.0
    idle_in_transaction_timeout_seconds: float = 15.0
    commit_timeout_seconds: float = 10.0
    commit_grace_seconds: float = 2.0
    rollback_timeout_seconds: float = 2.0
    change_poll_seconds: float = 2.0

    def __post_init__(self) -> None:
        for item in fields(self):
            if not getattr(self, item.name) > 0:
                raise ValueError(f"{item.name} is not positive")
        for longer in ("silence_timeout_seconds", "head_timeout_seconds"):
            if self.rollback_timeout_seconds >= getattr(self, longer):
                raise ValueError(f"rollback_timeout_seconds is not shorter than {longer}")
