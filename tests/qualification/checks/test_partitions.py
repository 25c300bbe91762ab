"""The checks of what lies in partitions find what they are for."""

import json
import struct
from dataclasses import replace

import pytest

from durable_memory.domain.namespace import Namespace
from durable_memory.domain.semantic.generation import Partition
from durable_memory.domain.semantic.segment import FloatWidth, Segment, VectorRecord
from tests.qualification.checks.partitions import (
    Belongings,
    UnreadableError,
    decode,
    problems,
    vectors_of,
)
from tests.qualification.observers.receipts import namespace_key, partition_name
from tests.qualification.observers.stored_keys import StoredKey

AUTHORITY = "b" * 64
OWN = Partition(Namespace("acme", "user-1", "own"), AUTHORITY)
OTHER = Partition(Namespace("acme", "user-1", "other"), AUTHORITY)
SHORT = OWN.name[:8]


def vector(number: int) -> bytes:
    return struct.pack("<2f", 1.0, float(number))


def segment(*numbers: int) -> bytes:
    records = tuple(VectorRecord(f"node-{number}", 1, f"{number:064x}") for number in numbers)
    return Segment(
        dimension=2, width=FloatWidth.FLOAT32, records=records, vectors=b"".join(map(vector, numbers))
    ).encode()


def belongings(partition: Partition, *numbers: int) -> Belongings:
    return Belongings(
        partition.namespace.key,
        frozenset(f"node-{number}" for number in numbers),
        {f"{number:064x}": vector(number) for number in numbers},
    )


OWNERS = (belongings(OWN, 1, 2), belongings(OTHER, 3))
AUTHORITIES = {owner.namespace_key: [AUTHORITY] for owner in OWNERS}


def stored(*numbers: int, listed: bool = True, ttl_ms: int = -1) -> list[StoredKey]:
    data = segment(*numbers)
    rows = [["s1", data[-32:].hex(), len(data), len(numbers), ""]] if listed else []
    return [
        StoredKey(f"dm:{{{OWN.name}}}:manifest", -1, json.dumps(rows).encode()),
        StoredKey(f"dm:{{{OWN.name}}}:lease", 2000),
        StoredKey(f"dm:{{{OWN.name}}}:seg:s1", ttl_ms, data),
    ]


def found(keys: list[StoredKey]) -> list[str]:
    return problems(keys, OWNERS, AUTHORITIES)


def test_names_by_the_definition_are_those_of_the_service():
    assert namespace_key("acme", "user-1", "own") == OWN.namespace.key
    assert partition_name(OWN.namespace.key, AUTHORITY) == OWN.name


def test_what_belongs_where_it_lies_has_no_problems():
    assert found(stored(1, 2)) == []
    assert found(stored(1, listed=False, ttl_ms=500)) == []


def test_vectors_that_count_are_those_of_listed_segments_without_removed_records():
    keys = stored(1, 2)
    assert vectors_of(keys) == {OWN.name: {f"{number:064x}": vector(number) for number in (1, 2)}}
    rows = json.loads(keys[0].data)
    rows[0][4] = "01"
    assert vectors_of([replace(keys[0], data=json.dumps(rows).encode()), keys[2]]) == {
        OWN.name: {f"{2:064x}": vector(2)}
    }
    assert vectors_of(stored(1, listed=False)) == {OWN.name: {}}
    with pytest.raises(UnreadableError):
        vectors_of(keys[:2])


def test_a_record_of_another_namespace_is_found():
    assert found(stored(1, 3)) == [f"{SHORT} segment s1: node node-3 is of another namespace"]


def test_a_text_of_another_namespace_is_found_although_the_node_id_is_the_same():
    keys = stored(1, 2)
    owners = (replace(OWNERS[0], vectors={f"{1:064x}": vector(1)}), OWNERS[1])
    assert problems(keys, owners, AUTHORITIES) == [
        f"{SHORT} segment s1: node node-2 has a text that its namespace never had"
    ]


def test_another_vector_than_the_cached_one_is_found():
    owners = (replace(OWNERS[0], vectors={f"{1:064x}": vector(9)}), OWNERS[1])
    assert problems(stored(1), owners, AUTHORITIES) == [
        f"{SHORT} segment s1: node node-1 has another vector than its text"
    ]


def test_a_partition_of_nobody_is_found():
    assert problems(stored(1)[1:2], OWNERS[1:], AUTHORITIES) == [
        f"dm:{{{OWN.name}}}:lease: no namespace has this partition"
    ]


def test_a_key_of_no_known_form_is_found():
    assert found([StoredKey("dm:leftover", -1)]) == ["dm:leftover: no key of an index has such a name"]


def test_a_segment_that_nobody_lists_and_that_stays_is_found():
    assert found(stored(1, listed=False)) == [f"{SHORT}: segment s1 is listed nowhere, and stays for ever"]


def test_a_listed_segment_that_goes_away_or_is_gone_is_found():
    assert found(stored(1, ttl_ms=500)) == [f"{SHORT}: segment s1 is listed, and goes away in 500 ms"]
    assert found(stored(1)[:2]) == [f"{SHORT}: segment s1 is listed, and gone"]


def test_a_segment_in_the_place_of_another_is_found():
    keys = stored(1)
    keys[2] = replace(keys[2], data=segment(2))
    assert found(keys) == [f"{SHORT}: segment s1 is not the one that is listed"]


def test_a_damaged_segment_is_found():
    keys = stored(1)
    damaged = bytes([keys[2].data[0] ^ 1]) + keys[2].data[1:]
    keys[2] = replace(keys[2], data=damaged)
    assert found(keys) == [f"{SHORT} segment s1: it is not what its checksum says"]


def test_a_segment_is_read_by_its_layout():
    assert [(one.node_id, one.vector) for one in decode(segment(1, 2))] == [
        ("node-1", vector(1)),
        ("node-2", vector(2)),
    ]
    assert decode(segment()) == []
    with pytest.raises(UnreadableError):
        decode(b"")
