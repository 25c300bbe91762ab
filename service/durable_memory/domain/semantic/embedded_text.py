"""What is embedded of a node, in one fixed form."""

from __future__ import annotations

from typing import Final

from durable_memory.domain.canonical import digest_hex
from durable_memory.domain.node import NodeRevision

EMBEDDED_TEXT_MAX_BYTES: Final = 8_192
"""What is longer is cut at a character: models read a few hundred words, and the cap is part of the form."""


def embedded_text(node: NodeRevision) -> str:
    """The nearest of the surroundings, then author and content, as one passage.

    Content comes first in importance but last in place; when all is too long, the surrounding text is what gives way.
    """
    content = node.content.strip()  # nothing but space, where the cut leaves nothing else, is no text for a model
    said = f"{node.author}: {content}" if node.author else content
    own = cut(said, EMBEDDED_TEXT_MAX_BYTES)
    room = EMBEDDED_TEXT_MAX_BYTES - len(own.encode()) - 1
    if not node.surroundings or room <= 0:
        return own
    return f"{cut(node.surroundings[0], room)}\n{own}"


def cut(text: str, max_bytes: int) -> str:
    """The longest start of `text` that has at most `max_bytes` of UTF-8, whole characters only."""
    encoded = text.encode()
    return text if len(encoded) <= max_bytes else encoded[:max_bytes].decode(errors="ignore")


def text_digest(text: str) -> str:
    """What a vector belongs to: the digest of the embedded text, 64 hexadecimal digits."""
    return digest_hex("embedded-text/v1", text.encode())
