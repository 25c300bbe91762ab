"""A process that writes and recalls in one namespace beside others: `python -m tests.qualification.traffic.worker`.

Everything that it learns is in its journal before it goes on, so that it can be killed at any time. SIGTERM ends it in
order: it finishes what it does, and repeats what is in doubt. It prints nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from durable_memory_client import MemoryClient
from tests.processes.polling import WaitTimeoutError
from tests.qualification.recorder.history import History
from tests.qualification.recorder.journal import Journal, read_history
from tests.qualification.recorder.recorder import Recorder
from tests.qualification.traffic.callers import Caller
from tests.qualification.traffic.tenancy import RECONNECT_AT_ONCE, Tenancy
from tests.qualification.traffic.traffic import EVERYTHING, PAUSE_SECONDS

KINDS: Mapping[str, type[Caller]] = {kind.__name__: kind for kind in EVERYTHING}
_SETTLE_SECONDS = 30.0


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="worker", description=__doc__)
    parser.add_argument("--address", required=True)
    parser.add_argument("--token-file", type=Path, help="holds the bearer token; without it none is sent")
    parser.add_argument("--canary-file", type=Path, help="holds the word that is in all that it writes")
    parser.add_argument("--tenant", required=True)
    parser.add_argument("--principal", default="user-1")
    parser.add_argument("--scope", default="default")
    parser.add_argument("--name", required=True, help="of no other process that ever wrote to the namespace")
    parser.add_argument("--seed", required=True)
    parser.add_argument("--out", type=Path, required=True, help="the journal")
    parser.add_argument("--kinds", nargs="+", choices=sorted(KINDS), default=[kind.__name__ for kind in EVERYTHING])
    parser.add_argument("--timeout", type=float, default=2.0, help="of an attempt, in seconds")
    parser.add_argument("--pause", type=float, default=PAUSE_SECONDS)
    parser.add_argument("--resume", type=Path, nargs="*", default=[], help="journals whose sessions it goes on with")
    return parser.parse_args(given)


def bound(histories: Sequence[History]) -> dict[str, str]:
    """The digests of the bindings of the sessions that were opened, by their ids."""
    return {one.session_id: one.got for history in histories for one in history.resumed if one.got and not one.drifted}


async def work(options: argparse.Namespace) -> None:
    """Do it until SIGTERM says that it is enough."""
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    async with contextlib.AsyncExitStack() as stack:
        client = await stack.enter_async_context(
            MemoryClient(
                options.address,
                _content(options.token_file) or None,
                tenant=options.tenant,
                principal=options.principal,
                scope=options.scope,
                channel_options=RECONNECT_AT_ONCE,
            )
        )
        journal = stack.enter_context(Journal(options.out))
        tenancy = Tenancy(
            [client],
            seed=options.seed,
            kinds=[KINDS[name] for name in options.kinds],
            timeout=options.timeout,
            recorder=Recorder(process=options.name, seed=options.seed, journal=journal),
            canary=_content(options.canary_file),
            pause=options.pause,
            prefix=f"{options.name}-",
            sessions=bound([read_history(path) for path in options.resume]),
            follow=False,
        )
        stack.push_async_callback(tenancy.close)
        tenancy.start()
        await stopping.wait()
        await tenancy.stop()
        # What stays in doubt the history of the service resolves.
        with contextlib.suppress(WaitTimeoutError):
            await tenancy.settle(_SETTLE_SECONDS)


def _content(path: Path | None) -> str:
    return "" if path is None else path.read_text().strip()


if __name__ == "__main__":
    asyncio.run(work(arguments()))
