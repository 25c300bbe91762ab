"""Cached vectors: by namespace, model and text."""

import asyncio
from dataclasses import replace

import pytest

from durable_memory.domain.canonical import digest_hex
from tests.conformance.semantic_records.samples import digests, vector
from tests.conformance.test_isolation import ALIKE

MODEL = digest_hex("test", b"model")
OTHER_MODEL = digest_hex("test", b"other model")


async def test_a_cached_vector_comes_back_byte_for_byte(records, namespace):
    every_byte = bytes(range(256)) * 24  # as many bytes as 1,536 floats have
    text, other, absent = digests("text", "other", "absent")
    await records.cache_vectors(namespace, MODEL, {text: every_byte, other: b"\0"})
    assert await records.cached_vectors(namespace, MODEL, [other, absent, text]) == {text: every_byte, other: b"\0"}


async def test_a_vector_that_is_there_stays(records, namespace):
    text, new = digests("text", "new")
    await records.cache_vectors(namespace, MODEL, {text: vector(1)})
    await records.cache_vectors(namespace, MODEL, {text: vector(2), new: vector(3)})
    assert await records.cached_vectors(namespace, MODEL, [text, new]) == {text: vector(1), new: vector(3)}


async def test_each_model_has_vectors_of_its_own(records, namespace):
    (text,) = digests("text")
    await records.cache_vectors(namespace, MODEL, {text: vector(1)})
    assert await records.cached_vectors(namespace, OTHER_MODEL, [text]) == {}
    await records.cache_vectors(namespace, OTHER_MODEL, {text: vector(2)})
    assert await records.cached_vectors(namespace, MODEL, [text]) == {text: vector(1)}


async def test_no_vectors_asked_for_are_none_found(records, namespace):
    await records.cache_vectors(namespace, MODEL, {})
    assert await records.cached_vectors(namespace, MODEL, []) == {}


async def test_thousands_of_vectors_are_kept_and_found_at_once(records, namespace):
    vectors = dict(zip(digests(*map(str, range(5_000))), map(vector, range(5_000)), strict=True))
    await records.cache_vectors(namespace, MODEL, vectors)
    assert await records.cached_vectors(namespace, MODEL, vectors.keys()) == vectors


async def test_many_that_cache_the_same_vectors_at_once_do_not_hinder_each_other(records, namespace):
    texts = digests(*map(str, range(500)))
    one_way = {text: vector(number) for number, text in enumerate(texts)}
    other_way = dict(reversed(one_way.items()))
    await asyncio.gather(
        *(records.cache_vectors(namespace, MODEL, vectors) for vectors in (one_way, other_way) for _ in range(4))
    )
    assert await records.cached_vectors(namespace, MODEL, texts) == one_way


@pytest.mark.parametrize("pair", ALIKE, ids=lambda pair: f"{pair[0].label}-{pair[1].label}")
async def test_vectors_of_one_namespace_are_not_found_from_another(records, unique, pair):
    filled, other = (replace(namespace, scope_id=unique + namespace.scope_id) for namespace in pair)
    (text,) = digests("text")
    await records.cache_vectors(filled, MODEL, {text: vector(1)})
    assert await records.cached_vectors(other, MODEL, [text]) == {}
    await records.cache_vectors(other, MODEL, {text: vector(2)})
    assert await records.cached_vectors(filled, MODEL, [text]) == {text: vector(1)}
