"""Page tokens: where a listing goes on, signed, so that nobody can forge, move or keep one."""

from __future__ import annotations

import base64
import binascii
import hmac
import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from google.protobuf.message import Message

from durable_memory.domain.canonical import JsonObject, canonical_json, digest_bytes, from_micros, to_micros
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.ports.runtime import Clock
from durable_memory.rpc.fingerprint import stated_fields

MAX_AGE: Final = timedelta(days=3)
_VERSION: Final = b"\x01"
_TIME_BYTES: Final = 8
_MAC_BYTES: Final = 32
_MAX_CHARACTERS: Final = 4096
# The namespace is bound as it was resolved; a page may be larger or smaller than the one before.
_NOT_A_FILTER: Final = frozenset({"namespace", "page_size", "page_token"})


class PageTokens:
    """Writes and reads page tokens.

    A token is base64url of version, time and state, and an HMAC-SHA256 over these, the method, the namespace and
    the filters: with any of them changed it is refused. The state is readable by its holder: put into it only what
    the page itself shows, such as the last id.

    The keys live in the store, shared by all replicas: the first signs, and any verifies.
    """

    def __init__(self, clock: Clock, keys: Sequence[bytes] = ()) -> None:
        self._clock = clock
        self._keys = tuple(keys)

    def use_keys(self, keys: Sequence[bytes]) -> None:
        """Take the keys of the store: once it is open, and whenever they may have changed."""
        self._keys = tuple(keys)

    def encode(self, method: str, namespace_key: bytes, request: Message, state: JsonObject) -> str:
        """The token of the page after `state`, for a listing by `method` with the filters of `request`."""
        if not self._keys:
            raise DomainError(Reason.NOT_SERVING, "the page token keys are not loaded", state="starting")
        time = to_micros(self._clock.now()).to_bytes(_TIME_BYTES, "big")
        body = _VERSION + time + canonical_json(state)
        mac = _mac(self._keys[0], method, namespace_key, request, body)
        return base64.urlsafe_b64encode(body + mac).rstrip(b"=").decode("ascii")

    def decode(self, method: str, namespace_key: bytes, request: Message, token: str) -> JsonObject:
        """The state in a token of this method, namespace and filters.

        Raises: INVALID_PAGE_TOKEN for one that is garbled, foreign, forged, too old or from the future.
        """
        raw = _unarmoured(token)
        body, mac = raw[:-_MAC_BYTES], raw[-_MAC_BYTES:]
        start = len(_VERSION) + _TIME_BYTES
        if len(body) < start or not body.startswith(_VERSION):
            raise _invalid()
        # Every key is tried, so that the time taken does not tell which one fits.
        matches = [hmac.compare_digest(_mac(key, method, namespace_key, request, body), mac) for key in self._keys]
        if not any(matches):
            raise _invalid()
        age = self._clock.now() - from_micros(int.from_bytes(body[len(_VERSION) : start], "big"))
        # Replicas' clocks differ a little; the bound on the other side only keeps the arithmetic honest.
        if not -MAX_AGE <= age <= MAX_AGE:
            raise _invalid()
        state: JsonObject = json.loads(body[start:])
        return state


def _mac(key: bytes, method: str, namespace_key: bytes, request: Message, body: bytes) -> bytes:
    filters = canonical_json(stated_fields(request, omit=_NOT_A_FILTER))
    return hmac.digest(key, digest_bytes("page-token/v1", method.encode(), namespace_key, filters, body), "sha256")


def _unarmoured(token: str) -> bytes:
    if len(token) > _MAX_CHARACTERS:
        raise _invalid()
    try:
        raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise _invalid() from error
    # One spelling per token: the unused bits of the last character must be zero.
    if base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii") != token:
        raise _invalid()
    return raw


def _invalid() -> DomainError:
    return DomainError(
        Reason.INVALID_PAGE_TOKEN, "the page token is garbled, too old, or belongs to another method or filter"
    )
