"""The check of registers finds what it is for, in histories that are bad by hand."""

import pytest

from tests.integration.concurrency.register import Read, Write, stale_reads


def write(value: int, began: float, ended: float) -> Write:
    return Write(register="r", value=value, began=began, ended=ended)


def read(values: tuple[int, ...], began: float, ended: float) -> Read:
    return Read(register="r", values=values, began=began, ended=ended)


WRITES = [write(1, 0, 1), write(2, 2, 5)]


@pytest.mark.parametrize(
    "good",
    [
        [read((), -2, -1)],
        [read((), 0, 3), read((1,), 0, 3)],
        [read((1,), 2, 4), read((2,), 2, 4), read((1,), 3, 4)],
        [read((2,), 6, 7)],
    ],
    ids=["nothing yet", "either of two", "either while it is written", "the last"],
)
def test_what_may_be_read_is_no_problem(good):
    assert stale_reads(WRITES, good) == []


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ([read((1,), 6, 7)], "r was read as 1 after 2 had been acknowledged"),
        ([read((), 6, 7)], "r was read as 0 after 2 had been acknowledged"),
        ([read((2,), 1.2, 1.5)], "r was read as 2 when only 1 had been sent"),
        ([read((2,), 2.1, 3), read((1,), 3.5, 4)], "r was read as 1 after it had been read as 2"),
        ([read((1, 2), 2, 4)], "r had the values [1, 2] at once"),
    ],
    ids=["late", "lost", "early", "back", "both"],
)
def test_what_must_not_be_read_is_found(bad, problem):
    assert stale_reads(WRITES, bad) == [problem]
