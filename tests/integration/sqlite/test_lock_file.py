"""One process serves a file, and the command line finds out which."""

import os
import stat
import sys
import threading
from pathlib import Path

import pytest

from durable_memory.adapters.runtime import SystemIds
from durable_memory.adapters.sqlite import SqliteStore, live_server_address
from durable_memory.domain.errors import DomainError, Reason
from tests.processes.child import Child
from tests.processes.polling import wait_until

_HOLDER = """
import asyncio, sys
from pathlib import Path
from durable_memory.adapters.runtime import SystemIds
from durable_memory.adapters.sqlite import SqliteStore

async def hold() -> None:
    store = SqliteStore(Path(sys.argv[1]), SystemIds())
    await store.open()
    store.publish_address("127.0.0.1:1")
    await asyncio.Event().wait()

asyncio.run(hold())
"""


@pytest.fixture
def holder(path: Path):
    """Another process that serves the file."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    child = Child([sys.executable, "-c", _HOLDER, str(path)], log=path.with_suffix(".log"), env=env)
    wait_until(lambda: live_server_address(path), what="the other process serves the file")
    yield child
    child.kill9()


async def test_a_second_store_is_refused_and_told_who_serves(store, path):
    store.publish_address("127.0.0.1:7447")
    second = SqliteStore(path, SystemIds())
    with pytest.raises(DomainError) as refusal:
        await second.open()
    assert refusal.value.reason is Reason.NOT_SERVING
    assert refusal.value.metadata == {"state": "locked", "pid": str(os.getpid()), "address": "127.0.0.1:7447"}
    await store.check()


async def test_a_refused_store_can_be_opened_once_the_first_has_closed(store, path):
    second = SqliteStore(path, SystemIds())
    with pytest.raises(DomainError):
        await second.open()
    await store.close()
    await second.open()
    await second.close()


async def test_two_names_of_one_file_meet_at_one_lock(store, path, tmp_path):
    other_name = tmp_path / "link.db"
    other_name.symlink_to(path)
    with pytest.raises(DomainError) as refusal:
        await SqliteStore(other_name, SystemIds()).open()
    assert refusal.value.reason is Reason.NOT_SERVING


async def test_the_address_is_known_while_the_store_is_open(path):
    assert live_server_address(path) is None
    store = SqliteStore(path, SystemIds())
    await store.open()
    assert live_server_address(path) is None
    store.publish_address("127.0.0.1:7447")
    assert live_server_address(path) == "127.0.0.1:7447"
    store.publish_address("[::1]:1")
    assert live_server_address(str(path)) == "[::1]:1"
    await store.close()
    assert live_server_address(path) is None


async def test_a_new_server_does_not_inherit_the_address_of_the_one_before(path):
    for address in ("127.0.0.1:7447", None):
        store = SqliteStore(path, SystemIds())
        await store.open()
        if address:
            store.publish_address(address)
        assert live_server_address(path) == address
        await store.close()


async def test_the_lock_ends_with_its_process_however_that_ends(holder, path):
    store = SqliteStore(path, SystemIds())
    with pytest.raises(DomainError) as refusal:
        await store.open()
    assert refusal.value.metadata == {"state": "locked", "pid": str(holder.pid), "address": "127.0.0.1:1"}
    holder.kill9()
    assert live_server_address(path) is None
    await store.open()
    await store.close()


async def test_asking_for_the_server_never_keeps_one_from_starting(path):
    asking = threading.Event()

    def ask() -> None:
        while not asking.is_set():
            live_server_address(path)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        for _ in range(5):
            store = SqliteStore(path, SystemIds())
            await store.open()
            await store.close()
    finally:
        asking.set()
        thread.join()


async def test_the_files_are_their_owners_alone(store, path, namespace):
    await store.head(namespace)
    for file in path.parent.glob("store.db*"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("content", [b"", b"not json", b"[]", b'{"address": 7}'])
async def test_a_lock_file_without_sense_names_no_address(store, path, content):
    path.with_name("store.db.lock").write_bytes(content)
    assert live_server_address(path) is None
