"""Commands about candidates: candidates, activate, reject."""

from __future__ import annotations

from collections.abc import Sequence

from durable_memory.cli import arguments as given
from durable_memory.cli.connected import Invocation, PartlyRefusedError
from durable_memory.cli.output import Row
from durable_memory_client import Activated, Rejected


async def candidates(
    invocation: Invocation, *, kind: given.FilterKinds = None, label: given.FilterLabels = None
) -> None:
    """List what was proposed and waits for a decision. With --json, one object a line."""
    listing = invocation.memory.list_candidates(
        kinds=kind or (), labels=given.labels(label), include_surroundings=invocation.output.as_json
    )
    if invocation.output.as_json:
        async for node in listing:
            invocation.output.json(node)
        return
    rows = [
        Row(
            reference=given.short(node.citation),
            cells=(invocation.times.show(node.created_at), str(len(node.evidence))),
            text=node.content,
            details=", ".join(evidence.uri for evidence in node.evidence[:3]),
        )
        async for node in listing
    ]
    invocation.output.rows(("proposed", "evidence"), rows, empty=f"No candidates ({invocation.where}).")


async def activate(
    invocation: Invocation,
    names: given.Exacts,
    *,
    decision: given.DecisionOptions,
    request_id: given.RequestId = None,
) -> None:
    """Let candidates into recall.

    Each at exactly the revision that you have read: one that has changed since is refused.
    """
    cited = [await given.exact(invocation.memory, name) for name in names]
    done = await invocation.memory.activate_many(
        cited, decision.decision(), request_id=request_id or invocation.request_id
    )
    _report(invocation, names, done, {"ACTIVATED": "active", "ALREADY_ACTIVE": "active already"})


async def reject(
    invocation: Invocation,
    names: given.Exacts,
    *,
    decision: given.DecisionOptions,
    request_id: given.RequestId = None,
) -> None:
    """Refuse candidates for good.

    An equal proposal is answered with the rejection from then on.
    """
    cited = [await given.exact(invocation.memory, name) for name in names]
    done = await invocation.memory.reject_many(
        cited, decision.decision(), request_id=request_id or invocation.request_id
    )
    _report(invocation, names, done, {"REJECTED": "rejected", "ALREADY_REJECTED": "rejected already"})


def _report(
    invocation: Invocation, names: list[str], results: Sequence[Activated | Rejected], said: dict[str, str]
) -> None:
    """Say what became of each.

    Raises: PartlyRefusedError if anything was refused.
    """
    for result in results:
        if invocation.output.as_json:
            invocation.output.json(result)
        elif result.cited is not None:
            invocation.output.line(f"{said.get(result.outcome, result.outcome)}: {given.short(result.cited)}")
    errors = [(name, result.error) for name, result in zip(names, results, strict=True) if result.error is not None]
    if errors:
        raise PartlyRefusedError(errors)
