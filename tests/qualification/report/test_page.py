"""The page of a whole run: small, by itself, and with everything on it that a person has to see."""

import json
import math
import re
from html.parser import HTMLParser

import pytest

from tests.qualification.report.bins import Window, latency_bins, risen, steps, whole
from tests.qualification.report.drawing import duration, fitted, nice_ceiling, path, ticks
from tests.qualification.report.page import page
from tests.qualification.report.report import MOST_PROBLEMS, WITHHELD
from tests.qualification.report.results import Distribution, Finding
from tests.qualification.report.sample import sample_report
from tests.qualification.report.timeline import Event, Lane, Sample, Series, Timeline

_VOID = {"meta", "br"}


class _Balanced(HTMLParser):
    """Fails for a tag that is not closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: dict[str, int] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen[tag] = self.seen.get(tag, 0) + 1
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen[tag] = self.seen.get(tag, 0) + 1

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def shown() -> str:
    return page(sample_report())


def test_the_page_is_whole_and_asks_nobody_for_anything(shown: str):
    parser = _Balanced()
    parser.feed(shown)

    assert not parser.open
    assert not re.search(r"(?:src|href)=\"(?!#)|url\(|@import|<script", shown)
    assert parser.seen["svg"] > len(sample_report().results)


def test_ten_minutes_of_calls_fit_on_a_page_of_less_than_two_megabytes(shown: str):
    report = sample_report()
    calls = sum(
        len(samples) for (series, _), samples in report.timeline.samples.items() if series is Series.LATENCY_SECONDS
    )

    assert calls > 25_000
    assert len(shown.encode()) < 2_000_000


def test_hours_of_events_fit_too():
    report = sample_report(seconds=4 * 3600.0, calls_per_second=2)
    began = report.timeline.began
    for number in range(40_000):
        at = began + number * 0.3
        held = Event(lane=Lane.LEADERSHIP, label=f"owner{number % 3} fence {number}", key="p", began=at, ended=at + 0.1)
        report.timeline.events.append(held)

    assert len(page(report).encode()) < 6_000_000


def test_every_row_is_there_with_its_promise_and_verdict(shown: str):
    for result in sample_report().results:
        assert result.name in shown
        assert result.promise.replace("'", "&#x27;") in shown
    assert shown.count('class="verdict fail"') >= 2
    assert "row 7, real embedding provider, was not tried" in shown.lower()


def test_problems_are_bounded_and_counted(shown: str):
    assert shown.count("a cache hit differs from the rebuild") == MOST_PROBLEMS
    assert f"and {31 - MOST_PROBLEMS} more" in shown


def test_nothing_that_a_scenario_says_becomes_markup():
    report = sample_report(seconds=30)
    report.results[0].findings.append(Finding(check="<b>", looked_at=1, problems=["<script>alert(1)</script>"]))
    report.results[0].caveats.append("<img src=x>")
    with report.timeline.span(Lane.FAULT, "<i>&"):
        pass

    shown = page(report)

    assert "<script" not in shown
    assert "<img" not in shown


def test_what_holds_content_is_withheld_everywhere():
    report = sample_report(seconds=30)
    report.results[0].findings.append(Finding(check="mixed up", looked_at=1, problems=["it reads: qcanary tea"]))
    report.results[1].error = "ValueError: qcanary"
    report.results[2].figures["longest"] = "qcanary"
    report.holds = lambda text: "qcanary" in text

    for said in (page(report), report.as_json()):
        assert "qcanary" not in said
        assert WITHHELD in said


def test_a_unit_stands_behind_values_and_not_behind_their_number():
    report = sample_report(seconds=30)
    tokens = Distribution(unit="tokens", count=44, p50=17, p90=19, p99=298, maximum=1298)
    seconds = Distribution(unit="seconds", count=40, p50=0.045, p90=0.055, p99=0.079, maximum=2.5)
    report.results[0].distributions = {"tokens_per_call": tokens, "question": seconds}

    cells = re.findall(r'<td class="number">([^<]*)</td>', page(report))

    for row in (["44", "17 tokens", "19 tokens", "298 tokens", "1,298 tokens"], ["40", "45 ms", "55 ms", "79 ms"]):
        assert row in [cells[at : at + len(row)] for at in range(len(cells))]


def test_the_report_is_json_that_every_parser_takes():
    report = sample_report(seconds=30)
    report.results[0].figures["ratio"] = math.nan

    kept = json.loads(report.as_json())

    assert kept["rows"][0]["figures"]["ratio"] is None
    assert kept["rows"][0]["operations"]["total"] == sum(
        sum(counts.values()) for counts in kept["rows"][0]["operations"]["attempts"].values()
    )


def test_a_run_without_any_event_has_a_page():
    report = sample_report(seconds=30)
    report.timeline = Timeline()
    report.results = []

    assert "nothing was tried" in page(report)


def test_calls_are_counted_in_the_second_in_which_they_ended():
    timeline = Timeline(began=100.0)
    for at, seconds, key in ((100.2, 0.01, "Recall ok"), (100.9, 0.03, "Recall ok"), (102.5, 9.0, "Recall unknown")):
        timeline.sample(Series.LATENCY_SECONDS, seconds, key=key, at=at)

    bins = latency_bins(timeline, Window(100.0, 103.0))

    assert [dict(one.outcomes) for one in bins] == [{"ok": 2}, {}, {"unknown": 1}]
    assert (bins[0].p50, bins[0].p99) == (0.01, 0.03)
    assert math.isnan(bins[2].p50)


def test_hours_are_cut_into_as_many_bins_as_a_page_can_show():
    window = Window(0.0, 6 * 3600.0)

    assert window.bins <= 600
    assert window.bin_of(window.ended) == window.bins - 1
    assert window.bin_of(-1.0) is None


def test_what_falls_within_a_bin_is_kept():
    samples = [Sample(0.1, 5), Sample(0.2, 6), Sample(0.3, 2), Sample(0.4, 3), Sample(1.5, 3)]

    assert [one.value for one in steps(samples, Window(0.0, 2.0))] == [6, 3, 3]


def test_a_repetition_that_is_answered_as_at_first_is_no_fall():
    samples = [Sample(0.0, 3), Sample(1.0, 1), Sample(2.0, 4)]

    assert [one.value for one in risen(samples)] == [3, 3, 4]


def test_the_end_of_a_run_is_the_last_that_is_known():
    timeline = Timeline(began=10.0)
    timeline.sample(Series.FENCE, 1, at=42.0)

    assert whole(timeline) == Window(10.0, 42.0)


def test_axes_are_round():
    assert [said for _, said in ticks(Window(100.0, 190.0), origin=100.0)][:3] == ["0:00", "0:10", "0:20"]
    assert [nice_ceiling(value) for value in (0.0, 1.2, 3.0, 51.0, 100.0)] == [1.0, 2.0, 5.0, 100.0, 100.0]
    assert [duration(value) for value in (0.0012, 0.25, 2.5, 600.0, math.nan)] == [
        "1.2 ms",
        "250 ms",
        "2.50 s",
        "600 s",
        "–",
    ]


def test_a_name_is_made_narrower_before_its_end_is_cut_off():
    short, longer, longest = (fitted(0, 0, "n" * length, 56.0) for length in (10, 13, 14))

    assert "textLength" not in short
    assert f'textLength="56" lengthAdjust="spacingAndGlyphs">{"n" * 13}</text>' in longer
    assert f">{'n' * 12}…<title>{'n' * 14}</title></text>" in longest


def test_on_paper_nothing_is_cut_off_or_dark(shown: str):
    paper = shown.partition("@media print {")[2].partition("</style>")[0]

    assert ".wide, figure { overflow: visible; }" in paper
    assert "@media screen and (prefers-color-scheme: dark)" in shown
    assert shown.count("prefers-color-scheme") == 1


def test_a_line_is_broken_where_nothing_is_known():
    assert path([(0, 1), (1, math.nan), (2, 3)], kind="p50").count("M") == 2
