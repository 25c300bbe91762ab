"""Mutations: begin, lock, load, decide, write, commit, and start again where another transaction was first."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

import asyncpg

from durable_memory.adapters.codec import decode_json, encode_json
from durable_memory.adapters.postgres.errors import CONTENDED, LOST, domain_errors, is_lost, overloaded, translated
from durable_memory.adapters.postgres.gate import NamespaceGate
from durable_memory.adapters.postgres.importing import write_copy
from durable_memory.adapters.postgres.loading import (
    ContendedError,
    find_head,
    find_request,
    find_request_and_evidence,
    load,
)
from durable_memory.adapters.postgres.pool import ConnectionPool
from durable_memory.adapters.postgres.rows import head_of
from durable_memory.adapters.postgres.settings import PostgresSettings
from durable_memory.adapters.postgres.stall import Stall
from durable_memory.adapters.postgres.transaction import WriteTransaction, write_transaction
from durable_memory.adapters.postgres.writing import head_after, write_beside, write_serial
from durable_memory.domain.change_set import CHAIN_START
from durable_memory.domain.errors import DomainError, dependency_unavailable, namespace_not_empty
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.state import Head
from durable_memory.ports.store import Decision, Lock, NamespaceCopy, Outcome, Plan, RequestRecord

T = TypeVar("T")

_ATTEMPTS: Final = 5
_BACKOFF_SECONDS: Final = 0.01


class Transactions:
    """All that writes. `empty_head` answers where a namespace stands that nobody wrote to."""

    def __init__(
        self, pool: ConnectionPool, stall: Stall, settings: PostgresSettings, empty_head: Callable[[Namespace], Head]
    ) -> None:
        self._pool = pool
        self._stall = stall
        self._settings = settings
        self._empty_head = empty_head
        self._gate = NamespaceGate(nodes_width=settings.namespace_connections, queue=settings.namespace_queue)

    async def transact(self, namespace: Namespace, plan: Plan) -> Outcome:
        attempt = self._serial if plan.lock is Lock.NAMESPACE else self._beside
        async with self._gate.enter(namespace.key, plan.lock):
            return await _repeated(lambda: attempt(namespace, plan))

    async def write(self, work: Callable[[WriteTransaction], Awaitable[T]]) -> T:
        """Commit what `work` writes, and return its result. It runs again where another transaction was first."""

        async def attempt() -> T:
            with _attempt_errors():
                async with write_transaction(self._pool, self._stall, self._settings) as transaction:
                    result = await work(transaction)
                    await transaction.commit()
                    return result

        return await _repeated(attempt)

    async def import_namespace(self, namespace: Namespace, copy: NamespaceCopy, history_id: str) -> Head:
        async with self._gate.enter(namespace.key, Lock.NAMESPACE):
            with domain_errors():
                async with write_transaction(self._pool, self._stall, self._settings) as transaction:
                    held = await self._lock_namespace(transaction, namespace)
                    row = await transaction.fetch_row("namespace_has_rows", namespace.key)
                    if held.revision or row is None or row[0]:
                        raise namespace_not_empty(held.revision)
                    head = await write_copy(transaction, namespace, copy, history_id)
                    await transaction.commit()
                    return head

    async def _serial(self, namespace: Namespace, plan: Plan) -> Outcome:
        with _attempt_errors():
            async with write_transaction(self._pool, self._stall, self._settings) as transaction:
                head = await self._lock_namespace(transaction, namespace)
                record, known_evidence = await find_request_and_evidence(
                    transaction, namespace, plan.request, plan.reads.evidence
                )
                if record is not None:
                    return await _replay(transaction, plan, record, head)
                loaded = await load(
                    transaction, namespace, plan.reads, plan.lock, head=head, known_evidence=known_evidence
                )
                decision = plan.decide(loaded)
                if not await write_serial(transaction, namespace, plan, decision, loaded):
                    await transaction.vouch()
                await transaction.commit()
        return _first(decision, head)

    async def _beside(self, namespace: Namespace, plan: Plan) -> Outcome:
        empty = self._empty_head(namespace)
        with _attempt_errors():
            async with write_transaction(self._pool, self._stall, self._settings) as transaction:
                if plan.request is not None:
                    request = plan.request
                    claim = namespace.key, request.method, request.key, request.fingerprint
                    if await transaction.fetch_row("claim_request", *claim) is None:
                        record = await find_request(transaction, namespace, request)
                        if record is None:
                            raise ContendedError
                        head = await find_head(transaction, namespace) or empty
                        return await _replay(transaction, plan, record, head)
                _, known_evidence = await find_request_and_evidence(transaction, namespace, None, plan.reads.evidence)
                loaded = await load(
                    transaction, namespace, plan.reads, plan.lock, head=empty, known_evidence=known_evidence
                )
                decision = plan.decide(loaded)
                if not await write_beside(transaction, namespace, plan, decision, loaded):
                    await transaction.vouch()
                await transaction.commit()
        return _first(decision, loaded.head)

    async def _lock_namespace(self, transaction: WriteTransaction, namespace: Namespace) -> Head:
        """Lock the namespace's row, after adding it if it is not there."""
        row = await transaction.fetch_row("lock_namespace", namespace.key)
        while row is None:
            empty = self._empty_head(namespace)
            await transaction.execute(
                "add_namespace",
                namespace.key,
                namespace.tenant_id,
                namespace.principal_id,
                namespace.scope_id,
                empty.history_id,
                CHAIN_START,
            )
            row = await transaction.fetch_row("lock_namespace", namespace.key)
        return head_of(row)


class _LostError(Exception):
    """The connection ended before a commit was sent on it."""


async def _repeated(attempt: Callable[[], Awaitable[T]]) -> T:
    """The result of the first attempt that is not in another's way."""
    lost = False
    for number in range(1, _ATTEMPTS + 1):
        try:
            return await attempt()
        except (ContendedError, *CONTENDED):
            await asyncio.sleep(_BACKOFF_SECONDS * number)
        except _LostError as error:
            if lost:
                raise dependency_unavailable("the database cannot be reached") from error
            lost = True  # perhaps only a connection that had ended while it was idle
    raise overloaded("too many calls change the same things at once")


@contextmanager
def _attempt_errors() -> Iterator[None]:
    """Domain errors, but for those after which the same attempt may pass: nothing of it was committed."""
    try:
        yield
    except (DomainError, ContendedError, *CONTENDED):
        raise
    except (asyncpg.PostgresError, *LOST) as error:
        # Each partition names its own constraint; only the table tells that an equal request was first.
        if isinstance(error, asyncpg.UniqueViolationError) and (error.table_name or "").startswith("request"):
            raise ContendedError from error
        if is_lost(error):
            raise _LostError from error
        raise translated(error) from error


def _first(decision: Decision, head: Head) -> Outcome:
    """What the first attempt answers: the result by way of text, as every replay will give it."""
    result = decode_json(encode_json(decision.result))
    return Outcome(result=result, replayed=False, head=head_after(head, decision))


async def _replay(transaction: WriteTransaction, plan: Plan, record: RequestRecord, head: Head) -> Outcome:
    assert plan.request is not None
    plan.request.require_same(record.request.fingerprint)
    await transaction.vouch()
    await transaction.commit()
    return Outcome(result=record.result, replayed=True, head=head)
