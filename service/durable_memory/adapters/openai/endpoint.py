"""One real call: the official client, held to the configured endpoint, a deadline and a bounded answer.

The client would read its settings from the environment, follow redirects, repeat calls unseen and log inputs; none of
that happens here. Its exceptions carry the request, with key and texts, and go no further than this module.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Final
from urllib.parse import urlsplit

import httpx2
import openai

from durable_memory.adapters.embedding.vectors import MAX_DIMENSION
from durable_memory.adapters.openai.settings import OpenAISettings
from durable_memory.ports.embedder import ConnectionTrouble, EmbeddingError, EmbeddingFailure
from durable_memory.ports.runtime import Clock

_LOGGERS: Final = ("openai", "httpx2", "httpcore2")
_ANSWER_BYTES_PER_NUMBER: Final = 28
_ANSWER_BYTES_BESIDE: Final = 65_536
_LONGEST_RETRY_AFTER_SECONDS: Final = 3_600.0
"""A provider that names a longer time, by a mistake for one, is asked again after this one all the same."""

_TOO_MANY_REQUESTS: Final = 429
_TRY_AGAIN: Final = frozenset({408, 425})
_SERVER_ERRORS: Final = 500
_UNREACHABLE: Final = frozenset({errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ENETDOWN})
_PORTS: Final = {"http": 80, "https": 443}


def address_of(base_url: str) -> str:
    """`host:port`, and nothing else of the URL."""
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    return f"{f'[{host}]' if ':' in host else host}:{parts.port or _PORTS[parts.scheme]}"


class _UnacceptableAnswerError(Exception):
    """An answer that is too long, or compressed although that was not asked for."""


class Endpoint:
    """Belongs to one event loop. `close` ends its connections."""

    def __init__(self, settings: OpenAISettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._max_answer_bytes = (
            settings.batch_max_texts * MAX_DIMENSION * _ANSWER_BYTES_PER_NUMBER + _ANSWER_BYTES_BESIDE
        )
        for name in _LOGGERS:  # below this level they log addresses, and have logged inputs
            logging.getLogger(name).setLevel(logging.WARNING)
        key = settings.api_key
        self._headers = {
            "Authorization": f"Bearer {key}" if key else openai.omit,
            "OpenAI-Organization": openai.omit,
            "OpenAI-Project": openai.omit,
            "Accept-Encoding": "identity",
        }
        self._client = openai.AsyncOpenAI(
            base_url=settings.base_url,
            # Given as they are, so that none is taken from the environment: another provider's key, for one.
            api_key=key or "",
            admin_api_key="",
            max_retries=0,
            http_client=openai.DefaultAsyncHttpxClient(
                follow_redirects=False,  # texts go to the configured endpoint and nowhere else
                trust_env=not _is_loopback(settings.base_url),  # proxies, which a server on this machine needs none of
                event_hooks={"response": [self._bound]},
                limits=httpx2.Limits(max_connections=2 * settings.max_concurrent),
            ),
            _enforce_credentials=False,
        )

    async def close(self) -> None:
        await self._client.close()

    async def embeddings(self, texts: Sequence[str], *, timeout_seconds: float) -> bytes:
        """The body of a successful answer.

        Raises: EmbeddingError with UNREACHABLE, TIMEOUT, RATE_LIMITED, REFUSED or UNREADABLE, and no other exception
        as its cause or context.
        """
        settings = self._settings
        try:
            async with asyncio.timeout(timeout_seconds):
                answer = await self._client.embeddings.with_raw_response.create(
                    input=list(texts),
                    model=settings.model,
                    dimensions=openai.omit if settings.dimensions is None else settings.dimensions,
                    encoding_format="base64",
                    timeout=timeout_seconds,
                    extra_headers=self._headers,
                )
                return answer.content
        except (TimeoutError, openai.APITimeoutError, httpx2.TimeoutException):
            failure = EmbeddingError(EmbeddingFailure.TIMEOUT, retryable=True)
        except openai.APIStatusError as error:
            failure = self._of_status(error.status_code, error.response.headers)
        except (openai.APIError, httpx2.HTTPError, OSError) as error:
            failure = EmbeddingError(EmbeddingFailure.UNREACHABLE, retryable=True, trouble=_trouble(error))
        except _UnacceptableAnswerError:
            failure = EmbeddingError(EmbeddingFailure.UNREADABLE, retryable=True)
        raise failure

    def _of_status(self, status: int, headers: Mapping[str, str]) -> EmbeddingError:
        if status == _TOO_MANY_REQUESTS:
            failure, retryable = EmbeddingFailure.RATE_LIMITED, True
        elif status >= _SERVER_ERRORS or status in _TRY_AGAIN:
            failure, retryable = EmbeddingFailure.UNREACHABLE, True
        else:
            failure, retryable = EmbeddingFailure.REFUSED, False
        return EmbeddingError(
            failure, retryable=retryable, status=status, retry_after_seconds=self._retry_after(headers)
        )

    def _retry_after(self, headers: Mapping[str, str]) -> float | None:
        asked = self._asked_for(headers)
        return None if asked is None else min(asked, _LONGEST_RETRY_AFTER_SECONDS)

    def _asked_for(self, headers: Mapping[str, str]) -> float | None:
        for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
            with suppress(ValueError):
                seconds = float(headers.get(name, "")) * unit
                if isfinite(seconds) and seconds >= 0:
                    return seconds
        with suppress(ValueError):
            moment = parsedate_to_datetime(headers.get("retry-after", ""))
            if moment.tzinfo is None:
                moment = moment.replace(tzinfo=UTC)
            return max(0.0, (moment - self._clock.now()).total_seconds())
        return None

    async def _bound(self, response: httpx2.Response) -> None:
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise _UnacceptableAnswerError
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _BoundedStream(response.stream, self._max_answer_bytes)


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, max_bytes: int) -> None:
        self._stream = stream
        self._left = max_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            self._left -= len(chunk)
            if self._left < 0:
                raise _UnacceptableAnswerError
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


def _trouble(error: BaseException) -> ConnectionTrouble:
    """What is behind the driver's errors, of which the words are never looked at: they may quote anything."""
    for behind in _causes(error):
        if isinstance(behind, ssl.SSLError):
            return ConnectionTrouble.TLS_FAILED
        if isinstance(behind, socket.gaierror):
            return ConnectionTrouble.NAME_NOT_RESOLVED
        if isinstance(behind, ConnectionRefusedError):
            return ConnectionTrouble.CONNECTION_REFUSED
        if isinstance(behind, OSError) and behind.errno in _UNREACHABLE:
            return ConnectionTrouble.HOST_UNREACHABLE
    return ConnectionTrouble.CONNECTION_LOST


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error, and all that it came of."""
    waiting, seen = [error], set[int]()
    while waiting:
        behind = waiting.pop()
        if id(behind) in seen:
            continue
        seen.add(id(behind))
        yield behind
        if isinstance(behind, BaseExceptionGroup):
            waiting += behind.exceptions
        waiting += [cause for cause in (behind.__context__, behind.__cause__) if cause is not None]


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
