"""Makes the calls of conformance cases with the Python client: a case a line in, its outcomes a line out.

clients/conformance/README.md describes both.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from typing import Any

from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message import Message

from clients.python.conformance.helpers import HELPERS
from durable_memory_client import MemoryClient, MemoryServiceError
from durable_memory_client.methods import METHODS, Method

_METHODS = {method.name: method for method in METHODS.values()}


def main() -> None:
    for line in sys.stdin:
        outcomes = asyncio.run(run(json.loads(line)))
        sys.stdout.write(json.dumps({"outcomes": outcomes}, ensure_ascii=False) + "\n")
        sys.stdout.flush()


async def run(case: Mapping[str, Any]) -> list[Any]:
    outcomes: list[Any] = []
    saved: dict[str, Any] = dict(case.get("saved", {}))
    async with MemoryClient(case["address"], case["token"], **case["namespace"]) as memory:
        for step in case["steps"]:
            outcome = await _outcome(memory, step, saved)
            outcomes.append(outcome)
            for name, path in step.get("save", {}).items():
                saved[name] = _at(outcome.get("ok"), path)
    return outcomes


async def _outcome(memory: MemoryClient, step: Mapping[str, Any], saved: Mapping[str, Any]) -> dict[str, Any]:
    if "cancel" not in step:
        return await _settled(memory, step, saved)
    task = asyncio.ensure_future(_settled(memory, step, saved))
    await asyncio.to_thread(sys.stdin.readline)  # the runner says when
    task.cancel()
    try:
        return await task
    except asyncio.CancelledError:
        return {"cancelled": True}


async def _settled(memory: MemoryClient, step: Mapping[str, Any], saved: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return {"ok": await _answer(memory, step, saved)}
    except MemoryServiceError as error:
        return {"error": error_json(error)}


async def _answer(memory: MemoryClient, step: Mapping[str, Any], saved: Mapping[str, Any]) -> Any:
    timeout = step["timeout_ms"] / 1_000 if "timeout_ms" in step else None
    if "helper" in step:
        return await HELPERS[step["helper"]](memory, replaced(step.get("arguments", {}), saved))
    method = _METHODS[step.get("call") or step["stream"]]
    request = _request(method, replaced(step.get("request", {}), saved))
    if "call" in step:
        return _json(await memory.call(request, method.response_type, timeout=timeout))
    messages: list[Any] = []
    async for message in memory.call_stream(request, method.response_type, timeout=timeout):
        messages.append(_json(message))
        if len(messages) == step.get("read"):
            break
    return messages


def error_json(error: MemoryServiceError) -> dict[str, Any]:
    return {
        "code": error.code.name,
        "reason": error.reason,
        "metadata": dict(error.metadata),
        "definite": error.definite,
        "attempts": error.attempts,
        "has_request_id": error.request_id is not None,
    }


def replaced(value: Any, saved: Mapping[str, Any]) -> Any:
    """The value with each `$name` in it replaced by what was saved under that name."""
    if isinstance(value, str) and value.startswith("$"):
        return saved[value[1:]]
    if isinstance(value, Mapping):
        return {key: replaced(member, saved) for key, member in value.items()}
    if isinstance(value, list):
        return [replaced(member, saved) for member in value]
    return value


def _request(method: Method, fields: dict[str, Any]) -> Message:
    request: Message = method.request_type()
    return ParseDict(fields, request)


def _json(message: Message) -> Any:
    return MessageToDict(message, preserving_proto_field_name=True)


def _at(value: Any, path: str) -> Any:
    for part in path.split("."):
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value


if __name__ == "__main__":
    main()
