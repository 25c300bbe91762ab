"""What identifies a call and its process: request ids, and the host instance."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from durable_memory_client import identity as identities
from durable_memory_client.identity import host_instance, new_request_id


def test_request_ids_are_unique_and_in_the_order_of_their_making(monkeypatch: pytest.MonkeyPatch):
    ids = [new_request_id() for _ in range(1_000)]
    assert len(set(ids)) == 1_000
    assert [request_id[:13] for request_id in ids] == sorted(request_id[:13] for request_id in ids)

    monkeypatch.setattr(time, "time_ns", lambda: 0)
    assert new_request_id()[:13] >= ids[-1][:13]


def test_the_host_instance_is_one_per_process(monkeypatch: pytest.MonkeyPatch):
    here = host_instance()
    assert host_instance() == here

    monkeypatch.setattr("os.getpid", lambda: -1)
    assert host_instance() != here


def test_threads_that_ask_first_at_the_same_time_are_of_one_host_instance(monkeypatch: pytest.MonkeyPatch):
    both_mint = threading.Barrier(2)

    def minted() -> str:
        both_mint.wait(60.0)
        return new_request_id()

    monkeypatch.setattr(identities, "_host", None)
    monkeypatch.setattr(identities, "new_request_id", minted)
    with ThreadPoolExecutor(2) as pool:
        here, there = pool.map(lambda _: host_instance(), range(2))
    assert here == there
