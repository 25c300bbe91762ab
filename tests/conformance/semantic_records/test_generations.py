"""What providers were last found to make."""

import asyncio
from dataclasses import replace

from durable_memory.domain.semantic.generation import Generation, Metric, Normalization, configuration_digest
from tests.conformance.samples import NOW


def configured(unique: str) -> str:
    """The digest of a configuration that no other test has."""
    return configuration_digest("test", {"unique": unique})


async def test_a_recorded_generation_comes_back_with_every_field(records, unique):
    recorded = Generation(
        provider="openai",
        model="model",
        revision=f"1;{unique}",
        dimension=1_536,
        normalization=Normalization.NONE,
        metric=Metric.DOT_PRODUCT,
        text_form="another/v0",
        similarity_floor=0.25,
    )
    assert await records.served_generation(configured(unique)) is None
    await records.record_generation(configured(unique), recorded, NOW)
    assert await records.served_generation(configured(unique)) == recorded


async def test_each_configuration_has_a_generation_of_its_own(records, unique, generation, other_generation):
    await records.record_generation(configured(unique), generation, NOW)
    assert await records.served_generation(configured(f"other {unique}")) is None
    await records.record_generation(configured(f"other {unique}"), other_generation, NOW)
    assert await records.served_generation(configured(unique)) == generation


async def test_the_generation_that_was_recorded_last_is_the_one_that_is_known(records, unique, generation):
    wider = replace(generation, dimension=generation.dimension + 1)
    for recorded in (generation, wider, wider, generation):
        await records.record_generation(configured(unique), recorded, NOW)
        assert await records.served_generation(configured(unique)) == recorded


async def test_many_that_record_a_generation_at_once_do_not_hinder_each_other(records, unique, generation):
    await asyncio.gather(*(records.record_generation(configured(unique), generation, NOW) for _ in range(16)))
    assert await records.served_generation(configured(unique)) == generation
