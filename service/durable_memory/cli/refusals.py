"""What went wrong, in words, and what to do next; and the exit code that says the same to a program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from durable_memory_client import MemoryServiceError, MemoryUnavailableError

REFUSED: Final = 1
USAGE: Final = 2
UNAVAILABLE: Final = 3

Metadata = Mapping[str, str]


def exit_code(error: MemoryServiceError) -> int:
    """3 when the service cannot answer now, else 1."""
    return UNAVAILABLE if isinstance(error, MemoryUnavailableError) else REFUSED


def advice(error: MemoryServiceError, *, address: str) -> str:
    """What to do about it; empty where the message says all there is to say."""
    if error.request_id is None or error.definite or error.reason == "DATA_CORRUPTED":
        return _next_step(error, address)
    unknown = f"Should it have happened all the same, the same command with --request-id {error.request_id} says so."
    return f"{_next_step(error, address)} {unknown}".strip()


def _next_step(error: MemoryServiceError, address: str) -> str:
    known = _ADVICE.get(error.reason or "")
    if known is not None:
        return known(error.metadata)
    if error.reason is None and isinstance(error, MemoryUnavailableError):
        return (
            f"Start a server there (`durable-memory serve --address {address}`), or leave the address out (--address, "
            "DURABLE_MEMORY_ADDRESS) to work on the local data file."
        )
    if isinstance(error, MemoryUnavailableError):
        return "Try again in a moment."
    return ""


def _revision_conflict(metadata: Metadata) -> str:
    node = metadata.get("node_id")
    if node is None:
        return "Read the namespace again, then decide again; an import needs a namespace that nobody has written to."
    actual = metadata.get("actual", "")
    return f"Somebody changed it. Read it with `durable-memory show {node}`, then repeat with {node}@{actual}."


def _revision_not_found(metadata: Metadata) -> str:
    node = metadata.get("node_id")
    return f"See what there is with `durable-memory list` or `durable-memory show {node} --history`." if node else ""


def _invalid_field(metadata: Metadata) -> str:
    part = metadata.get("field", "").removeprefix("namespace.").removesuffix("_id")
    return f"Say which one: --{part}." if part in ("tenant", "principal", "scope") else ""


def _permission_denied(metadata: Metadata) -> str:
    if role := metadata.get("required_role"):
        return f"Use a credential that has the role {role}."
    return "Use a credential for this namespace, or name another one: --tenant, --principal, --scope."


def _invalid_transition(metadata: Metadata) -> str:
    status = metadata.get("status") or metadata.get("from", "")
    return {
        "ARCHIVED": "An archived memory comes back with `durable-memory reactivate`.",
        "CONFLICTED": "A memory in conflict is decided with `durable-memory reactivate`.",
        "CANDIDATE": "A candidate is decided with `durable-memory activate` or `durable-memory reject`.",
        "ACTIVE": "An active memory is changed with `revise`, `supersede` or `retire`.",
        "SUPERSEDED": "A superseded memory is final; `durable-memory show` names the one that replaced it.",
        "TOMBSTONED": "A rejected or deleted memory is final; remember or propose it as a new one.",
    }.get(status, "")


def _node_frozen(metadata: Metadata) -> str:
    return _invalid_transition({"status": metadata.get("status", "")})


def _semantic_unavailable(metadata: Metadata) -> str:
    return {
        "SEMANTIC_NOT_CONFIGURED": "Recall goes on by words. The operator of the server can give it what it lacks: an "
        "embedding provider, or a Redis URL for the vectors of a PostgreSQL store. A session from before it had one is "
        "moved over with `durable-memory sessions rebind ID`.",
        "GENERATION_NOT_SERVED": "The server has another model now: `durable-memory sessions rebind ID` moves a "
        "session over; or leave --session out.",
        "PROVIDER_FAILED": "Recall goes on by words, and what is published stays. The server keeps asking the "
        "provider, and its log says what that answers.",
    }.get(metadata.get("cause", ""), "`durable-memory index status` shows how the index stands.")


def _always(text: str) -> Callable[[Metadata], str]:
    return lambda _: text


_ADVICE: Final[Mapping[str, Callable[[Metadata], str]]] = {
    "INVALID_FIELD": _invalid_field,
    "REVISION_CONFLICT": _revision_conflict,
    "PERMISSION_DENIED": _permission_denied,
    "INVALID_TRANSITION": _invalid_transition,
    "NODE_FROZEN": _node_frozen,
    "CREDENTIALS_INVALID": _always("Give a valid token with DURABLE_MEMORY_TOKEN or --token-file."),
    "NODE_NOT_FOUND": _always(
        "See what there is with `durable-memory list`; check --tenant, --principal and --scope too."
    ),
    "REVISION_NOT_FOUND": _revision_not_found,
    "NODE_ALREADY_EXISTS": _always("Choose another --id, or change the memory that has it with `revise`."),
    "EVIDENCE_REQUIRED": _always("Name a decision: by yourself (--by, --note) or by a rule (--rule name@version)."),
    "CHANGE_SET_EMPTY": _always("It says so already; nothing was changed."),
    "IDEMPOTENCY_KEY_REUSED": _always("Choose another --request-id: this one belongs to another command."),
    "NAMESPACE_TOO_LARGE": _always("Retire memories, or spread them over several scopes (--scope)."),
    "SESSION_NOT_FOUND": _always("See the sessions with `durable-memory sessions`."),
    "SEMANTIC_UNAVAILABLE": _semantic_unavailable,
    "LEASE_HELD": _always("Another refresh of this namespace is running; `durable-memory index status` shows its end."),
    "LEASE_FENCED": _always("Another refresh has taken over; nothing was half-written."),
    "INDEX_REVISION_CONFLICT": _always("Somebody else published meanwhile. Repeat it; what is there stays in use."),
    "SOURCE_DRIFT": _always("Repeat it when fewer changes come in; a scheduled refresh publishes what it has by then."),
    "CONSISTENCY_UNSUPPORTED": _always("Repeat it with --any-backend if the last writer may win."),
    "HISTORY_CHANGED": _always("The namespace was restored or imported; watch it from its present state."),
    "DATA_CORRUPTED": _always("Nothing was taken in or served. Restore it from a copy that verifies."),
    "INTERNAL": _always("This is a defect of the server; its log has the details under the incident id."),
}
