"""What all listings share: where a page starts, where the next one does, and how much fits into an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, Protocol, TypeVar

from google.protobuf.message import Message

from durable_memory.app.call import Call
from durable_memory.app.repository import RepositoryReader
from durable_memory.domain.canonical import JsonObject, JsonValue
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.node import NodeRevision
from durable_memory.domain.state import ChangeToken
from durable_memory.ports.store import NodeSelection
from durable_memory.rpc.decode.fields import page_size
from durable_memory.rpc.encode.node import encode_node
from durable_memory.rpc.paging import PageTokens
from durablememory.v1.node_pb2 import Node

_MessageT = TypeVar("_MessageT", bound=Message)
_ItemT = TypeVar("_ItemT")


class PagedRequest(Protocol):
    """What every listing's request has."""

    @property
    def page_size(self) -> int: ...

    @property
    def page_token(self) -> str: ...


class Start:
    """Where a page starts: after `state`'s keys, or at the beginning when there is no page token."""

    def __init__(self, limit: int, state: JsonObject | None) -> None:
        self.limit = limit
        self._state = state

    @property
    def first(self) -> bool:
        return self._state is None

    def text(self, name: str) -> str:
        return str(self._get(name, ""))

    def number(self, name: str, default: int = 0) -> int:
        value = self._get(name, default)
        return value if isinstance(value, int) else default

    def pinned(self, head: ChangeToken) -> ChangeToken:
        """The point in history that all pages of the listing are for: that of the first one.

        Raises: INVALID_PAGE_TOKEN if the namespace has got another history since.
        """
        if self._state is None:
            return head
        if self.text("history") != head.history_id:
            raise DomainError(Reason.INVALID_PAGE_TOKEN, "the listing's history is gone; list from the start")
        return ChangeToken(history_id=head.history_id, namespace_revision=self.number("at"))

    def _get(self, name: str, default: JsonValue) -> JsonValue:
        return default if self._state is None else self._state.get(name, default)


class Page(Generic[_MessageT]):
    """Encoded items, the point in history that they are for, and the token of what follows them."""

    def __init__(self, token: ChangeToken, items: Sequence[_MessageT], next_page_token: str) -> None:
        self.token = token
        self.items = items
        self.next_page_token = next_page_token


class Listing:
    """Pages for every list RPC, within the size of one answer."""

    def __init__(self, repository: RepositoryReader, tokens: PageTokens, max_bytes: int) -> None:
        self._repository = repository
        self._tokens = tokens
        self._max_bytes = max_bytes

    def start(self, call: Call, rpc: str, request: Message) -> Start:
        """Raises: INVALID_FIELD, LIMIT_EXCEEDED, INVALID_PAGE_TOKEN."""
        paged: PagedRequest = request  # type: ignore[assignment]
        limit = page_size(paged.page_size)
        token = paged.page_token
        state = self._tokens.decode(rpc, call.namespace.key, request, token) if token else None
        return Start(limit, state)

    def page(
        self,
        call: Call,
        rpc: str,
        request: Message,
        token: ChangeToken,
        found: Sequence[_ItemT],
        *,
        encode: Callable[[_ItemT], _MessageT],
        key: Callable[[_ItemT], JsonObject],
        more: bool,
    ) -> Page[_MessageT]:
        """As many of `found` as fit, and the token of the rest; `key` is where the page after an item starts."""
        items = _fitting((encode(item) for item in found), self._max_bytes)
        if not items or (len(items) == len(found) and not more):
            return Page(token, items, "")
        state = {**key(found[len(items) - 1]), "at": token.namespace_revision, "history": token.history_id}
        return Page(token, items, self._tokens.encode(rpc, call.namespace.key, request, state))

    async def nodes(
        self,
        call: Call,
        rpc: str,
        request: Message,
        selection: NodeSelection,
        *,
        at_revision: int | None,
        with_content: bool,
        with_surroundings: bool,
    ) -> Page[Node]:
        """A page of nodes in id order; all pages are for the revision of the first."""
        start = self.start(call, rpc, request)
        if not start.first:
            at_revision = start.pinned(await self._repository.token(call)).namespace_revision
        page = await self._repository.list_nodes(
            call, selection, at_revision=at_revision, after_node_id=start.text("after"), limit=start.limit
        )

        def encode(node: NodeRevision) -> Node:
            return encode_node(node, with_content=with_content, with_surroundings=with_surroundings)

        return self.page(call, rpc, request, page.token, page.nodes, encode=encode, key=_after_node, more=page.more)


def _after_node(node: NodeRevision) -> JsonObject:
    return {"after": node.node_id}


def _fitting(messages: Iterable[_MessageT], max_bytes: int) -> list[_MessageT]:
    """The first messages that fit together, at least one."""
    kept: list[_MessageT] = []
    size = 0
    for message in messages:
        size += message.ByteSize() + 16  # the item's own tag and length, generously
        if kept and size > max_bytes:
            break
        kept.append(message)
    return kept
