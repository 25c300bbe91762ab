"""A client process that writes as much as it can until it is killed: `python -m ... ADDRESS NAME`."""

import asyncio
import sys

from durable_memory_client import MemoryClient

_AT_ONCE = 30


async def main(address: str, name: str) -> None:
    async with MemoryClient(address, tenant="acme", principal="user-1", scope="default") as memory:

        async def write(writer: int) -> None:
            number = 0
            while True:
                number += 1
                await memory.remember(f"{name} {writer} {number}")

        await asyncio.gather(*map(write, range(_AT_ONCE)))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
