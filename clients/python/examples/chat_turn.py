"""One chat turn with memory. Beside `durable-memory serve`: python chat_turn.py "I'd rather have tea."

What it heard becomes a candidate; once somebody activates that, later turns recall it.
"""

import asyncio
import sys

from durable_memory_client import MemoryClient, MemoryUnavailableError, render


def ask_the_model(memories: str, said: str) -> str:
    """Call your model here. This stand-in repeats what it was shown, and cites it."""
    return f"You said: {said}\nI remember [m1]:\n{memories}" if memories else f"You said: {said}"


async def chat_turn(memory: MemoryClient, said: str) -> str:
    said = said.encode("utf-8", "replace").decode().replace("\0", " ")  # what no memory can hold
    session = await memory.open_session("assistant", max_results=5, on_unavailable="empty")
    async with session.run() as run:
        found = render(await run.recall(said) if any(map(str.isalnum, said)) else (), max_bytes=4_000)
        admission = await run.admit(found.hits)
        shown = render(admission.hits, max_bytes=4_000)
        answer = ask_the_model(shown.text, said)
        try:
            await run.record_use(shown.cited(answer))
            await memory.propose(said, evidence=[run.evidence(said)])
        except MemoryUnavailableError as error:
            print(f"this turn may not have been kept: {error}", file=sys.stderr)
    return answer


async def main() -> None:
    async with MemoryClient(tenant="demo", principal="user-1", scope="chat") as memory:
        print(await chat_turn(memory, " ".join(sys.argv[1:]) or "I'd rather have tea."))


if __name__ == "__main__":
    asyncio.run(main())
