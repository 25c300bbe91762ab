"""Nothing of a tenant is returned, counted, timed or evicted across to another. Each check returns what is wrong."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

_TIMES: Final = frozenset({"google.protobuf.Timestamp", "google.protobuf.Duration"})
_OF_THE_PROCESS: Final = frozenset({"durablememory.v1.MaintenanceHealth"})
"""What operators are told of the process that answers: it moves by itself, and each replica has its own."""
_HALF_OF_A_PAIR: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a call came to. `shape` is all that its caller can tell apart, by `shape_of` or `words_of`; `text` is every
    byte that it got, for a look at what is in it."""

    status: str
    reason: str = ""
    field: str = ""
    shape: str = ""
    text: bytes = b""


def shape_of(message: Message) -> str:
    """A message by its fields, numbers and truths, and by the lengths of its strings; times are left out.

    Two answers that differ in ids, digests and times alone have one shape, if these are equally long.
    """
    return repr(_tree(message))


def words_of(text: str, names: Iterable[str]) -> str:
    """A text with every name in it replaced, for names that the caller itself has put into it."""
    for name in sorted(names, key=len, reverse=True):
        text = text.replace(name, "·")
    return text


def let_in(answers: Mapping[str, Said], allowed: Collection[str] = ("PERMISSION_DENIED",)) -> list[str]:
    """Each call is refused, for one of the allowed reasons."""
    return [
        f"{name} came to {said.status} {said.reason}".rstrip()
        for name, said in answers.items()
        if said.status == "OK" or said.reason not in allowed
    ]


def told_apart(answers: Mapping[str, Sequence[Said]]) -> list[str]:
    """The answers of one name say the same, however different that is of which they speak: what is there and is
    another's, and what is nowhere. At least two are compared."""
    found = []
    for name, said in answers.items():
        kinds = {(one.status, one.reason, one.field, one.shape) for one in said}
        if len(said) < _HALF_OF_A_PAIR:
            found.append(f"{name}: there is nothing to compare")
        elif len(kinds) > 1:
            told = sorted({f"{one.status} {one.reason}".rstrip() for one in said})
            found.append(f"{name} tells what is another's from what is nowhere: {' or '.join(told)}")
    return found


def given_away(answers: Mapping[str, Said], secrets: Mapping[str, str]) -> list[str]:
    """No answer holds anything of the other. `secrets`: what would be, by what to call it."""
    return [
        f"{name} gives away {what}"
        for name, said in answers.items()
        for what, secret in secrets.items()
        if secret.encode() in said.text
    ]


def unasked(rpcs: Iterable[str], asked: Iterable[str]) -> list[str]:
    """Every RPC of the contract was tried, and none that there is not."""
    there, tried = set(rpcs), set(asked)
    return [
        *(f"{name} was not tried" for name in sorted(there - tried)),
        *(f"{name} was tried, and is none of the contract" for name in sorted(tried - there)),
    ]


def moved(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    """What one tenant can see of its own, by its name, is what it was before the other tried."""
    return [f"{name} is another one now" for name in before if before[name] != after.get(name)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """A recall of a tenant: what it found, in order, and in how much it looked."""

    mode: str
    during: str
    hits: Sequence[str]
    expected: Sequence[str]
    """What is the tenant's own, fits, and was there before."""
    searched: int
    own_least: int
    own_most: int
    """How many the tenant may have had, between the beginning of the recall and its end."""
    vectors: int | None = None
    """How many vectors were looked at; None if none were."""


def starved(recalls: Iterable[Recalled]) -> list[str]:
    """Each recall has everything of its own that fits."""
    return [
        f"{one.mode} recall during {one.during} lacks {sorted(set(one.expected) - set(one.hits))}"
        for one in recalls
        if not set(one.expected) <= set(one.hits)
    ]


def strange(recalls: Iterable[Recalled], own: Collection[str]) -> list[str]:
    """No recall has what is not its tenant's."""
    return [
        f"{one.mode} recall during {one.during} returned {hit}, which is another's"
        for one in recalls
        for hit in one.hits
        if hit not in own
    ]


def overcounted(recalls: Iterable[Recalled]) -> list[str]:
    """What a recall says that it searched is the tenant's own."""
    return [
        f"{one.mode} recall during {one.during} searched {one.searched} memories and {one.vectors or 0} vectors, of "
        f"{one.own_most}"
        for one in recalls
        if not one.own_least <= one.searched <= one.own_most or (one.vectors or 0) > one.own_most
    ]


def paid_by_others(work: Mapping[str, tuple[int, int]]) -> list[str]:
    """A text that another tenant has had embedded is embedded again: its vector was not there before, and nobody can
    learn from the receipt that it was somewhere. `work`: by tenant, (cache hits, texts given to the provider)."""
    return [
        f"{tenant}: {hits} vectors of a text that only another tenant had were cached"
        for tenant, (hits, inputs) in work.items()
        if hits or not inputs
    ]


def partitions_shared(
    keys: Mapping[str, Collection[str]], records: Mapping[str, tuple[set[str], set[str]]]
) -> list[str]:
    """Tenants have no key in common, each has some, and what is stored under them is theirs.

    `keys`: by tenant. `records`: by tenant, the node ids stored and those that it has.
    """
    found = []
    tenants = sorted(keys)
    for place, tenant in enumerate(tenants):
        if not keys[tenant]:
            found.append(f"{tenant} has no key")
        for other in tenants[place + 1 :]:
            found += [f"{tenant} and {other} share {key}" for key in sorted(set(keys[tenant]) & set(keys[other]))]
        stored, own = records[tenant]
        found += [f"the partition of {tenant} holds node {node_id}" for node_id in sorted(stored - own)]
    return found


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """How much longer, in the middle, one kind of call takes than another. Raises: ValueError for none."""
    return statistics.median(ours) / statistics.median(theirs)


def _tree(message: Message) -> Any:
    if message.DESCRIPTOR.full_name in _TIMES:
        return "a time"
    if message.DESCRIPTOR.full_name in _OF_THE_PROCESS:
        return "how a process is doing"
    return {field.name: _value(field, value) for field, value in message.ListFields()}


def _value(field: FieldDescriptor, value: Any) -> Any:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return sorted((_leaf(key), _leaf(one)) for key, one in value.items())
    if field.is_repeated:
        return [_leaf(one) for one in value]
    return _leaf(value)


def _leaf(value: Any) -> Any:
    if isinstance(value, Message):
        return _tree(value)
    return f"{len(value)} long" if isinstance(value, str | bytes) else value
