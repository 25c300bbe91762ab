"""How much there is of the two tenants, however long a run is."""

import pytest

from tests.qualification.scenarios.isolation import _count_of_small
from tests.qualification.scenarios.isolation_skew import MOST_HITS


@pytest.mark.parametrize("minutes", [1, 10, 60, 63, 600])
def test_the_small_tenant_has_some_memories_and_recalls_all_of_them_at_once(minutes: int):
    count = _count_of_small(0.8 * 60 * minutes)
    assert count >= 5
    assert count + 1 <= MOST_HITS, "one is remembered while the big tenant's index is built"
