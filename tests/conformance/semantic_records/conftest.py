"""The records of an open store of each kind, and a generation that no other test uses."""

import pytest

from durable_memory.domain.namespace import Namespace
from durable_memory.domain.semantic.generation import Generation, Partition
from durable_memory.ports.semantic_records import SemanticRecords
from durable_memory.ports.store import Store
from tests.conformance.backends import Backend
from tests.conformance.semantic_records.backends import RECORDS
from tests.conformance.semantic_records.samples import generation


@pytest.fixture
def records(backend: Backend, store: Store) -> SemanticRecords:
    return RECORDS[backend.name](store)


@pytest.fixture(name="generation")
def generation_of_this_test(unique: str) -> Generation:
    return generation(unique)


@pytest.fixture
def partition(namespace: Namespace, generation: Generation) -> Partition:
    return Partition(namespace, generation.authority_digest)


@pytest.fixture
def other_generation(unique: str) -> Generation:
    return generation(f"other {unique}")
