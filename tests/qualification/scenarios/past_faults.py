"""Faults that a qualification has found, each as the shortest course in which it was seen. `README.md` lists them."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Final

from durable_memory_client import MemoryClient, MemoryServiceError
from tests.processes.polling import WaitTimeoutError, wait_until_async
from tests.qualification.faults.postgres import StandbyPromoted
from tests.qualification.scenarios.stage import Stage
from tests.qualification.traffic.tenancy import Follower
from tests.qualification.traffic.wording import text_of

_SECONDS: Final = 30.0


class WatchThroughProxy:
    """A proxy resets a stream whose server has died with INTERNAL: a watch ended with an error instead of going on."""

    row = 1
    name = "a watch goes on when the server behind its proxy is killed"
    promise = "a watch tells every change once, in order, whichever server it was on"
    needs_faults = True

    async def run(self, stage: Stage) -> None:
        cluster, problems = stage.cluster, []
        async with cluster.client(f"{stage.prefix}-watch") as memory:
            follower = Follower(memory)
            try:
                for round_number, server in enumerate(cluster.servers):
                    # It is heard of, so the stream's answer has begun when its server dies.
                    remembered = await memory.remember(text_of(f"before-{round_number}", cluster.canary))
                    await follower.caught_up(remembered.citation.namespace_revision)
                    await server.kill9()
                    stage.result.faults["kill -9 of a server"] += 1
                    await server.start()
                    await cluster.wait_healthy()
                    remembered = await memory.remember(text_of(f"after-{round_number}", cluster.canary))
                    await follower.caught_up(remembered.citation.namespace_revision)
            except MemoryServiceError as error:
                problems.append(f"the watch ended: {error.code.name}")
            told = [change.change_token.namespace_revision for change in follower.changes]
            if told != list(range(1, 2 * len(cluster.servers) + 1)):
                problems.append(f"the watch told of the revisions {told}")
            with suppress(MemoryServiceError):
                await follower.close()
        stage.found("the watch goes on without gap or repetition", len(told), problems)


class ReadsWithoutStandby:
    """Commits that waited for a dead standby, given up one by one, took every connection that the primary has."""

    row = 5
    name = "reads go on while commits wait for a standby that is gone"
    promise = "without its standby a primary acknowledges nothing, and everything can be read"
    needs_faults = True

    async def run(self, stage: Stage) -> None:
        cluster = stage.cluster
        problems: list[str] = []
        async with cluster.client(f"{stage.prefix}-standby") as memory:
            await memory.remember(text_of("first", cluster.canary))
            before = await memory.get_change_token()
            await cluster.postgres.kill9_standby()
            stage.result.faults["loss of the PostgreSQL standby"] += 1
            acknowledged = sum(await asyncio.gather(*(_write(memory, cluster.canary, place) for place in range(120))))
            slow = 0.0
            for _ in range(20):
                began = time.monotonic()
                token = await memory.get_change_token(timeout=5.0)
                slow = max(slow, time.monotonic() - began)
                if token != before:
                    problems.append("a change that was not acknowledged is read")
            stage.result.figures["slowest_read_seconds_without_standby"] = round(slow, 3)
            await cluster.postgres.restart_standby()
            await wait_until_async(lambda: _writes(memory, cluster.canary), _SECONDS, what="writes come through again")
        if acknowledged:
            problems.append(f"{acknowledged} writes were acknowledged without the standby")
        stage.found("nothing is acknowledged, and everything can be read", 20, problems)


class SilentHost:
    """A host that takes connections and says nothing, named first, took all the time there was to find the primary."""

    row = 9
    name = "a silent host does not hide the primary"
    promise = "whichever host of the database is silent, a server that starts finds the one that takes writes"
    needs_faults = True

    async def run(self, stage: Stage) -> None:
        cluster, problems = stage.cluster, []
        if cluster.postgres.standby is not cluster.postgres.nodes[0]:
            await StandbyPromoted().inject(cluster, stage.rng)
            await cluster.wait_healthy()
        server = cluster.servers[0]
        async with cluster.client(f"{stage.prefix}-silent", address=server.address) as memory:
            cluster.postgres.nodes[0].proxy.go_silent()
            try:
                stage.result.faults["silence of the first PostgreSQL host"] += 1
                await server.kill9()
                began = time.monotonic()
                await server.start(_SECONDS)
                await memory.remember(text_of("found", cluster.canary), timeout=_SECONDS)
                stage.result.figures["seconds_to_the_first_write"] = round(time.monotonic() - began, 2)
            except (MemoryServiceError, WaitTimeoutError) as error:
                problems.append(f"the primary was not found: {type(error).__name__}")
            finally:
                cluster.postgres.nodes[0].proxy.mend()
        stage.found("a server finds the primary behind a silent host", 1, problems)


async def _write(memory: MemoryClient, canary: str, place: int) -> bool:
    try:
        await memory.remember(text_of(f"waiting-{place}", canary), timeout=2.0)
    except MemoryServiceError:
        return False
    return True


async def _writes(memory: MemoryClient, canary: str) -> bool:
    return await _write(memory, canary, -1)


WATCH_THROUGH_PROXY: Final = WatchThroughProxy()
READS_WITHOUT_STANDBY: Final = ReadsWithoutStandby()
SILENT_HOST: Final = SilentHost()
