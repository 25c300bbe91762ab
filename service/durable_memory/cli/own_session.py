"""The session of the command line itself, by whose policy it explains and refreshes."""

from __future__ import annotations

from typing import Final

from durable_memory.cli.connected import Invocation
from durable_memory_client import MemorySession, ServerInfo, SessionBinding
from durable_memory_client.errors import BindingDriftError

OWN_SESSION: Final = "command-line"


async def own_session(invocation: Invocation) -> MemorySession:
    """Open, and bound to what a session that is opened now would be: what `recall` finds is what `explain` explains.

    Where the server makes no vectors at all, it stays bound to those of another time: they may come back.
    """
    memory = invocation.memory
    session = await memory.open_session(OWN_SESSION, request_id=invocation.request_id)
    if _is_behind(session.info.binding, await memory.server_info()):
        try:
            await session.rebind(request_id=invocation.request_id)
        except BindingDriftError:  # another command has just done it
            known = await memory.get_session(OWN_SESSION)
            return await memory.resume_session(OWN_SESSION, known.binding_digest)
    return session


def _is_behind(binding: SessionBinding, server: ServerInfo) -> bool:
    makes = server.semantic_generations
    if makes and binding.semantic_generation not in makes:
        return True
    stated = {name: value for name, value in server.default_policy.items() if name != "semantic"}
    return any(getattr(binding, name) != value for name, value in stated.items())
