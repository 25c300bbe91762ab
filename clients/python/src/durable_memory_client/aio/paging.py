"""Listings: all items, page by page."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from durable_memory_client.values.namespace import ChangeToken

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[T_co]):
    """One page. `next_page_token` is empty on the last; `change_token` is what the listing answers for, if it says."""

    items: tuple[T_co, ...]
    next_page_token: str
    change_token: ChangeToken | None = None


class Fetch(Protocol[T_co]):
    """Reads the page with a token; the empty one is the first page's."""

    async def __call__(self, page_token: str) -> Page[T_co]: ...


class Pages(Generic[T]):
    """A listing. Iterate it for all items, `pages()` for the pages, or read one page with `page(token)`.

        async for node in memory.list_nodes(): ...

    Nothing is read before the first item is asked for, and no page before it is needed.
    """

    def __init__(self, fetch: Fetch[T]) -> None:
        self._fetch = fetch

    async def __aiter__(self) -> AsyncIterator[T]:
        async for page in self.pages():
            for item in page.items:
                yield item

    async def pages(self) -> AsyncIterator[Page[T]]:
        """All pages, in order."""
        token = ""
        while True:
            page = await self.page(token)
            yield page
            token = page.next_page_token
            if not token:
                return

    async def page(self, token: str = "") -> Page[T]:
        """One page: the first, or the one after the page that had this `next_page_token`."""
        return await self._fetch(token)

    async def all(self) -> list[T]:
        """All items at once."""
        return [item async for item in self]
