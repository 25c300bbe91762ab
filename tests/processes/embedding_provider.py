"""An embeddings endpoint on loopback that answers as well, or as badly, as it is told to."""

import asyncio
import base64
import json
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from tests.fixture_embedder import DIMENSION, numbers_of


@dataclass(frozen=True)
class Call:
    """One request as it came in; names of headers are lower case."""

    target: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def texts(self) -> list[str]:
        return list(self.body["input"])


@dataclass(frozen=True)
class Reply:
    """What goes back. `hangs`: nothing, ever. `drops`: the connection ends. `repeats`: the body so many times."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    hangs: bool = False
    drops: bool = False
    repeats: int = 1


Behaviour = Callable[[Call], Reply]


def _as_json(document: object, **options: Any) -> Reply:
    return Reply(json.dumps(document, **options).encode())


def _document(call: Call, rows: Sequence[object], model: str | None = None) -> dict[str, Any]:
    data = [{"object": "embedding", "index": index, "embedding": row} for index, row in enumerate(rows)]
    return {"object": "list", "data": data, "model": model or call.body["model"], "usage": {"total_tokens": 1}}


def answers(dimension: int = DIMENSION, *, model: str | None = None, packed: bool = False) -> Behaviour:
    """What a good provider says; `packed` as base64, as the client asks for, else as numbers."""

    def behave(call: Call) -> Reply:
        rows = [numbers_of(text, dimension) for text in call.texts]
        packed_rows = [base64.b64encode(struct.pack(f"<{dimension}f", *row)).decode() for row in rows]
        return _as_json(_document(call, packed_rows if packed else rows, model))

    return behave


def knows(vectors: Mapping[str, Sequence[float]], *, model: str | None = None) -> Behaviour:
    """A good answer whose vectors are those of `vectors`; other texts get `numbers_of`, of the same dimension."""
    dimension = len(next(iter(vectors.values())))

    def behave(call: Call) -> Reply:
        rows = [list(vectors[text]) if text in vectors else numbers_of(text, dimension) for text in call.texts]
        return _as_json(_document(call, rows, model))

    return behave


def says(status: int, headers: dict[str, str] | None = None) -> Behaviour:
    """An error that quotes what was sent, as some providers do."""

    def behave(call: Call) -> Reply:
        quoted = json.dumps({"error": {"message": f"cannot embed {call.texts} for {call.headers}"}})
        return Reply(quoted.encode(), status, headers or {})

    return behave


def replaces(rows: Callable[[list[Any]], list[Any]]) -> Behaviour:
    """A good answer with other rows."""
    return lambda call: _as_json(_document(call, rows([numbers_of(text) for text in call.texts])))


def reorders(order: Callable[[list[Any]], list[Any]], good: Behaviour | None = None) -> Behaviour:
    """A good answer whose items, indices and all, went through `order`."""

    def behave(call: Call) -> Reply:
        document = json.loads((good or answers())(call).body)
        document["data"] = order(document["data"])
        return _as_json(document)

    return behave


def for_texts_with(part: str, behaviour: Behaviour, otherwise: Behaviour) -> Behaviour:
    """`behaviour` for calls that have a text with this part, and `otherwise` for the others."""
    return lambda call: (behaviour if any(part in text for text in call.texts) else otherwise)(call)


def in_turn(*behaviours: Behaviour) -> Behaviour:
    """Each for one call, and the last for all that follow."""
    left = deque(behaviours)
    return lambda call: (left.popleft() if len(left) > 1 else left[0])(call)


def sends(body: bytes, *, status: int = 200, repeats: int = 1, headers: dict[str, str] | None = None) -> Behaviour:
    """These bytes, so many times."""
    return lambda call: Reply(body, status, headers or {}, repeats=repeats)


def hangs(call: Call) -> Reply:
    """Never answers."""
    return Reply(hangs=True)


def drops(call: Call) -> Reply:
    """Ends the connection instead of answering."""
    return Reply(drops=True)


class EmbeddingProvider:
    """`base_url` is for clients. Each behaviour in `script` is for one call; then, and before, it `usually` does."""

    def __init__(self, usually: Behaviour | None = None) -> None:
        self.usually: Behaviour = usually or answers()
        self.script: deque[Behaviour] = deque()
        self.calls: list[Call] = []
        self.base_url = ""
        self.most_at_once = 0
        """How many calls were being answered at the same time, at most."""
        self.gate = asyncio.Event()
        """Calls are answered while it is set, and wait while it is not."""
        self.gate.set()
        self._at_once = 0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.base_url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                while await self._serve(reader, writer):
                    pass
        except asyncio.CancelledError:
            if self._server is not None and self._server.is_serving():
                raise
        finally:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one call; whether another one may follow."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        lines = [line.partition(":") for line in head[1:] if line]
        headers = {name.lower(): value.strip() for name, _, value in lines}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        call = Call(head[0].split(" ")[1], headers, json.loads(body))
        self.calls.append(call)
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            await self.gate.wait()
            reply = (self.script.popleft() if self.script else self.usually)(call)
            if reply.hangs:
                await reader.read()  # until the other side gives up
            if reply.hangs or reply.drops:
                return False
            await self._write(writer, reply)
        finally:
            self._at_once -= 1
        return True

    async def _write(self, writer: asyncio.StreamWriter, reply: Reply) -> None:
        head = [
            f"HTTP/1.1 {reply.status} Status",
            "Content-Type: application/json",
            f"Content-Length: {len(reply.body) * reply.repeats}",
            *(f"{name}: {value}" for name, value in reply.headers.items()),
        ]
        writer.write("\r\n".join([*head, "", ""]).encode())
        for _ in range(reply.repeats):
            writer.write(reply.body)
            await writer.drain()


class ProviderThread:
    """A provider that answers in a thread of its own, while the test's waits for something else."""

    def __init__(self, provider: EmbeddingProvider, loop: asyncio.AbstractEventLoop) -> None:
        self.provider = provider
        self._loop = loop

    @property
    def texts(self) -> list[str]:
        """All that it was ever given, in order."""
        return [text for call in list(self.provider.calls) for text in call.texts]

    def hold(self) -> None:
        """From now on calls wait; this one returns when the provider knows."""
        self._in_its_thread(self.provider.gate.clear)

    def let_go(self) -> None:
        self._in_its_thread(self.provider.gate.set)

    def _in_its_thread(self, act: Callable[[], None]) -> None:
        done = threading.Event()
        self._loop.call_soon_threadsafe(act)
        self._loop.call_soon_threadsafe(done.set)
        done.wait()


@contextmanager
def provider_thread(usually: Behaviour | None = None) -> Iterator[ProviderThread]:
    """Run an `EmbeddingProvider` until the block ends."""
    started: list[ProviderThread] = []
    ready, ending = threading.Event(), asyncio.Event()

    async def serve() -> None:
        async with EmbeddingProvider(usually) as provider:
            started.append(ProviderThread(provider, asyncio.get_running_loop()))
            ready.set()
            await ending.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="embedding provider")
    thread.start()
    ready.wait()
    try:
        yield started[0]
    finally:
        started[0]._loop.call_soon_threadsafe(ending.set)
        thread.join()
