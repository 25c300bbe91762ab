"""The checks of isolation find what they are for, in answers that are bad by hand."""

from dataclasses import replace

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from durablememory.v1 import (
    citation_pb2,
    memory_service_pb2,
    repository_service_pb2,
    semantic_pb2,
    semantic_service_pb2,
    session_pb2,
    session_service_pb2,
)
from tests.qualification.checks import isolation
from tests.qualification.checks.isolation import Recalled, Said, shape_of, words_of

DENIED = Said(status="PERMISSION_DENIED", reason="PERMISSION_DENIED", field="namespace.tenant_id", shape="no")
MISSING = Said(status="NOT_FOUND", reason="NODE_NOT_FOUND", shape="no such node ·")
EMPTY = Said(status="OK", shape="[]")


def test_a_call_that_is_let_in_is_found():
    assert isolation.let_in({"GetNode": DENIED}) == []
    assert isolation.let_in({"GetNode": EMPTY, "ListNodes": MISSING, "GetSession": DENIED}) == [
        "GetNode came to OK",
        "ListNodes came to NOT_FOUND NODE_NOT_FOUND",
    ]


@pytest.mark.parametrize(
    "other",
    [
        EMPTY,
        replace(MISSING, status="FAILED_PRECONDITION"),
        replace(MISSING, reason="REVISION_CONFLICT"),
        replace(MISSING, field="citation"),
        replace(MISSING, shape="node · is at revision 3"),
    ],
    ids=["status", "reason", "even the reason", "field", "words"],
)
def test_an_answer_that_tells_what_is_anothers_from_what_is_nowhere_is_found(other):
    assert isolation.told_apart({"GetNode": [MISSING, replace(MISSING, text=b"other bytes")]}) == []
    (problem,) = isolation.told_apart({"GetNode": [other, MISSING]})
    assert problem.startswith("GetNode tells what is another's from what is nowhere")


def test_an_answer_that_nothing_is_compared_with_proves_nothing():
    assert isolation.told_apart({"GetNode": [MISSING]}) == ["GetNode: there is nothing to compare"]


def test_a_text_in_an_answer_is_found():
    secrets = {"the text of a memory": "under the third plant"}
    assert isolation.given_away({"GetNode": MISSING}, secrets) == []
    assert isolation.given_away({"GetNode": replace(MISSING, text=b"...under the third plant...")}, secrets) == [
        "GetNode gives away the text of a memory"
    ]


def test_an_rpc_that_was_forgotten_is_found():
    assert isolation.unasked(["a", "b"], ["b", "a"]) == []
    assert isolation.unasked(["a", "new"], ["a", "old"]) == [
        "new was not tried",
        "old was tried, and is none of the contract",
    ]


def test_what_another_has_moved_is_found():
    before = {"the change token": 3, "the usage": [1]}
    assert isolation.moved(before, dict(before)) == []
    assert isolation.moved(before, {"the change token": 3, "the usage": [2]}) == ["the usage is another one now"]
    assert isolation.moved(before, {"the usage": [1]}) == ["the change token is another one now"]


def recall(**fields) -> Recalled:
    plain = Recalled(
        mode="SEMANTIC",
        during="a load",
        hits=["own-1", "own-2"],
        expected=["own-1", "own-2"],
        searched=2,
        own_least=2,
        own_most=2,
        vectors=2,
    )
    return replace(plain, **fields)


def test_a_recall_that_lacks_what_is_its_own_is_found():
    assert isolation.starved([recall(), recall(hits=["own-2", "own-1", "own-3"])]) == []
    assert isolation.starved([recall(hits=["own-2"])]) == ["SEMANTIC recall during a load lacks ['own-1']"]


def test_a_hit_that_is_anothers_is_found():
    own = {"own-1", "own-2"}
    assert isolation.strange([recall()], own) == []
    assert isolation.strange([recall(hits=["own-1", "big-7"])], own) == [
        "SEMANTIC recall during a load returned big-7, which is another's"
    ]


@pytest.mark.parametrize("fields", [{"searched": 3}, {"searched": 1}, {"vectors": 3}])
def test_what_is_searched_beyond_or_short_of_ones_own_is_found(fields):
    assert isolation.overcounted([recall(), recall(vectors=None), recall(own_most=3, searched=3)]) == []
    assert len(isolation.overcounted([recall(**fields)])) == 1


def test_a_vector_that_was_there_before_is_found():
    assert isolation.paid_by_others({"small": (0, 1)}) == []
    for work in ((1, 0), (0, 0), (1, 1)):
        assert len(isolation.paid_by_others({"small": work})) == 1


def test_partitions_that_are_shared_or_hold_what_is_anothers_are_found():
    keys = {"small": {"dm:{a}:manifest"}, "big": {"dm:{b}:manifest"}}
    records = {"small": ({"s"}, {"s", "t"}), "big": ({"b"}, {"b"})}
    assert isolation.partitions_shared(keys, records) == []
    assert isolation.partitions_shared({**keys, "small": keys["big"]}, records) == [
        "big and small share dm:{b}:manifest"
    ]
    assert isolation.partitions_shared({**keys, "small": set()}, records) == ["small has no key"]
    assert isolation.partitions_shared(keys, {**records, "small": ({"s", "b"}, {"s"})}) == [
        "the partition of small holds node b"
    ]


def test_a_ratio_is_one_of_the_middles():
    assert isolation.ratio([2.0, 4.0, 90.0], [2.0, 1.0, 3.0]) == 2.0


def test_answers_that_differ_in_names_and_times_alone_have_one_shape():
    one = memory_service_pb2.GetMemoryResponse(
        current_citation=citation_pb2.Citation(node_id="abc", node_revision=2, content_digest="0" * 64)
    )
    other = memory_service_pb2.GetMemoryResponse(
        current_citation=citation_pb2.Citation(node_id="xyz", node_revision=2, content_digest="1" * 64)
    )
    assert shape_of(one) == shape_of(other)
    here = session_service_pb2.GetSessionResponse(session=session_pb2.Session(opened_at=Timestamp(seconds=1)))
    there = session_service_pb2.GetSessionResponse(session=session_pb2.Session(opened_at=Timestamp(seconds=2)))
    assert shape_of(here) == shape_of(there)


@pytest.mark.parametrize(
    "other",
    [
        citation_pb2.Citation(node_id="abcd", node_revision=2),
        citation_pb2.Citation(node_id="abc", node_revision=3),
        citation_pb2.Citation(node_id="abc"),
    ],
    ids=["a longer name", "another number", "a missing field"],
)
def test_answers_that_differ_otherwise_have_not(other):
    assert shape_of(citation_pb2.Citation(node_id="abc", node_revision=2)) != shape_of(other)


def test_how_many_there_are_of_something_is_part_of_the_shape():
    def page(count):
        return repository_service_pb2.ListNodesResponse(nodes=[{"id": "a", "labels": {"k": "v"}}] * count)

    assert shape_of(page(1)) == shape_of(page(1))
    assert shape_of(page(1)) != shape_of(page(2))


def test_names_that_the_caller_has_put_in_are_no_news():
    assert words_of("node abc of ab is not there", ["ab", "abc"]) == "node · of · is not there"


def test_how_a_process_is_doing_tells_nothing_of_a_namespace():
    one, other = (
        semantic_service_pb2.GetMaintenanceHealthResponse(health=semantic_pb2.MaintenanceHealth(run_count=count))
        for count in (1, 2)
    )
    assert shape_of(one) == shape_of(other)
    assert shape_of(one) != shape_of(semantic_service_pb2.GetMaintenanceHealthResponse())
