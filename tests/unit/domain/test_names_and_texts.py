"""What may be a name, a text, a number or a time; and namespaces, which are made of names."""

import unicodedata
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.state import derived_history_id
from durable_memory.domain.text import check_name, check_text, check_time, check_unit_interval

NAMES = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=20).filter(str.strip)


def refusal(call, *args, **kwargs) -> DomainError:
    with pytest.raises(DomainError) as caught:
        call(*args, **kwargs)
    return caught.value


@given(NAMES)
def test_a_name_is_kept_byte_for_byte(name):
    assert check_name("f", name) == name


@pytest.mark.parametrize("name", ["", " ", "\u3000", "a\0b", "\n", "tab\t", "\x7f", "\x85", "a\ud800"])
def test_names_that_cannot_be_told_apart_or_printed_are_refused(name):
    error = refusal(check_name, "node_id", name)
    assert (error.reason, error.metadata["field"]) == (Reason.INVALID_FIELD, "node_id")


def test_names_are_bounded_in_bytes_of_utf_8():
    assert check_name("f", "é" * 128) == "é" * 128
    error = refusal(check_name, "f", "é" * 128 + "a")
    assert error.reason is Reason.LIMIT_EXCEEDED
    assert error.metadata == {"field": "f", "limit": "256", "actual": "257", "unit": "bytes"}


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30).filter(str.strip))
def test_a_text_is_kept_in_its_composed_form(text):
    kept = check_text("f", text, 10_000)
    assert kept == unicodedata.normalize("NFC", text)
    assert check_text("f", kept, 10_000) == kept


@pytest.mark.parametrize("text", ["", " \n\t", "a\0", "\ud800", "a\udfffb"])
def test_blank_and_broken_texts_are_refused(text):
    assert refusal(check_text, "content", text, 100).reason is Reason.INVALID_FIELD


def test_a_text_may_be_blank_where_that_is_said():
    assert check_text("note", "", 10, blank_allowed=True) == ""


@pytest.mark.parametrize(("text", "size"), [("a" * 65_537, 65_537), ("記" * 21_846, 65_538)])
def test_texts_are_bounded_in_bytes_of_utf_8(text, size):
    error = refusal(check_text, "content", text, 65_536)
    assert (error.reason, error.metadata["actual"]) == (Reason.LIMIT_EXCEEDED, str(size))
    assert check_text("content", text[:21_845], 65_536)


def test_a_text_that_grows_over_its_bound_when_composed_is_refused():
    text = "\u0958" * 3  # composition excluded: NFC writes it as two characters
    assert refusal(check_text, "f", text, 9).reason is Reason.LIMIT_EXCEEDED


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf"), -0.01, 1.01])
def test_annotations_are_finite_and_from_0_to_1(number):
    assert refusal(check_unit_interval, "confidence", number).reason is Reason.INVALID_FIELD


def test_minus_zero_is_zero():
    assert str(check_unit_interval("f", -0.0)) == "0.0"


def test_times_need_a_zone_and_become_utc():
    assert refusal(check_time, "f", datetime(2030, 1, 1)).reason is Reason.INVALID_FIELD  # noqa: DTZ001
    there = datetime(2030, 1, 1, 9, tzinfo=timezone(timedelta(hours=9)))
    assert check_time("f", there).tzinfo is UTC
    assert check_time("f", there) == there


@given(st.tuples(NAMES, NAMES, NAMES), st.tuples(NAMES, NAMES, NAMES))
def test_namespaces_share_a_key_only_if_they_are_equal(first, second):
    assert (Namespace(*first).key == Namespace(*second).key) == (first == second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("a:b", "c", "s"), ("a", "b:c", "s")),
        (("acme", "u", "s"), ("acme-corp", "u", "s")),
        (("A", "u", "s"), ("a", "u", "s")),
        (("x", "u", "s"), ("x,y", "u", "s")),
        (("t", "ab", "c"), ("t", "a", "bc")),
        (("t", "u", "\u00e9"), ("t", "u", "e\u0301")),
    ],
)
def test_namespaces_that_look_alike_are_two(first, second):
    assert Namespace(*first).key != Namespace(*second).key
    assert derived_history_id("store", Namespace(*first)) != derived_history_id("store", Namespace(*second))


@pytest.mark.parametrize("position", range(3))
def test_each_part_of_a_namespace_is_checked_as_a_name(position):
    parts = ["t", "p", "s"]
    parts[position] = "bad\0"
    error = refusal(Namespace, *parts)
    assert error.metadata["field"] == ["namespace.tenant_id", "namespace.principal_id", "namespace.scope_id"][position]


def test_a_history_id_depends_on_the_store_and_never_changes():
    namespace = Namespace("acme", "user-1", "assistant")
    assert derived_history_id("a", namespace) == derived_history_id("a", namespace)
    assert derived_history_id("a", namespace) != derived_history_id("b", namespace)
    assert namespace.label == namespace.key.hex()[:16]
