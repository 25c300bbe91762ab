"""Times as people type and read them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from durable_memory.adapters.runtime import ManualClock
from durable_memory.cli.times import Times, age

_NOW = datetime(2030, 1, 31, 12, 0, tzinfo=UTC)
_EAST = timezone(timedelta(hours=5, minutes=30))


@pytest.fixture
def times() -> Times:
    return Times(ManualClock(_NOW), _EAST)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("30m", _NOW - timedelta(minutes=30)),
        ("12H", _NOW - timedelta(hours=12)),
        ("7 d", _NOW - timedelta(days=7)),
        ("2w", _NOW - timedelta(days=14)),
        ("2030-01-30", datetime(2030, 1, 29, 18, 30, tzinfo=UTC)),
        ("2030-01-30T05:30", datetime(2030, 1, 30, 0, 0, tzinfo=UTC)),
        ("2030-01-30T05:30+01:00", datetime(2030, 1, 30, 4, 30, tzinfo=UTC)),
        ("2030-01-30T05:30Z", datetime(2030, 1, 30, 5, 30, tzinfo=UTC)),
    ],
)
def test_a_time_without_an_offset_is_meant_in_the_zone_that_times_are_shown_in(
    times: Times, typed: str, meant: datetime
):
    assert times.given("--since", typed) == meant


@pytest.mark.parametrize("typed", ["", "someday", "7y", "-1d", "2030-13-01"])
def test_what_is_no_time_is_refused_by_the_name_of_its_option(times: Times, typed: str):
    with pytest.raises(ValueError, match="--since"):
        times.given("--since", typed)


@pytest.mark.parametrize(
    ("zone", "shown"),
    [
        (_EAST, "2030-01-31 17:30 +05:30"),
        (timezone(timedelta(hours=-3)), "2030-01-31 09:00 -03:00"),
        (UTC, "2030-01-31 12:00 UTC"),
    ],
)
def test_a_time_is_shown_with_its_offset(zone: timezone, shown: str):
    assert Times(ManualClock(_NOW), zone).show(_NOW) == shown


@pytest.mark.parametrize(
    ("duration", "words"),
    [
        (timedelta(seconds=59), "just now"),
        (timedelta(minutes=1), "1 minute ago"),
        (timedelta(hours=23), "23 hours ago"),
        (timedelta(days=2), "2 days ago"),
        (timedelta(days=800), "2 years ago"),
    ],
)
def test_an_age_is_told_in_the_largest_unit_that_fits(duration: timedelta, words: str):
    assert age(duration) == words
