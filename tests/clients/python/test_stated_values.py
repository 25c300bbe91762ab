"""What a caller may state for a value of the contract, and what is refused by its name before anything is sent."""

from collections.abc import Callable
from typing import Any

import pytest

from durable_memory_client import (
    Decision,
    Draft,
    Evidence,
    MemoryClient,
    RecallFilter,
    RecallMode,
    Relation,
    SemanticPolicy,
    relate,
)
from durable_memory_client.sync import MemoryClient as BlockingMemoryClient
from durable_memory_client.values.memory import Node
from durablememory.v1 import node_pb2, recall_pb2, recall_service_pb2, semantic_pb2
from tests.clients.python.fake_service import FakeService
from tests.clients.python.messages import citation, node, opened, recalled, refreshed, token

OPEN, ACTIVE = "SessionService.OpenSession", "RecallService.ActiveRecall"
LONE = "half \ud800 of it"
AUTO: Any = "AUTO"


async def test_the_name_of_a_value_does_where_the_value_is_asked_for(service: FakeService, memory: MemoryClient):
    service.will_answer(OPEN, opened())
    service.will_answer(ACTIVE, recalled())
    service.will_answer("SemanticService.RefreshSemanticRecall", refreshed())
    any_backend: Any = "LAST_WRITER_WINS"

    session = await memory.open_session("assistant", mode=AUTO)
    await session.recall("tea", mode=AUTO, filter=RecallFilter(kinds=["EPISODIC"]))  # type: ignore[list-item]
    await memory.refresh_semantic_recall("assistant", requirement=any_backend).wait()

    (open_request,), (recall_request,) = service.calls(OPEN), service.calls(ACTIVE)
    assert open_request.request.policy.mode == recall_pb2.RECALL_MODE_AUTO
    assert recall_request.request.mode == recall_pb2.RECALL_MODE_AUTO
    assert list(recall_request.request.filter.kinds) == [1]
    (refresh,) = service.calls("SemanticService.RefreshSemanticRecall")
    assert refresh.request.requirement == semantic_pb2.INDEX_CONSISTENCY_LAST_WRITER_WINS


def test_the_blocking_twin_takes_names_too(service: FakeService, blocking_memory: BlockingMemoryClient):
    service.will_answer(OPEN, opened())

    blocking_memory.open_session("assistant", mode=AUTO)

    (asked,) = service.calls(OPEN)
    assert asked.request.policy.mode == recall_pb2.RECALL_MODE_AUTO


async def test_a_name_that_there_is_not_is_refused_with_the_argument_and_the_names_there_are(
    service: FakeService, memory: MemoryClient
):
    wrong: Any = "automatic"
    with pytest.raises(ValueError, match="mode is one of AUTO, LEXICAL, SEMANTIC, HYBRID, not 'automatic'"):
        await memory.open_session("assistant", mode=wrong)
    with pytest.raises(ValueError, match="mode is one of"):
        await memory.preview("tea", mode=wrong)
    with pytest.raises(ValueError, match="requirement is one of"):
        memory.refresh_semantic_recall("assistant", requirement=wrong)
    assert service.calls(OPEN) == []


def test_a_value_of_a_newer_server_may_be_stated_as_it_came_and_not_by_its_name():
    newer = RecallMode.from_number(99)
    name: str = newer.value

    assert RecallMode.given(newer, "mode") is newer
    for text in (name, "UNSPECIFIED"):
        with pytest.raises(ValueError, match="mode is one of"):
            RecallMode.given(text, "mode")


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda wrong: Draft(content="tea", kind=wrong).to_proto(), "kind"),
        (lambda wrong: Evidence(uri="s:1", kind=wrong, body=b"x").to_proto(), "kind"),
        (lambda wrong: Decision(kind=wrong).to_proto(), "kind"),
        (lambda wrong: Relation(wrong, "b").to_proto(), "kind"),
        (lambda wrong: relate(Node.from_proto(node("a")), wrong, Node.from_proto(node("b"))), "kind"),
        (lambda wrong: RecallFilter(kinds=(wrong,)).to_proto(), "kinds"),
    ],
)
def test_every_value_refuses_what_is_no_name(make: Callable[[Any], object], argument: str):
    with pytest.raises(ValueError, match=f"^{argument} is one of .*, not 'SOMETHING'"):
        make("SOMETHING")


def test_one_name_in_place_of_several_is_refused():
    one: Any = "EPISODIC"
    with pytest.raises(TypeError, match="kinds is a sequence of NodeKind"):
        RecallFilter(kinds=one).to_proto()


async def test_a_semantic_policy_that_is_none_is_refused_with_what_it_should_be(memory: MemoryClient):
    wrong: Any = {"min_similarity": 0.5}
    with pytest.raises(TypeError, match=r"semantic is SemanticPolicy\(.*min_similarity=.*\), not dict"):
        await memory.open_session("assistant", semantic=wrong)


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: Draft(content=LONE).to_proto(), "content"),
        (lambda: Draft(content="tea", labels={"key": LONE}).to_proto(), "labels"),
        (lambda: Draft(content="tea", surroundings=["tea", LONE]).to_proto(), "surroundings"),
        (lambda: Draft(content="tea", author=LONE).to_proto(), "author"),
        (lambda: Decision.manual(note=LONE).to_proto(), "note"),
        (lambda: Evidence.user_statement("s:1", LONE), "body"),
        (lambda: SemanticPolicy(authority_digest=LONE).to_proto(), "authority_digest"),
    ],
)
def test_a_lone_surrogate_is_refused_by_the_name_of_its_field(make: Callable[[], object], field: str):
    with pytest.raises(ValueError, match=rf"^{field}: a lone surrogate at position 5 cannot be sent") as refused:
        make()
    assert type(refused.value) is ValueError


async def test_a_call_refuses_a_lone_surrogate_by_the_name_of_its_field(
    memory: MemoryClient, blocking_memory: BlockingMemoryClient
):
    with pytest.raises(ValueError, match="query: a lone surrogate"):
        await memory.preview(LONE)
    with pytest.raises(ValueError, match="query: a lone surrogate"):
        blocking_memory.preview(LONE)
    with pytest.raises(ValueError, match="node_id: a lone surrogate"):
        await memory.get_node(LONE)
    with pytest.raises(ValueError, match="content: a lone surrogate"):
        await memory.remember(LONE)


async def test_an_explanation_says_what_it_had_to_do_without(service: FakeService, memory: MemoryClient):
    explanation = recall_pb2.RecallExplanation(
        citation=citation(),
        status=node_pb2.NODE_STATUS_ACTIVE,
        mode_used=recall_pb2.RECALL_MODE_LEXICAL,
        vector_state=recall_pb2.VECTOR_STATE_NOT_USED,
        matched_share=0.25,
        degradation={"reason": recall_pb2.DEGRADATION_REASON_INDEX_UNAVAILABLE, "message": "cannot be read"},
    )
    service.will_answer(OPEN, opened())
    service.will_answer(
        "RecallService.ExplainRecall",
        recall_service_pb2.ExplainRecallResponse(explanation=explanation, change_token=token(1)),
    )

    why = await (await memory.open_session("assistant")).explain("prefers-tea", "tea")

    assert why.degradation is not None
    assert (why.degradation.reason, why.degradation.message) == ("INDEX_UNAVAILABLE", "cannot be read")
    assert why.matched_share == 0.25
