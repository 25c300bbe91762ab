"""A fresh namespace in memory."""

import pytest

from tests.unit.domain.stages import Stage


@pytest.fixture
def stage() -> Stage:
    return Stage()
