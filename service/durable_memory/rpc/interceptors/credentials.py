"""Finds out who calls, before anything of the request is read."""

from __future__ import annotations

from typing import Any

from durable_memory.rpc.authentication import Authenticator, set_caller
from durable_memory.rpc.interceptors.call import IncomingCall, Proceed


class CredentialsLayer:
    """Refuses a call without a valid credential; otherwise `current_caller()` is its caller."""

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator

    async def around(self, call: IncomingCall, proceed: Proceed) -> Any:
        call.caller = self._authenticator.authenticate(call.context.invocation_metadata() or ())
        set_caller(call.caller)
        return await proceed()
