"""Committed heads in memory, so that asking for one costs neither a query nor a thread.

There is one process and one writer, so a head that was published after its commit is the truth until the next commit.
To be used from the event loop only.
"""

from __future__ import annotations

from typing import Final

from durable_memory.domain.state import Head

MOST_HEADS: Final = 65_536


class Heads:
    """Heads by namespace key. When there are too many all are forgotten, and read again when somebody asks."""

    def __init__(self, most: int = MOST_HEADS) -> None:
        self._most = most
        self._heads: dict[bytes, Head] = {}
        self.epoch = 0
        """Counts how often everything was forgotten: what began to be read before that may be older than it seems."""

    def get(self, key: bytes) -> Head | None:
        return self._heads.get(key)

    def written(self, key: bytes, head: Head) -> bool:
        """Take in what a commit left; whether that is news. Commits may be overtaken by a read that saw the next."""
        held = self._heads.get(key)
        if held is not None and (_age(held) > _age(head) or held == head):
            return False
        self._put(key, head)
        return True

    def read(self, key: bytes, head: Head, epoch: int) -> bool:
        """Take in what a read saw that began at `epoch`; whether that is news.

        A read may see a commit before its writer has said so. Whoever asks for the head after that read must not be
        told an older one.
        """
        held = self._heads.get(key)
        if epoch != self.epoch or (held is not None and _age(held) >= _age(head)):
            return False
        self._put(key, head)
        return True

    def _put(self, key: bytes, head: Head) -> None:
        if key not in self._heads and len(self._heads) >= self._most:
            self._heads.clear()
            self.epoch += 1
        self._heads[key] = head


def _age(head: Head) -> tuple[int, int]:
    """Two heads of one namespace are in the order of these: neither count ever goes back."""
    return (head.revision, head.session_revision)
