"""What recalls of one known memory, asked again and again in one mode each, say of how long recall was away."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

SEMANTIC_AWAY = frozenset({"SEMANTIC_UNAVAILABLE"})
"""Why an explicit mode may fail while the index is away. AUTO and LEXICAL have no reason to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One recall. `reason`: why it was refused, empty if it was answered; then `found` are the nodes it returned."""

    began: float
    ended: float
    mode: str
    used: str = ""
    degradation: str = ""
    reason: str = ""
    found: tuple[str, ...] = ()

    @property
    def is_by_meaning(self) -> bool:
        """Whether vectors were searched."""
        return not self.reason and not self.degradation and self.used in ("HYBRID", "SEMANTIC")


def unanswered(probes: Iterable[Probe], *, modes: Collection[str], patience_seconds: float) -> list[str]:
    """In these modes every recall is answered, whatever has become of the index; what takes longer than that hangs."""
    found = []
    for probe in probes:
        if probe.mode not in modes:
            continue
        took = probe.ended - probe.began
        if probe.reason:
            found.append(f"a {probe.mode} recall at {probe.began:.3f} was refused: {probe.reason}")
        elif took > patience_seconds:
            found.append(f"a {probe.mode} recall at {probe.began:.3f} took {took:.2f} s")
    return found


def seconds_taken(probes: Iterable[Probe], mode: str) -> list[float]:
    """How long the recalls of a mode took that were answered."""
    return [probe.ended - probe.began for probe in probes if probe.mode == mode and not probe.reason]


def unsaid(probes: Sequence[Probe], reason: str) -> list[str]:
    """At least one recall gave this for why it went without vectors."""
    said = reasons(probes)
    return [] if said.get(reason) else [f"no recall said {reason}; they said {said}"]


def wrongly_refused(probes: Iterable[Probe], allowed: Collection[str] = SEMANTIC_AWAY) -> list[str]:
    """A recall that needs vectors is refused because they are away, and for nothing else."""
    return [
        f"a {probe.mode} recall at {probe.began:.3f} was refused: {probe.reason}"
        for probe in probes
        if probe.reason and probe.reason not in allowed
    ]


def wrongly_answered(probes: Iterable[Probe], asked: str, own: Collection[str]) -> list[str]:
    """What was asked for is first among what is found, and all of that is the namespace's own."""
    found = []
    for probe in probes:
        if probe.reason:
            continue
        when = f"a {probe.mode} recall at {probe.began:.3f}, answered by {probe.used}"
        if asked not in probe.found:
            found.append(f"{when}, misses {asked}")
        elif probe.found[0] != asked:
            found.append(f"{when}, prefers {probe.found[0]} to {asked}")
        found += [f"{when}, returned {node_id}" for node_id in probe.found if node_id not in own]
    return found


def by_meaning(probes: Iterable[Probe]) -> list[float]:
    """When recalls were answered by vectors."""
    return sorted(probe.ended for probe in probes if probe.is_by_meaning)


def answered(probes: Iterable[Probe], modes: Collection[str]) -> list[float]:
    """When recalls in these modes were answered."""
    return sorted(probe.ended for probe in probes if not probe.reason and probe.mode in modes)


def reasons(probes: Sequence[Probe]) -> dict[str, int]:
    """Why recalls went without vectors, and how often."""
    counted: dict[str, int] = {}
    for probe in probes:
        said = probe.degradation or probe.reason
        if said:
            counted[said] = counted.get(said, 0) + 1
    return counted
