"""Which servers are believed."""

import pytest

from durable_memory.adapters.postgres.primary import Primary
from durable_memory.domain.errors import DomainError, Reason

PRIMARY = {"in_recovery": False, "timeline": "0000000A"}


def test_a_server_in_recovery_is_refused():
    with pytest.raises(DomainError) as caught:
        Primary(lambda: None).check({"in_recovery": True, "timeline": None})
    assert caught.value.reason is Reason.DEPENDENCY_UNAVAILABLE


def test_a_lower_timeline_than_any_seen_is_refused():
    primary = Primary(lambda: None)
    primary.check(PRIMARY)
    with pytest.raises(DomainError) as caught:
        primary.check({"in_recovery": False, "timeline": "00000009"})
    assert caught.value.reason is Reason.DEPENDENCY_UNAVAILABLE
    primary.check(PRIMARY)


def test_a_promotion_is_noticed_once():
    promotions = []
    primary = Primary(lambda: promotions.append(primary.timeline))
    for timeline in ("00000001", "00000001", "0000000B", "0000000B"):
        primary.check({"in_recovery": False, "timeline": timeline})
    assert promotions == [11]
