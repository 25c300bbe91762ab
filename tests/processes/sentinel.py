"""A real Redis Sentinel as a child of the tests."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.processes.redis import RespProcess


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """What sentinels watch and how. Ports are of loopback, times in milliseconds.

    A server counts as down when `quorum` sentinels have heard nothing of it for `down_after`; less than 2000 takes a
    busy server for a dead one. `failover_timeout` bounds the parts of a failover, and another one begins no sooner
    than twice that after the last.
    """

    name: str
    primary_port: int
    replica_ports: Sequence[int] = ()
    quorum: int = 2
    down_after: int = 2_000
    failover_timeout: int = 6_000


class SentinelProcess(RespProcess):
    """One sentinel of those that watch a primary. What it has learnt is in its file, and survives kill9.

    ``identity`` is 40 hexadecimal digits, different for each. Sentinels that were introduced to each other need not
    find each other by way of the primary, which takes some seconds.
    """

    def __init__(self, binary: Path, watch: Watch, identity: str) -> None:
        super().__init__(binary)
        self.identity = identity
        self._watch = watch
        self._file = self._folder / "sentinel.conf"

    def introduce(self, sentinels: Collection["SentinelProcess"]) -> None:
        """Before the first start: let it know all sentinels, itself or not."""
        watch = self._watch
        lines = [
            f"port {self.port}",
            "bind 127.0.0.1",
            "protected-mode no",
            f"dir {self._folder}",
            f"sentinel myid {self.identity}",
            "sentinel announce-ip 127.0.0.1",
            f"sentinel announce-port {self.port}",
            f"sentinel monitor {watch.name} 127.0.0.1 {watch.primary_port} {watch.quorum}",
            f"sentinel down-after-milliseconds {watch.name} {watch.down_after}",
            f"sentinel failover-timeout {watch.name} {watch.failover_timeout}",
            f"sentinel parallel-syncs {watch.name} 1",
            *(f"sentinel known-replica {watch.name} 127.0.0.1 {port}" for port in watch.replica_ports),
            *(
                f"sentinel known-sentinel {watch.name} 127.0.0.1 {other.port} {other.identity}"
                for other in sentinels
                if other is not self
            ),
        ]
        self._file.write_text("".join(f"{line}\n" for line in lines))

    def _arguments(self) -> Sequence[str | Path]:
        if not self._file.exists():
            self.introduce(())
        return [self._file, "--sentinel"]
