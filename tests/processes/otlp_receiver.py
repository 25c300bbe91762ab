"""A collector on loopback: it takes what servers say about themselves over OTLP, and keeps it for tests to look at."""

from __future__ import annotations

import shutil
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import grpc
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2, metrics_service_pb2_grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.proto.common.v1 import common_pb2
from opentelemetry.proto.metrics.v1 import metrics_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

_KEPT_PER_METRIC: Final = 50_000
_KEPT_SPANS: Final = 50_000
_SPARED_BYTES: Final = 1 << 30
"""Of the disk: for what else is written there, which may be the report."""

_NANOS: Final = 1e-9

Attributes = Mapping[str, str | int | float | bool]


@dataclass(frozen=True, slots=True)
class Measurement:
    """A counter's or gauge's value as it came in.

    `arrived` is of the monotonic clock; `instance` is the resource's `service.instance.id`; `began` is the wall clock's
    time, in nanoseconds, since when a counter counts: another one is another process.
    """

    arrived: float
    instance: str
    attributes: Attributes
    began: int
    value: float


@dataclass(frozen=True, slots=True)
class Histogram:
    """A histogram as it came in: `counts[i]` values up to `bounds[i]`, the last ones above all bounds."""

    arrived: float
    instance: str
    attributes: Attributes
    began: int
    count: int
    sum: float
    bounds: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Span:
    """`began` is the wall clock's time in seconds."""

    arrived: float
    instance: str
    name: str
    began: float
    seconds: float
    failed: bool
    attributes: Attributes


def _free_bytes(path: Path) -> int:
    return shutil.disk_usage(path).free


class OtlpReceiver:
    """Listens for traces and metrics, with gRPC, on the loop that it is started on. Give `endpoint` to those who send.

    Keeps the newest of everything: so many values of each metric, and so many spans. Every message goes into `raw_path`
    as it came, however many there are, for as long as its disk has room for it and `_SPARED_BYTES` more;
    `raw_bytes_lost` says how much did not. `free_bytes` tells how much room a folder's disk has.
    """

    def __init__(self, raw_path: Path, *, free_bytes: Callable[[Path], int] = _free_bytes) -> None:
        self.raw_path = raw_path
        self._free_bytes = free_bytes
        self.raw_bytes_lost = 0
        self.port = 0
        # Without a buffer: who looks at the file while servers go on sees all that has come in.
        self._raw = raw_path.open("wb", buffering=0)
        self._metrics: dict[str, deque[Measurement]] = {}
        self._histograms: dict[str, deque[Histogram]] = {}
        self._spans: deque[tuple[float, str, trace_pb2.Span]] = deque(maxlen=_KEPT_SPANS)
        self._server: grpc.aio.Server | None = None

    async def __aenter__(self) -> Self:
        server = self._server = grpc.aio.server()
        trace_service_pb2_grpc.add_TraceServiceServicer_to_server(_Traces(self), server)
        metrics_service_pb2_grpc.add_MetricsServiceServicer_to_server(_Metrics(self), server)
        self.port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            await self._server.stop(None)
        self._raw.close()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def raw_bytes(self) -> bytes:
        """Every message that came in, one after the other."""
        return self.raw_path.read_bytes()

    @property
    def metric_names(self) -> set[str]:
        return {*self._metrics, *self._histograms}

    def metric_values(self, name: str, *, instance: str | None = None) -> list[Measurement]:
        """The values of a counter or gauge, oldest first."""
        return [one for one in self._metrics.get(name, ()) if instance in (None, one.instance)]

    def histogram(self, name: str, *, instance: str | None = None) -> list[Histogram]:
        """A histogram's newest state of each process and set of attributes."""
        kept = [one for one in self._histograms.get(name, ()) if instance in (None, one.instance)]
        return list({(one.instance, one.began, *_key(one.attributes)): one for one in kept}.values())

    def total(self, name: str, **attributes: str) -> float:
        """What a counter, or a histogram's number of values, came to: of all processes that ever sent it.

        Attributes are named with `_` for `.`; those that are left out may be anything. What a killed process had
        counted since its last message is not in it.
        """
        newest = {
            (one.instance, one.began, *_key(one.attributes)): one.value
            for one in self._metrics.get(name, ())
            if _matches(one.attributes, attributes)
        }
        counts = [float(one.count) for one in self.histogram(name) if _matches(one.attributes, attributes)]
        return sum(newest.values()) + sum(counts)

    def spans(self, name: str | None = None) -> Iterator[Span]:
        """The spans of a name, or all, in the order in which they came in."""
        for arrived, instance, span in list(self._spans):
            if name in (None, span.name):
                yield Span(
                    arrived=arrived,
                    instance=instance,
                    name=span.name,
                    began=span.start_time_unix_nano * _NANOS,
                    seconds=(span.end_time_unix_nano - span.start_time_unix_nano) * _NANOS,
                    failed=span.status.code == trace_pb2.Status.STATUS_CODE_ERROR,
                    attributes=_plain(span.attributes),
                )

    def take_traces(self, request: trace_service_pb2.ExportTraceServiceRequest) -> None:
        arrived = self._keep(request.SerializeToString())
        for resource in request.resource_spans:
            instance = _instance(resource.resource.attributes)
            for scope in resource.scope_spans:
                self._spans.extend((arrived, instance, span) for span in scope.spans)

    def take_metrics(self, request: metrics_service_pb2.ExportMetricsServiceRequest) -> None:
        arrived = self._keep(request.SerializeToString())
        for resource in request.resource_metrics:
            instance = _instance(resource.resource.attributes)
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    self._take_metric(metric, arrived, instance)

    def _take_metric(self, metric: metrics_pb2.Metric, arrived: float, instance: str) -> None:
        if metric.HasField("histogram"):
            kept = self._histograms.setdefault(metric.name, deque(maxlen=_KEPT_PER_METRIC))
            kept.extend(
                Histogram(
                    arrived=arrived,
                    instance=instance,
                    attributes=_plain(point.attributes),
                    began=point.start_time_unix_nano,
                    count=point.count,
                    sum=point.sum,
                    bounds=tuple(point.explicit_bounds),
                    counts=tuple(point.bucket_counts),
                )
                for point in metric.histogram.data_points
            )
            return
        points = metric.sum.data_points if metric.HasField("sum") else metric.gauge.data_points
        values = self._metrics.setdefault(metric.name, deque(maxlen=_KEPT_PER_METRIC))
        values.extend(
            Measurement(
                arrived=arrived,
                instance=instance,
                attributes=_plain(point.attributes),
                began=point.start_time_unix_nano,
                value=point.as_double if point.HasField("as_double") else float(point.as_int),
            )
            for point in points
        )

    def _keep(self, message: bytes) -> float:
        self.raw_bytes_lost += len(message) - self._write(message)
        return time.monotonic()

    def _write(self, message: bytes) -> int:
        """How many bytes of it the disk took."""
        # Looked at each time, which costs microseconds: the disk is not this file's alone.
        if self._free_bytes(self.raw_path.parent) < len(message) + _SPARED_BYTES:
            return 0
        try:
            return self._raw.write(message)
        except OSError:
            return 0  # a quota, or somebody was faster


