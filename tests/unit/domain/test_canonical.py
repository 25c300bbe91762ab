"""Digests: one value, one digest; other values, other digests."""

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from durable_memory.domain.canonical import (
    EPOCH,
    canonical_json,
    digest_bytes,
    digest_json,
    from_micros,
    parse_time_text,
    time_text,
    to_micros,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
TIMES = st.datetimes(timezones=st.just(UTC))


@given(JSON)
def test_canonical_json_says_the_same_in_any_order_of_keys(value):
    def turned(item):
        if isinstance(item, dict):
            return {key: turned(inner) for key, inner in reversed(item.items())}
        return [turned(inner) for inner in item] if isinstance(item, list) else item

    assert canonical_json(turned(value)) == canonical_json(value)
    assert json.loads(canonical_json(value)) == value


@given(st.lists(st.binary(max_size=4), max_size=4), st.lists(st.binary(max_size=4), max_size=4))
def test_no_two_lists_of_parts_share_a_digest(first, second):
    assert (digest_bytes("d", *first) == digest_bytes("d", *second)) == (first == second)


def test_the_same_bytes_in_another_role_have_another_digest():
    assert digest_json("a/v1", {"x": 1}) != digest_json("b/v1", {"x": 1})
    assert digest_bytes("a", b"bc") != digest_bytes("ab", b"c")


def test_digests_never_change():
    """Stored citations and chains hold these: another value here means that old ones no longer verify."""
    assert digest_json("test/v1", {"b": [1, 0.5, None], "a": "naïve 记忆"}) == (
        "457c4a543af77f3ebbf30968d5ca9236ac7b744f9eab897057daf0c1a3895365"
    )


@given(TIMES)
def test_times_survive_as_microseconds_and_as_text(time):
    assert from_micros(to_micros(time)) == time
    assert parse_time_text(time_text(time)) == time
    assert len(time_text(time)) == 27


@given(TIMES, TIMES)
def test_texts_of_times_sort_as_the_times_do(first, second):
    assert (time_text(first) < time_text(second)) == (first < second)


def test_microseconds_are_exact_far_from_the_epoch():
    assert to_micros(datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)) == 253402300799999999
    assert to_micros(datetime(1, 1, 1, tzinfo=UTC)) == -62135596800000000
    assert to_micros(EPOCH) == 0


def test_a_time_in_another_zone_is_the_same_moment():
    east = timezone(timedelta(hours=9))
    assert time_text(datetime(2030, 1, 1, 9, 0, tzinfo=east)) == "2030-01-01T00:00:00.000000Z"


@pytest.mark.parametrize("number", [2**53, -(2**53), float("nan"), float("inf")])
def test_numbers_that_json_cannot_hold_exactly_are_refused(number):
    with pytest.raises(ValueError):
        canonical_json(number)
