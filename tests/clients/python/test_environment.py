"""Which variables are refused, and how, is the same in every language: clients/conformance/environment.json."""

import json
from pathlib import Path
from typing import Any

import pytest

from durable_memory_client import MemoryClient, Namespace
from durable_memory_client.connection import resolve_connection, resolve_namespace
from durable_memory_client.sync import MemoryClient as BlockingMemoryClient

_CASES = json.loads((Path(__file__).parents[3] / "clients/conformance/environment.json").read_text("utf-8"))


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case["name"])
@pytest.mark.parametrize("client", [MemoryClient, BlockingMemoryClient])
def test_variables(client: type, case: dict[str, Any], monkeypatch: pytest.MonkeyPatch):
    for name, value in case["set"].items():
        monkeypatch.setenv(name, value)
    said = None
    try:
        client()
    except ValueError as error:
        said = str(error)
    assert said == case["refused"]


def test_a_program_that_states_everything_is_not_told_of_variables(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DURABLE_MEMORY_TENNANT", "acme")
    assert resolve_connection("127.0.0.1:1", "token", None, ()).token == "token"
    assert resolve_namespace("acme", "user-1", "project-a") == Namespace("acme", "user-1", "project-a")


@pytest.mark.parametrize("left_open", ["address", "token", "tenant", "principal", "scope"])
def test_a_single_setting_that_is_left_to_the_environment_is_enough_to_be_told(
    left_open: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("DURABLE_MEMORY_TENNANT", "acme")
    stated: dict[str, Any] = {
        "address": "127.0.0.1:1",
        "token": "t",
        "tenant": "acme",
        "principal": "user-1",
        "scope": "project-a",
    }
    MemoryClient(**stated)
    with pytest.raises(ValueError, match="DURABLE_MEMORY_TENNANT"):
        MemoryClient(**{**stated, left_open: ""})
