"""The list of promises and the tests are equal."""

from itertools import chain
from pathlib import Path

from tests.conformance.listed import names_of_tests
from tests.conformance.promises import PROMISES


def test_every_conformance_test_stands_under_one_promise():
    assert sorted(chain.from_iterable(PROMISES.values())) == sorted(names_of_tests(Path(__file__).parent))
