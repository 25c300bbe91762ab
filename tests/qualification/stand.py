"""The cluster of a run, and the next one when a scenario has left it broken; with what each of them leaves behind."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import psutil

from tests.qualification.checks.hygiene import Forbidden, Traces
from tests.qualification.cluster.cluster import Cluster
from tests.qualification.report.timeline import Lane, Series, Timeline
from tests.qualification.scenarios.paraphrases import sentences
from tests.qualification.traffic.wording import phrases

OpenCluster = Callable[[Path, Timeline, int], AbstractAsyncContextManager[Cluster]]
"""Makes a cluster in a folder, with its number."""

_LOOK_SECONDS: Final = 0.5
_SAMPLE_SECONDS: Final = 1.0


class Stand:
    """Holds one cluster at a time. Its folder is temporary; the logs of its processes are copied to `logs`.

    What cannot be kept is a problem of the scan of `traces`, and nobody else's.
    """

    def __init__(self, open_cluster: OpenCluster, timeline: Timeline, logs: Path) -> None:
        self._open = open_cluster
        self._timeline = timeline
        self._logs = logs
        self._work = Path(tempfile.mkdtemp(prefix="durable-memory-qualify-"))
        self._number = 0
        self._cluster: Cluster | None = None
        self._stack = contextlib.AsyncExitStack()
        self._traces = Traces()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.end()
        finally:
            await asyncio.to_thread(shutil.rmtree, self._work, ignore_errors=True)

    @property
    def number(self) -> int:
        """How many clusters there have been."""
        return self._number

    @property
    def is_open(self) -> bool:
        """Whether there is a cluster now."""
        return self._cluster is not None

    async def cluster(self, within: float) -> Cluster:
        """A healthy cluster: the present one, if it gets healthy in time, or a new one.

        Raises: whatever keeps a new one from starting.
        """
        if self._cluster is not None:
            if not await self.problems(within):
                return self._cluster
            await self.end()
        self._number += 1
        folder = self._work / f"cluster-{self._number}"
        folder.mkdir()
        try:
            with self._timeline.span(Lane.PROCESS, f"cluster {self._number} starts", key="cluster"):
                self._cluster = await self._stack.enter_async_context(self._open(folder, self._timeline, self._number))
        except BaseException:
            # Nobody knows by now what its telemetry must not hold.
            await asyncio.to_thread(shutil.rmtree, logs_of(self._logs, self._number), ignore_errors=True)
            raise
        await self._stack.enter_async_context(_sampled(self._cluster))
        return self._cluster

    async def problems(self, within: float) -> list[str]:
        """What is still wrong with the present cluster when so many seconds have passed; nothing as soon as it is
        healthy."""
        ends_at = time.monotonic() + within
        while True:
            problems = await self._problems()
            if not problems or time.monotonic() >= ends_at:
                return problems
            await asyncio.sleep(_LOOK_SECONDS)

    async def _problems(self) -> list[str]:
        if self._cluster is None:
            return ["there is no cluster"]
        try:
            return await self._cluster.healthy()
        except Exception as error:  # noqa: BLE001 - a health check that breaks down is a finding like any other
            return [f"its health cannot be told: {type(error).__name__}"]

    async def end(self) -> None:
        """End the present cluster, if there is one."""
        cluster, self._cluster = self._cluster, None
        if cluster is None:
            return
        logs = logs_of(self._logs, self._number)
        kept: set[Path] = set()
        try:
            # Some processes take their log with them.
            kept = await asyncio.to_thread(_copy, _left_by(cluster), logs)
        finally:
            try:
                await self._stack.aclose()
            finally:
                kept |= await asyncio.to_thread(_copy, _left_by(cluster), logs)
                self._traces |= Traces(
                    forbidden=_forbidden(cluster), files=sorted(kept), lost=_lost(cluster, self._number)
                )

    def traces(self) -> Traces:
        """What all clusters have left so far, the present one with what it has written by now."""
        cluster = self._cluster
        if cluster is None:
            return self._traces
        return self._traces | Traces(
            forbidden=_forbidden(cluster), files=list(_left_by(cluster).values()), lost=_lost(cluster, self._number)
        )


def logs_of(logs: Path, number: int) -> Path:
    """The folder that a cluster's logs and telemetry are kept in."""
    return logs / f"cluster-{number}"


def _lost(cluster: Cluster, number: int) -> list[str]:
    lost = cluster.telemetry.raw_bytes_lost
    return [f"{lost} bytes of cluster {number}'s telemetry found no room on the disk"] if lost else []


def _forbidden(cluster: Cluster) -> Forbidden:
    return Forbidden(secrets=cluster.secrets, words=[cluster.canary], texts=[*phrases(), *sentences()])


def _left_by(cluster: Cluster) -> Mapping[str, Path]:
    """Everything that its processes have said, by the name that it is kept under."""
    named = {node.log: f"{node.name}.log" for node in cluster.postgres.nodes}
    named |= {node.log: f"{node.name}.log" for node in cluster.redis.nodes}
    named |= {one.log: f"sentinel-{number}.log" for number, one in enumerate(cluster.redis.sentinels, start=1)}
    found = {named.get(path, path.name): path for path in cluster.logs}
    received = cluster.telemetry.raw_path
    return {**found, received.name: received}


def _copy(files: Mapping[str, Path], folder: Path) -> set[Path]:
    """Keep copies of what does not lie in the folder, under their names; return all that should be there by now."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, path in files.items():
        kept = folder / name
        if path == kept:
            continue
        try:
            shutil.copyfile(path, kept)
        except OSError:
            kept.unlink(missing_ok=True)  # a part of it is no copy, and takes the room that the report needs
    return {*folder.iterdir(), *(folder / name for name in files)}


@contextlib.asynccontextmanager
async def _sampled(cluster: Cluster) -> AsyncIterator[None]:
    """Look at the memory of the servers each second for as long as the block lasts."""
    task = asyncio.create_task(_sample(cluster))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _sample(cluster: Cluster) -> None:
    while True:
        for server in cluster.servers:
            # One that is being ended is between being there and not.
            with contextlib.suppress(RuntimeError, psutil.Error):
                resident = psutil.Process(server.pid).memory_info().rss
                cluster.timeline.sample(Series.RESIDENT_BYTES, float(resident), key=server.name)
        await asyncio.sleep(_SAMPLE_SECONDS)
