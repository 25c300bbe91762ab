"""The vector index and leases on any Redis from 6.2 or Valkey; no module is needed."""

from durable_memory.adapters.redis.connection import RedisConnection
from durable_memory.adapters.redis.leases import RedisLeaseStore
from durable_memory.adapters.redis.settings import RedisSettings
from durable_memory.adapters.redis.url import RedisUrl, parse_redis_url
from durable_memory.adapters.redis.vector_index import RedisVectorIndex

__all__ = [
    "RedisConnection",
    "RedisLeaseStore",
    "RedisSettings",
    "RedisUrl",
    "RedisVectorIndex",
    "parse_redis_url",
]
