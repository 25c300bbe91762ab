"""What of the faults can be tested with nothing to break: which chunks they strike, and that all have names."""

from collections import Counter

from tests.processes.proxy import Fate, Way
from tests.qualification.faults.postgres import NextCommits
from tests.qualification.faults.registry import ALL, POSTGRES, PROCESSES, REDIS, WIRE
from tests.qualification.faults.wire import PLACES, every_bytes


def test_every_fault_has_a_name_of_its_own():
    assert [name for name, count in Counter(fault.name for fault in ALL).items() if count > 1] == []


def test_every_kind_of_fault_is_in_the_list_of_all():
    assert list(ALL) == [*PROCESSES, *POSTGRES, *REDIS, *WIRE]


def test_every_place_has_every_fault_of_the_wire():
    assert {fault.name for fault in WIRE} == {
        f"{what} on the {place.name}"
        for what in ("latency", "black hole", "reset", "cut after some bytes")
        for place in PLACES
    }


def test_a_connection_ends_with_the_chunk_that_completes_the_bytes_and_counting_begins_again():
    rule = every_bytes(Way.TO_CLIENT, 10)
    assert [rule(Way.TO_CLIENT, bytes(size)) for size in (4, 5, 1, 9, 3)] == [
        *(Fate.PASS, Fate.PASS, Fate.CUT_AFTER),
        *(Fate.PASS, Fate.CUT_AFTER),
    ]


def test_bytes_of_the_other_way_do_not_count():
    rule = every_bytes(Way.TO_CLIENT, 10)
    assert rule(Way.TO_SERVER, bytes(100)) is Fate.PASS
    assert rule(Way.TO_CLIENT, bytes(9)) is Fate.PASS


def test_so_many_commits_are_struck_and_nothing_else():
    commits = NextCommits(Fate.CUT_BEFORE, 2)
    assert commits.rule(Way.TO_SERVER, b"Q\x00\x00\x00\x0aBEGIN;\x00") is Fate.PASS
    assert commits.rule(Way.TO_CLIENT, b"C\x00\x00\x00\x0bCOMMIT\x00") is Fate.PASS
    assert commits.rule(Way.TO_SERVER, b"Q\x00\x00\x00\x0bCOMMIT\x00") is Fate.CUT_BEFORE
    assert not commits.struck.is_set()
    assert commits.rule(Way.TO_SERVER, b"Q\x00\x00\x00\x0bCOMMIT\x00") is Fate.CUT_BEFORE
    assert commits.struck.is_set()
    assert commits.rule(Way.TO_SERVER, b"Q\x00\x00\x00\x0bCOMMIT\x00") is Fate.PASS
