"""Bounds that contradict each other are refused where they are written."""

from dataclasses import replace
from typing import Any

import pytest

from durable_memory.adapters.postgres import PostgresSettings


def test_a_bound_is_positive():
    with pytest.raises(ValueError, match=r"^connect_timeout_seconds is not positive$"):
        PostgresSettings(connect_timeout_seconds=0)


@pytest.mark.parametrize("longer", ["silence_timeout_seconds", "head_timeout_seconds"])
def test_a_connection_answers_for_itself_before_the_driver_ends_it(longer: str):
    one_second: dict[str, Any] = {longer: 1.0}
    replace(PostgresSettings(rollback_timeout_seconds=0.9), **one_second)
    with pytest.raises(ValueError, match=rf"^rollback_timeout_seconds is not shorter than {longer}$"):
        replace(PostgresSettings(rollback_timeout_seconds=1.0), **one_second)
