"""Finds out who calls, before anything of the request is read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from durable_memory.rpc.authentication import Authenticator, set_caller
from durable_memory.rpc.interceptors.call import IncomingCall


class CredentialsLayer:
    """Refuses a call without a valid credential; otherwise `current_caller()` is its caller."""

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator

    @asynccontextmanager
    async def around(self, call: IncomingCall) -> AsyncIterator[None]:
        call.caller = self._authenticator.authenticate(call.context.invocation_metadata() or ())
        set_caller(call.caller)
        yield
