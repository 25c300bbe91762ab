"""The log: one JSON object a line, with the trace it belongs to, without the text of exceptions."""

import asyncio
import gc
import io
import json
import logging

import pytest
import structlog
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from durable_memory.config import TelemetrySettings
from durable_memory.telemetry import (
    build_telemetry,
    configure_logging,
    log_unhandled_by_place,
    recording_telemetry,
)


@pytest.fixture
def output(monkeypatch):
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", root.handlers)
    monkeypatch.setattr(root, "level", root.level)
    stream = io.StringIO()
    configure_logging("info", stream)
    yield stream
    structlog.reset_defaults()


def _lines(output) -> list[dict]:
    return [json.loads(line) for line in output.getvalue().splitlines()]


def test_an_event_is_one_line(output):
    structlog.stdlib.get_logger("durable_memory.test").warning("stored", text="two\nlines", count=3)
    (line,) = _lines(output)
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "event": "stored",
        "text": "two\nlines",
        "count": 3,
        "level": "warning",
        "logger": "durable_memory.test",
    }


def test_what_is_below_the_level_is_left_out(output):
    structlog.stdlib.get_logger("durable_memory.test").debug("detail")
    assert _lines(output) == []


def test_libraries_log_in_the_same_form_without_the_text_of_exceptions(output):
    try:
        raise ValueError("the content of a memory")
    except ValueError:
        logging.getLogger("asyncio").exception("a task failed in %s", "test")
    (line,) = _lines(output)
    assert (line["event"], line["logger"], line["level"]) == ("a task failed in test", "asyncio", "error")
    assert line["exception"] == "builtins.ValueError"
    assert "content of a memory" not in output.getvalue()


def test_what_nobody_handled_is_logged_by_its_place_without_its_text(output):
    async def fail():
        raise ValueError("the content of a memory")

    async def forget():
        log_unhandled_by_place(asyncio.get_running_loop())
        await asyncio.wait([asyncio.create_task(fail(), name="compact namespace view")])
        asyncio.get_running_loop().call_soon(int, "the content of another")
        await asyncio.sleep(0)
        gc.collect()

    asyncio.run(forget())
    lines = {line["task"]: line for line in _lines(output)}
    assert lines.keys() == {"compact namespace view", None}
    for line in lines.values():
        assert (line["event"], line["level"], line["exceptions"]) == ("unhandled", "error", ["builtins.ValueError"])
    assert lines["compact namespace view"]["frames"][-1].endswith(" fail")
    assert "the content of" not in output.getvalue()


def test_a_problem_without_an_exception_is_logged_in_the_words_of_the_event_loop(output):
    async def complain():
        log_unhandled_by_place(asyncio.get_running_loop())
        asyncio.get_running_loop().call_exception_handler({"message": "Task was destroyed but it is pending!"})

    asyncio.run(complain())
    (line,) = _lines(output)
    assert (line["event"], line["exceptions"]) == ("unhandled", [])
    assert line["problem"] == "Task was destroyed but it is pending!"


def test_a_line_names_the_span_that_it_was_logged_in(output):
    telemetry = recording_telemetry("test", SimpleSpanProcessor(InMemorySpanExporter()), InMemoryMetricReader())
    log = structlog.stdlib.get_logger("durable_memory.test")
    with telemetry.tracer.start_as_current_span("call") as span:
        log.info("inside")
    log.info("outside")
    telemetry.shutdown()
    inside, outside = _lines(output)
    assert inside["trace_id"] == f"{span.get_span_context().trace_id:032x}"
    assert inside["span_id"] == f"{span.get_span_context().span_id:016x}"
    assert "trace_id" not in outside


def test_without_an_endpoint_nothing_is_recorded():
    telemetry = build_telemetry(TelemetrySettings())
    with telemetry.tracer.start_as_current_span("call") as span:
        assert not span.is_recording()
    telemetry.shutdown()
