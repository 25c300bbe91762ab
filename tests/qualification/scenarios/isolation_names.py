"""Names that look like another's, or that mean something where they should mean nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from durable_memory_client import Evidence, MemoryClient, MemoryNamespace, MemoryServiceError, Namespace

_REFUSED = ("INVALID_FIELD", "PERMISSION_DENIED", "LIMIT_EXCEEDED")
_NOT_THERE = ("NODE_NOT_FOUND", "SESSION_NOT_FOUND", "REVISION_NOT_FOUND", *_REFUSED)
_MEETING = (
    (("a:b", "c"), ("a", "b:c")),
    (("a/b", "c"), ("a", "b/c")),
    (("a", "b"), ("b", "a")),
    (("{a}", "b"), ("a", "b")),
    (("a\u00e9", "b"), ("ae\u0301", "b")),
    (("A", "b"), ("a", "b")),
    (("a", "b"), ("a", "b ")),
    (("a", "project"), ("a", "%")),
)
"""Principals and scopes that a careless joining of names would take for one another."""


@dataclass(slots=True)
class Names:
    """What came of it: how much was tried, and what was wrong."""

    tried: int = 0
    problems: list[str] = field(default_factory=list)


def near(name: str) -> list[str]:
    """What looks like a name, begins or ends like it, matches it as a pattern, or is none. Each once, never itself."""
    dash, last = "\u2010", name[:-1]
    cut = (last, name[:1], name[1:], name + name[-1], f" {name}", f"{name} ", f"{name}\u200b")
    spelt = (name.upper(), name.capitalize(), name.replace("-", "_"), name.replace("-", dash), name.encode().hex())
    patterns = ("%", "*", "?" * len(name), "_" * len(name), f"{last}%", f"{last}*", ".*", "[a-z-]*")
    controls = (f"{name}\x00", f"{name}\x00x", "\x00", "", " ", f"{name}\n")
    joined = (f"{name}/", f"{name}:", f"{name}/../{name}", f"{{{name}}}")
    quoted = (f"'{name}'", f"{name}' OR '1'='1", f"{name}--", f"$({name})")
    # Letters of other scripts that nobody tells from these, a wide one, and an accent that is a sign of its own.
    alike = (name.replace("o", "\u043e"), name.replace("i", "\u0456"), name.replace("a", "\uff41"), f"{name}\u0301")
    everything = (*cut, *spelt, *patterns, *controls, *joined, *quoted, *alike)
    return [one for one in dict.fromkeys(everything) if one != name]


async def foreign_tenants(intruder: MemoryClient, owner: Namespace) -> Names:
    """A credential of one tenant reaches no tenant whose name is like another's, and not its own by a name like it."""
    assert owner.tenant is not None
    assert intruder.ref.tenant is not None
    names = Names()
    for like in (owner.tenant, intruder.ref.tenant):
        for tenant in near(like):
            if tenant == owner.tenant:
                continue
            place = intruder.namespace(tenant, owner.principal, owner.scope)
            names.tried += 1
            try:
                await place.get_change_token()
            except MemoryServiceError as error:
                if error.reason not in _REFUSED:
                    names.problems.append(f"tenant {tenant!r} is refused with {error.reason}")
            else:
                names.problems.append(f"a credential of {intruder.ref.tenant!r} is good for tenant {tenant!r}")
    return names


async def near_namespaces(everybody: MemoryClient, owner: Namespace) -> Names:
    """For who may go everywhere, a name that is like another's is of an empty namespace, or of none."""
    names = Names()
    for part in ("principal", "scope"):
        name = getattr(owner, part)
        for like in near(name):
            place = everybody.namespace(
                owner.tenant, **{"principal": owner.principal, "scope": owner.scope, part: like}
            )
            names.tried += 1
            names.problems += await _has_anything(place, f"{part} {like!r}")
    return names


async def meeting(everybody: MemoryClient, tenant: str, mark: str) -> Names:
    """What is written under one of two names that look alike is not under the other."""
    names = Names()
    for number, (one, other) in enumerate(_MEETING):
        here, there = (
            everybody.namespace(tenant, principal=f"{mark}{number}{principal}", scope=scope)
            for principal, scope in (one, other)
        )
        await here.remember(f"{mark} was here", node_id="visit")
        names.tried += 1
        names.problems += await _has_anything(there, f"{other}, where only {one} was written to,")
    return names


async def near_ids(owner: MemoryNamespace, node_id: str, session_id: str, key: str) -> Names:
    """In the owner's own namespace, an id that is like another's names nothing. `key`: of an ApplyChangeSet."""
    names = Names()
    reads: Sequence[tuple[str, str, Callable[[str], Awaitable[object]]]] = (
        ("node", node_id, owner.get_node),
        ("session", session_id, owner.get_session),
        ("request", key, lambda like: owner.get_change_set(request_id=like)),
    )
    for what, name, read in reads:
        for like in near(name):
            names.tried += 1
            try:
                await read(like)
            except MemoryServiceError as error:
                if error.reason not in _NOT_THERE:
                    names.problems.append(f"{what} {like!r} is refused with {error.reason}")
            else:
                names.problems.append(f"{what} {like!r} names something")
    return names


async def strange_ids(own: MemoryNamespace, others: str) -> Names:
    """Ids that mean something elsewhere are plain ids in one's own namespace, or are refused. `others`: a node's."""
    names = Names()
    made: list[str] = []
    for number, like in enumerate(near(others)):
        names.tried += 1
        try:
            told = Evidence.user_statement(f"chat:{number}", str(number))
            await own.remember(f"note {number} has a strange name", node_id=like, evidence=[told])
            made.append(like)
        except MemoryServiceError as error:
            if error.reason not in _REFUSED:
                names.problems.append(f"node id {like!r} is refused with {error.reason}")
    there = [node.id async for node in own.list_nodes()]
    if sorted(there) != sorted(made):
        names.problems.append(f"{len(made)} strange ids were remembered, and {len(there)} are there")
    for like in made:
        if (await own.get_node(like)).id != like:
            names.problems.append(f"node id {like!r} names another node")
    return names


async def _has_anything(place: MemoryNamespace, what: str) -> list[str]:
    try:
        token = await place.get_change_token()
        nodes = await place.list_nodes().all()
        sessions = await place.list_sessions().all()
    except MemoryServiceError as error:
        return [] if error.reason in _REFUSED else [f"{what} is refused with {error.reason}"]
    there = token.namespace_revision or nodes or sessions
    return [f"{what} has something in it"] if there else []
