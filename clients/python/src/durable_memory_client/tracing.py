"""W3C trace context, passed on if OpenTelemetry is installed."""

from __future__ import annotations

from collections.abc import Callable

_Inject = Callable[[dict[str, str]], None]


def _injector() -> _Inject | None:
    try:
        from opentelemetry.propagate import inject
    except ImportError:
        return None
    return inject


_inject = _injector()


def trace_headers() -> list[tuple[str, str]]:
    """The headers that the application's propagator sets for the current span; none without OpenTelemetry."""
    if _inject is None:
        return []
    carrier: dict[str, str] = {}
    _inject(carrier)
    return [(name.lower(), value) for name, value in carrier.items()]
