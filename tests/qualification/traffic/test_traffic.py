"""Each namespace is judged, whatever becomes of the others."""

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.qualification.recorder.history import History
from tests.qualification.report.results import Finding
from tests.qualification.report.timeline import Timeline
from tests.qualification.traffic.judgement import Kept
from tests.qualification.traffic.traffic import Traffic, stop_and_check

KEPT = "acknowledged writes are kept"


class _Tenancy:
    """A namespace of which this is wrong, or which cannot be read; `unexpected` is what a caller has ended with."""

    callers = ()

    def __init__(self, *wrong: str, unreadable: bool = False, unexpected: Exception | None = None) -> None:
        self.history = History()
        self.did: list[str] = []
        self._wrong = wrong
        self._unreadable = unreadable
        self._unexpected = unexpected

    async def stop(self) -> None:
        if self._unexpected is not None:
            raise self._unexpected
        self.did.append("stop")

    async def finish(self) -> None:
        self.did.append("finish")

    async def settle(self, timeout: float) -> None:
        self.did.append("settle")

    async def repeat(self, rng: Any, most: int, *, strict: bool) -> None:
        self.did.append("repeat")

    async def findings(self, restarts: Any) -> tuple[list[Finding], Kept]:
        if self._unreadable:
            raise ConnectionError("unreadable")
        kept = Kept(changes=(), watched=(), nodes=(), usage=())
        return [Finding(check=KEPT, looked_at=1, problems=list(self._wrong))], kept


async def judged(*tenancies: _Tenancy) -> tuple[dict[str, list[str]], Exception | None]:
    """What is found, and what is raised in the end."""
    traffic = Traffic(cast(Any, SimpleNamespace(canary="", timeline=Timeline())), [], seed=1)
    traffic.tenancies = [cast(Any, one) for one in tenancies]
    found: dict[str, list[str]] = {}

    def finding(check: str, looked_at: int, problems: Iterable[str]) -> None:
        found[check] = list(problems)

    try:
        await stop_and_check(traffic, finding)
    except ConnectionError as error:
        return found, error
    finally:
        assert traffic.operations.attempts == {}
    return found, None


@pytest.mark.parametrize("place", [0, 1])
async def test_a_namespace_that_cannot_be_read_keeps_no_other_from_being_judged(place: int):
    tenancies = [_Tenancy("r is not there")]
    tenancies.insert(place, _Tenancy(unreadable=True))
    found, error = await judged(*tenancies)
    assert found[KEPT] == ["r is not there"]
    assert str(error) == "unreadable"


async def test_what_a_caller_did_not_expect_is_raised_when_all_that_it_knows_is_judged():
    one, other = _Tenancy("r is not there", unexpected=ConnectionError("corrupted")), _Tenancy()
    found, error = await judged(one, other)
    assert found[KEPT] == ["r is not there"]
    assert str(error) == "corrupted"
    assert one.did == ["finish", "settle", "repeat"]
    assert other.did == ["stop", "finish", "settle", "repeat"]


async def test_of_all_that_fails_the_first_is_raised():
    _, error = await judged(_Tenancy(unexpected=ConnectionError("corrupted")), _Tenancy(unreadable=True))
    assert str(error) == "corrupted"
