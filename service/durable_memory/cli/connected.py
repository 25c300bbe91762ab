"""Turns a coroutine that uses a client into a command: shared options, where the service is, errors, exit codes."""

from __future__ import annotations

import asyncio
import inspect
import signal
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import asdict, dataclass, field
from datetime import UTC
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec

import typer

from durable_memory.adapters.runtime import SystemClock
from durable_memory.cli.grouped import Parameters
from durable_memory.cli.options import LOCAL_NAME, LOCAL_TENANT, ServiceOptions, local_principal
from durable_memory.cli.output import Output
from durable_memory.cli.place import NotOpenedError, Place, UnusablePlaceError, place
from durable_memory.cli.refusals import REFUSED, UNAVAILABLE, USAGE, advice, exit_code
from durable_memory.cli.times import Times
from durable_memory_client import IncompleteStreamError, MemoryClient, MemoryServiceError, MemoryUnavailableError
from durable_memory_client.connection import resolve_connection
from durable_memory_client.identity import new_request_id

P = ParamSpec("P")

_TRIES: Final = 3
_SIGNALLED: Final = 128
"""What shells add to the number of the signal that ended a command."""


@dataclass(frozen=True, kw_only=True)
class Invocation:
    """What a command works with. `request_id` and `kept` stay the same when the command has to be repeated."""

    memory: MemoryClient
    output: Output
    options: ServiceOptions
    place: Place
    request_id: str
    kept: dict[str, Any] = field(default_factory=dict)
    """What a repetition goes on from."""

    @property
    def times(self) -> Times:
        return self.output.times

    @property
    def where(self) -> str:
        """The namespace and the place it is in, for the person who finds nothing there."""
        ref = self.memory.ref
        named = ", ".join(f"{part} {value}" for part, value in asdict(ref).items() if value is not None)
        return f"{named or 'the namespace of the credential'}; {self.place.opened or self.place.address}"


class PartlyRefusedError(Exception):
    """Some of what was asked was refused and the rest was done; `errors` says why, by the names that were given."""

    def __init__(self, errors: list[tuple[str, MemoryServiceError]]) -> None:
        super().__init__(*(str(error) for _, error in errors))
        self.errors: Final = errors


def connected(
    body: Callable[Concatenate[Invocation, P], Awaitable[None]], *, by_meaning: bool = False
) -> Callable[..., None]:
    """A command for typer: the parameters of `body` after its first, and the options of `ServiceOptions`.

    `by_meaning`: it searches, or looks after, the vectors; the others do not wait for a model to be loaded.

    `body` runs again from its start if the service goes away before anything was printed, as that of another command
    does when it ends. So everything that it changes carries the invocation's request id.
    """

    async def declared(*, service: ServiceOptions) -> None:
        """Gives the shared options a place in the signature."""

    own, shared = Parameters(body), Parameters(declared)

    @wraps(body)
    def command(**arguments: Any) -> None:
        service = {name: arguments.pop(name) for name in shared.signature.parameters}
        options: ServiceOptions = shared.collected(service)["service"]
        output = Output(as_json=options.as_json, times=Times(SystemClock(), UTC if options.utc else None))
        collected = own.collected(arguments)
        work = _run(lambda invocation: body(invocation, **collected), options, output, by_meaning=by_meaning)  # type: ignore[call-arg]
        running = _interruptible(work)
        try:
            code = asyncio.run(running)
        except KeyboardInterrupt:
            code = _SIGNALLED + signal.SIGINT
        if code:
            raise typer.Exit(code)

    _, *parameters = own.signature.parameters.values()
    signature = inspect.Signature([*parameters, *shared.signature.parameters.values()])
    command.__signature__ = signature  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in signature.parameters.values()}
    return command


def unless_a_command_follows(command: Callable[..., None]) -> Callable[..., None]:
    """`command` as what a group of commands does when none of them is named. Options belong to the one that is."""

    @wraps(command)
    def callback(context: typer.Context, **arguments: Any) -> None:
        if context.invoked_subcommand is None:
            command(**arguments)
            return
        sources = map(context.get_parameter_source, arguments)
        if any(source is not None and source.name == "COMMANDLINE" for source in sources):
            context.fail(f"options of `{context.invoked_subcommand}` stand after it")

    context = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    parameters = [context, *inspect.signature(command).parameters.values()]
    callback.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    callback.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return callback


async def _interruptible(work: Coroutine[Any, Any, int]) -> int:
    """The exit code of `work`, which SIGTERM ends in order, as Ctrl-C does."""
    task = asyncio.ensure_future(work)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        current = asyncio.current_task()
        if current is not None and current.cancelling():
            raise  # Ctrl-C: the runner turns it into KeyboardInterrupt
        return _SIGNALLED + signal.SIGTERM


async def _run(
    body: Callable[[Invocation], Awaitable[None]], options: ServiceOptions, output: Output, *, by_meaning: bool
) -> int:
    """The exit code."""
    request_id = new_request_id()
    kept: dict[str, Any] = {}
    attempt = 0
    while True:
        attempt += 1
        address = options.address or ""
        try:
            token = options.token()
            async with place(options, by_meaning=by_meaning) as where:
                address = where.address
                async with _client(options, token, where) as memory:
                    await body(
                        Invocation(
                            memory=memory,
                            output=output,
                            options=options,
                            place=where,
                            request_id=request_id,
                            kept=kept,
                        )
                    )
            return 0
        except MemoryUnavailableError as error:
            if options.address is None and attempt < _TRIES and not output.written:
                continue  # a server that was found through the lock of a data file may just have ended
            complain(output, error, address)
            return UNAVAILABLE
        except MemoryServiceError as error:
            complain(output, error, address)
            return exit_code(error)
        except IncompleteStreamError as error:
            output.fail(str(error), advice="Nothing of it may be relied on; try again.")
            return UNAVAILABLE
        except PartlyRefusedError as refused:
            for name, refusal in refused.errors:
                complain(output, refusal, address, name)
            return REFUSED
        except NotOpenedError as error:
            output.fail(str(error), advice=error.advice)
            return UNAVAILABLE
        except UnusablePlaceError as error:
            output.fail("; ".join(error.faults))
            return USAGE
        except ValueError as error:  # what was given cannot be meant; the client refuses by it too, before it sends
            output.fail(str(error))
            return USAGE


def complain(output: Output, error: MemoryServiceError, address: str, name: str = "") -> None:
    """Say on stderr what was refused and what to do about it."""
    nobody = error.reason is None and isinstance(error, MemoryUnavailableError)
    message = f"nobody answers at {address}" if nobody else error.message
    output.fail(
        f"{name}: {message}" if name else message,
        advice=advice(error, address=address),
        details=error,
        kind=error.reason or "",
    )


def _client(options: ServiceOptions, token: str | None, where: Place) -> MemoryClient:
    """A client for the stated namespace; what is not stated is the credential's, or local without one."""
    tenant, principal, scope = options.tenant, options.principal, options.scope
    if where.opened is not None or resolve_connection(where.address, token, None, ()).token is None:
        tenant, principal, scope = tenant or LOCAL_TENANT, principal or local_principal(), scope or LOCAL_NAME
    return MemoryClient(where.address, token, tenant=tenant, principal=principal, scope=scope)
