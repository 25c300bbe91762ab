"""Commands about sessions: what there is, and the two ways in which one changes."""

from __future__ import annotations

from typing import Annotated

import typer

from durable_memory.cli import arguments as given
from durable_memory.cli.connected import Invocation
from durable_memory.cli.output import Row
from durable_memory.cli.own_session import OWN_SESSION
from durable_memory_client import RecallMode, SemanticPolicy, SessionBinding

SessionId = Annotated[str, typer.Argument(metavar="ID", help="The session")]


async def sessions(invocation: Invocation) -> None:
    """List the sessions of the namespace.

    Open and closed, and what they are bound to. With --json, one object a line.
    """
    output = invocation.output
    listing = invocation.memory.list_sessions()
    if output.as_json:
        async for session in listing:
            output.json(session)
        return
    rows = [
        Row(
            reference=session.session_id,
            cells=(
                session.state,
                session.binding.mode,
                _model(session.binding),
                invocation.times.show(session.opened_at),
                session.opened_by,
            ),
            text=f"{session.binding.max_results} results, {session.binding.lexical_profile}",
            details=f"binding {session.binding_version}: {session.binding_digest[:12]}",
        )
        async for session in listing
    ]
    output.rows(
        ("state", "mode", "model", "opened", "by"), rows, text="bound to", empty=f"No sessions ({invocation.where})."
    )


async def rebind(invocation: Invocation, session_id: SessionId) -> None:
    """Bind a session to the model that the server has now.

    The rest of its policy stays. What it recalls by meaning comes from the server's index from then on.
    """
    memory = invocation.memory
    known = await memory.get_session(session_id)
    session = await memory.resume_session(session_id, known.binding_digest)
    was, bound = known.binding, known.binding.semantic_generation
    rebound = await session.rebind(
        # What a repetition of this command expects is what it found at first.
        expected_binding_digest=invocation.kept.setdefault("binding_digest", known.binding_digest),
        request_id=invocation.request_id,
        mode=was.mode,
        max_results=was.max_results,
        min_score=was.min_score,
        min_relative_score=was.min_relative_score,
        related_lookups=was.related_lookups,
        lexical_profile=was.lexical_profile,
        fusion_profile=was.fusion_profile,
        semantic=None
        if bound is None
        else SemanticPolicy(candidate_limit=bound.candidate_limit, min_similarity=bound.min_similarity),
    )
    if invocation.output.as_json:
        invocation.output.json(rebound)
        return
    invocation.output.line(f"bound: {session_id}, {rebound.binding.mode}, {_model(rebound.binding)}")


async def close(invocation: Invocation, session_id: SessionId, *, request_id: given.RequestId = None) -> None:
    """Close a session for ever: calls in it and in its runs are refused from then on.

    What was admitted and used in it stays on record.
    """
    if session_id == OWN_SESSION:
        raise ValueError(f"{OWN_SESSION} is the command line's own: explain and index refresh would have none")
    closed = await invocation.memory.close_session(session_id, request_id=request_id or invocation.request_id)
    if invocation.output.as_json:
        invocation.output.json(closed)
        return
    invocation.output.line(f"closed: {session_id}")


def _model(binding: SessionBinding) -> str:
    if binding.mode is RecallMode.LEXICAL or binding.semantic_generation is None:
        return "words only"
    return binding.semantic_generation.model
