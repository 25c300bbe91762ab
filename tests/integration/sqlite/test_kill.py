"""A process that is killed loses nothing that it acknowledged, and repeats nothing."""

import os
import sys
from functools import partial
from pathlib import Path

from durable_memory.adapters.runtime import SystemIds
from durable_memory.adapters.sqlite import SqliteStore
from durable_memory.domain.change_set import ChangeSetRecord
from durable_memory.domain.namespace import Namespace
from tests.conformance.samples import MANY, apply, create
from tests.processes.child import Child
from tests.processes.polling import wait_until

KILLS = 3
ACKNOWLEDGED = 40

_WRITER = """
import asyncio, sys
from pathlib import Path
from durable_memory.adapters.runtime import SystemIds
from durable_memory.adapters.sqlite import SqliteStore
from durable_memory.domain.change_set import ChangeSetRecord
from durable_memory.domain.namespace import Namespace
from tests.conformance.samples import apply, create

async def write(store, namespace, lane):
    number = 0
    while True:
        name = f"{sys.argv[2]}-{lane}-{number}"
        outcome = await apply(store, namespace, create(name), key=name)
        print(name, outcome.result["at"], flush=True)
        number += 1

async def main():
    store = SqliteStore(Path(sys.argv[1]), SystemIds())
    await store.open()
    namespace = Namespace("acme", "user-1", "assistant")
    await asyncio.gather(*(write(store, namespace, lane) for lane in range(8)))

asyncio.run(main())
"""


def _has_acknowledged(log: Path) -> bool:
    return log.read_text().count("\n") >= ACKNOWLEDGED


async def test_everything_acknowledged_survives_kills_exactly_once(path: Path, namespace: Namespace):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    acknowledged: dict[str, int] = {}
    tokens = set()
    for kill in range(KILLS):
        log = path.with_name(f"{kill}.log")
        child = Child([sys.executable, "-c", _WRITER, str(path), str(kill)], log=log, env=env)
        wait_until(partial(_has_acknowledged, log), 60.0, what="enough was acknowledged")
        child.kill9()
        whole_lines = log.read_text().rpartition("\n")[0].splitlines()
        acknowledged |= {name: int(at) for name, at in (line.split() for line in whole_lines)}

        store = SqliteStore(path, SystemIds())
        await store.open()
        head = await store.head(namespace)
        tokens.add(head.history_id)
        records: list[ChangeSetRecord] = []
        while page := await store.list_change_sets(namespace, after_revision=len(records), limit=MANY):
            records.extend(page)
        made = {record.request_id: record.namespace_revision for record in records}
        assert list(made.values()) == list(range(1, head.revision + 1))
        assert len(made) == len(records)
        assert acknowledged.items() <= made.items()
        for name in list(acknowledged)[-5:]:
            again = await apply(store, namespace, create(name), key=name)
            assert (again.replayed, again.result["at"], again.head) == (True, acknowledged[name], head)
        await store.close()
    assert len(tokens) == 1
