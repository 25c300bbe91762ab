"""What the fusion is told by the branches of a recall."""

from __future__ import annotations

import pytest

from durable_memory.domain.lexical.profiles import BM25F_PROFILE, COVERAGE_PROFILE
from durable_memory.domain.session import RecallMode
from tests.unit.app.semantic.semantic_world import (
    MONEY,
    RAIN,
    VECTORS,
    Backing,
    GatedEmbedder,
    axis,
    found_ids,
    semantic_process,
)

TICKET = "Ticket 2014 was closed."
IN_ANOTHER_LANGUAGE = "2014 年的天气怎么样"
IN_THE_SAME_WORDS = "was ticket 2014 closed"


@pytest.mark.parametrize("profile", [BM25F_PROFILE, COVERAGE_PROFILE])
async def test_a_number_alone_does_not_come_before_what_the_question_means(backing: Backing, profile: str) -> None:
    vectors = {**VECTORS, TICKET: axis(4), IN_ANOTHER_LANGUAGE: axis(1), IN_THE_SAME_WORDS: axis(1)}
    async with semantic_process(backing, "a", GatedEmbedder(vectors)) as world:
        await world.indexed(TICKET, RAIN, MONEY, min_similarity=-1.0, lexical_profile=profile)
        for mode in (RecallMode.AUTO, RecallMode.HYBRID):
            foreign = await world.answer(IN_ANOTHER_LANGUAGE, mode=mode)
            assert found_ids(foreign)[0] == "b"
            same = await world.answer(IN_THE_SAME_WORDS, mode=mode)
            assert found_ids(same)[0] == "a"
