"""What is started in a thread is there when a cancellation comes through, so that it can be closed."""

import asyncio
import threading

import pytest

from tests.processes.polling import wait_until_async
from tests.qualification.cluster.to_the_end import in_thread_to_the_end


async def test_a_cancellation_waits_for_the_end_also_the_second_time():
    begun, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def start() -> None:
        begun.set()
        may_end.wait(100)
        ended.set()

    task = asyncio.create_task(in_thread_to_the_end(start))
    await wait_until_async(begun.is_set)
    for _ in range(2):
        task.cancel()
        await asyncio.wait([task], timeout=0.01)
        assert not task.done()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


async def test_results_and_errors_come_through():
    assert await in_thread_to_the_end(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        await in_thread_to_the_end(divmod, 7, 0)
