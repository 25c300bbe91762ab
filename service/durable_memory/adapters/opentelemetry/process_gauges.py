"""How the process stands, as instruments that are read when measurements are collected."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from durable_memory.ports.observing import ProcessState, SemanticState

_Read = Callable[[ProcessState], Iterable[Observation]]


class ProcessGauges:
    """Shows the last state that `show` was given.

    Collecting happens in a thread of its own, and what a state is read from belongs to the event loop: so it is read
    there, now and then, and handed over as a value.
    """

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._state: ProcessState | None = None
        for name, unit, description, read in _COUNTERS:
            meter.create_observable_counter(f"durable_memory.{name}", [self._callback(read)], unit, description)
        for name, unit, description, read in _GAUGES:
            meter.create_observable_gauge(f"durable_memory.{name}", [self._callback(read)], unit, description)

    def show(self, state: ProcessState) -> None:
        self._state = state

    def _callback(self, read: _Read) -> Callable[[CallbackOptions], Iterable[Observation]]:
        return lambda _: () if self._state is None else read(self._state)


def _view(value: Callable[[ProcessState], int]) -> _Read:
    return lambda state: (Observation(value(state)),)


def _one(value: Callable[[SemanticState], int]) -> _Read:
    return lambda state: () if state.semantic is None else (Observation(value(state.semantic)),)


def _by(attribute: str, values: Callable[[SemanticState], Mapping[str, int]], always: tuple[str, ...] = ()) -> _Read:
    def read(state: ProcessState) -> Iterable[Observation]:
        if state.semantic is None:
            return
        for name, value in {**dict.fromkeys(always, 0), **values(state.semantic)}.items():
            yield Observation(value, {attribute: str(name)})

    return read


_COUNTERS: Final[tuple[tuple[str, str, str, _Read], ...]] = (
    ("views.hits", "{recall}", "Recalls whose namespace view was current", _view(lambda state: state.views.hits)),
    ("views.loads", "{load}", "Namespace views loaded as a whole", _view(lambda state: state.views.loads)),
    ("views.deltas", "{delta}", "Namespace views brought up to date", _view(lambda state: state.views.deltas)),
    ("views.evictions", "{view}", "Views that left for want of room", _view(lambda state: state.views.evictions)),
    ("embedding.calls", "{call}", "Real calls of the provider", _one(lambda state: state.usage.calls)),
    ("embedding.inputs", "{text}", "Texts in those calls", _one(lambda state: state.usage.inputs)),
    ("embedding.input_bytes", "By", "Bytes of those texts", _one(lambda state: state.usage.input_bytes)),
    (
        "embedding.input_tokens",
        "{token}",
        "Tokens of those texts, as the provider counts them",
        _one(lambda state: state.usage.input_tokens),
    ),
    (
        "embedding.failures",
        "{failure}",
        "Failures of embedding, by reason",
        _by("reason", lambda state: {failure.value: count for failure, count in state.usage.failures.items()}),
    ),
    ("maintenance.runs", "{run}", "Scheduled refreshes that ended", _one(lambda state: state.maintenance_runs)),
    (
        "maintenance.failures",
        "{failure}",
        "Scheduled refreshes, or looks for what is due, that failed",
        _one(lambda state: state.maintenance_failures),
    ),
)

_GAUGES: Final[tuple[tuple[str, str, str, _Read], ...]] = (
    ("views.count", "{view}", "Namespace views in memory", _view(lambda state: state.views.views)),
    ("views.bytes", "By", "Memory that they take", _view(lambda state: state.views.bytes)),
    ("vector_views.count", "{view}", "Vector views in memory", _one(lambda state: state.vector_views)),
    ("vector_views.vectors", "{vector}", "Live vectors in them", _one(lambda state: state.vectors)),
    ("vector_views.bytes", "By", "Memory that they take", _one(lambda state: state.vector_bytes)),
    ("semantic.serving", "1", "1 while SemanticService is SERVING", _one(lambda state: int(state.serving))),
    ("index.available", "1", "1 while the vector index answers", _one(lambda state: int(state.index_available))),
    (
        "index.unserved_partitions",
        "{partition}",
        "Partitions that are not served until they are rebuilt, by state",
        _by("state", lambda state: state.unserved_partitions, always=("REGRESSED", "CORRUPTED")),
    ),
    (
        "index.unembedded_nodes",
        "{node}",
        "ACTIVE memories without a vector of their present text, where that was looked at lately",
        _one(lambda state: state.unembedded_nodes),
    ),
    (
        "embedding.available",
        "1",
        "0 while the provider fails and its probe fails too",
        _one(lambda state: int(state.embedder_available)),
    ),
    (
        "embedding.circuit_open",
        "1",
        "1 while a failing provider is left alone, or tried with one call",
        _one(lambda state: int(state.usage.circuit_open)),
    ),
    ("maintenance.running", "{run}", "Scheduled refreshes under way", _one(lambda state: state.maintenance_running)),
)
