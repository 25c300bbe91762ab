"""Bindings: compared field by field, digested, and read back only where every field is understood."""

import json
from dataclasses import fields, replace
from typing import Any

import pytest

from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.lexical.profiles import LEXICAL_PROFILES
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.session import (
    Context,
    RecallMode,
    SemanticGeneration,
    SessionBinding,
    SessionState,
    check_digest,
    check_no_drift,
    decode_binding,
)
from tests.conformance.samples import policy, session

GENERATION = SemanticGeneration(
    authority_digest="d" * 64,
    provider="provider",
    model="model",
    model_revision="1",
    dimension=384,
    normalization="l2",
    metric="cosine",
    candidate_limit=100,
    min_similarity=0.25,
)
BINDING = SessionBinding(
    namespace=Namespace("acme", "user-1", "assistant"), policy=replace(policy(), semantic=GENERATION)
)
OTHER_POLICIES: dict[str, dict[str, Any]] = {
    "mode": {"mode": RecallMode.HYBRID},
    "max_results": {"max_results": 6},
    "min_score": {"min_score": 0.5},
    "min_relative_score": {"min_relative_score": 0.2},
    "related_lookups": {"related_lookups": 1},
    "lexical_profile": {"lexical_profile": next(iter(set(LEXICAL_PROFILES) - {policy().lexical_profile}))},
    "fusion_profile": {"fusion_profile": "a3s.code.memory.hybrid.rrf-k60.v1"},
}


def drift(call, *args) -> list[str]:
    with pytest.raises(DomainError) as refusal:
        call(*args)
    assert refusal.value.reason is Reason.BINDING_DRIFT
    return refusal.value.metadata["fields"].split(",")


@pytest.mark.parametrize("binding", [BINDING, replace(BINDING, policy=policy())], ids=["semantic", "lexical"])
def test_a_binding_survives_as_json(binding):
    stored = json.loads(json.dumps(binding.canonical()))
    assert decode_binding(stored) == binding
    assert decode_binding(stored).digest() == binding.digest()


@pytest.mark.parametrize("name", OTHER_POLICIES)
def test_every_field_of_a_policy_drifts_under_its_name(name):
    other = replace(BINDING, policy=replace(BINDING.policy, **OTHER_POLICIES[name]))
    assert drift(check_no_drift, BINDING, other) == [name]
    assert drift(check_digest, BINDING, other.digest()) == ["digest"]


def test_every_field_of_a_policy_is_covered():
    assert {item.name for item in fields(BINDING.policy)} == {*OTHER_POLICIES, "semantic"}


@pytest.mark.parametrize("name", [item.name for item in fields(SemanticGeneration)])
def test_every_field_of_a_generation_drifts_under_its_name(name):
    value = getattr(GENERATION, name)
    change: dict[str, Any] = {name: f"{value}x" if isinstance(value, str) else value + 1}
    other = replace(GENERATION, **change)
    changed = replace(BINDING, policy=replace(BINDING.policy, semantic=other))
    assert drift(check_no_drift, BINDING, changed) == [f"semantic_generation.{name}"]


@pytest.mark.parametrize("name", ["tenant_id", "principal_id", "scope_id"])
def test_every_part_of_the_namespace_drifts_under_its_name(name):
    other = replace(BINDING, namespace=replace(BINDING.namespace, **{name: "other"}))
    assert drift(check_no_drift, BINDING, other) == [f"namespace.{name}"]


def test_several_fields_that_drift_are_all_named():
    other = replace(BINDING, policy=replace(BINDING.policy, max_results=6, min_score=0.5))
    assert drift(check_no_drift, BINDING, other) == ["max_results", "min_score"]


def test_a_binding_does_not_drift_from_itself():
    check_no_drift(BINDING, replace(BINDING))
    check_digest(BINDING, replace(BINDING).digest())


def test_losing_the_semantic_generation_is_drift():
    lexical = replace(BINDING, policy=replace(BINDING.policy, semantic=None))
    assert drift(check_no_drift, BINDING, lexical)
    assert drift(check_no_drift, lexical, BINDING)


@pytest.mark.parametrize(
    "change",
    [
        {"schema_version": 2},
        {"a_new_field": 1},
        {"mode": "A_NEW_MODE"},
        {"fusion_profile": "a.new.profile"},
        {"namespace": {"tenant_id": "t", "principal_id": "p", "scope_id": "s", "region": "r"}},
        {"semantic_generation": {**BINDING.canonical()["semantic_generation"], "quantization": "int8"}},  # type: ignore[dict-item]
        {"max_results": None},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_binding_of_another_version_is_never_taken_for_one_of_ones_own(change):
    assert drift(decode_binding, {**BINDING.canonical(), **change})


@pytest.mark.parametrize("name", sorted(BINDING.canonical()))
def test_a_binding_that_lacks_a_field_is_refused(name):
    stored = {key: value for key, value in BINDING.canonical().items() if key != name}
    assert drift(decode_binding, stored)


@pytest.mark.parametrize(
    "values",
    [
        {"max_results": 0},
        {"max_results": 101},
        {"min_score": 1.5},
        {"min_relative_score": float("nan")},
        {"related_lookups": -1},
        {"related_lookups": 65},
        {"fusion_profile": "unknown"},
    ],
)
def test_policies_out_of_bounds_are_refused(values):
    with pytest.raises(DomainError) as refusal:
        replace(policy(), **values)
    assert refusal.value.reason is Reason.INVALID_FIELD
    assert refusal.value.metadata["field"] == f"policy.{next(iter(values))}"


def test_a_closed_session_refuses():
    opened = session(BINDING.namespace)
    opened.require_open()
    with pytest.raises(DomainError) as refusal:
        replace(opened, state=SessionState.CLOSED).require_open()
    assert refusal.value.reason is Reason.SESSION_CLOSED


def test_context_ids_follow_from_their_parts_and_nothing_else():
    first = Context.of("s", "r", "1", 0)
    assert first == Context.of("s", "r", "1", 0)
    assert first.next() == Context.of("s", "r", "1", 1)
    others = [Context.of(*parts) for parts in (("t", "r", "1", 0), ("s", "q", "1", 0), ("s", "r", "2", 0))]
    alike = [Context.of("s", "r1", "", 0), Context.of("sr", "", "1", 0), first.next()]
    assert len({context.context_id for context in [first, *others, *alike]}) == 7