class _Traces(trace_service_pb2_grpc.TraceServiceServicer):
    def __init__(self, receiver: OtlpReceiver) -> None:
        self._receiver = receiver

    async def Export(
        self, request: trace_service_pb2.ExportTraceServiceRequest, context: Any
    ) -> trace_service_pb2.ExportTraceServiceResponse:
        self._receiver.take_traces(request)
        return trace_service_pb2.ExportTraceServiceResponse()


class _Metrics(metrics_service_pb2_grpc.MetricsServiceServicer):
    def __init__(self, receiver: OtlpReceiver) -> None:
        self._receiver = receiver

    async def Export(
        self, request: metrics_service_pb2.ExportMetricsServiceRequest, context: Any
    ) -> metrics_service_pb2.ExportMetricsServiceResponse:
        self._receiver.take_metrics(request)
        return metrics_service_pb2.ExportMetricsServiceResponse()


def _instance(attributes: Iterable[common_pb2.KeyValue]) -> str:
    named = (one.value.string_value for one in attributes if one.key == "service.instance.id")
    return next(named, "")


def _plain(attributes: Iterable[common_pb2.KeyValue]) -> Attributes:
    """The attributes as Python has them; lists and maps, which nobody here sends, are left out."""
    kinds = {one.key: (one.value, one.value.WhichOneof("value")) for one in attributes}
    return {
        key: getattr(value, kind)
        for key, (value, kind) in kinds.items()
        if kind in ("string_value", "int_value", "double_value", "bool_value")
    }


def _key(attributes: Attributes) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(attributes.items()))


def _matches(attributes: Attributes, wanted: Mapping[str, str]) -> bool:
    known = {key.replace(".", "_"): str(value) for key, value in attributes.items()}
    return all(known.get(key) == value for key, value in wanted.items())
