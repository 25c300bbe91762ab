"""`report.html`: one page that needs nothing else, for a person to look at."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Final

from tests.qualification.report.bins import EDGES_SECONDS, Latencies, Window, latency_by_method
from tests.qualification.report.charts import closeup, overview
from tests.qualification.report.drawing import duration
from tests.qualification.report.report import MOST_PROBLEMS, Report, total, unknown
from tests.qualification.report.results import Distribution, Finding, RowResult, Verdict
from tests.qualification.report.timeline import Event, Lane

_CSS: Final = Path(__file__).with_name("page.css").read_text("utf-8")
_WORST: Final = "worst"
_SHORTEST_SECONDS: Final = 0.05
"""Of a scenario, to be worth a picture of its own."""
_SECONDS: Final = "_seconds"
_WORDS: Final = {Verdict.PASS: "pass", Verdict.FAIL: "fail", Verdict.SKIPPED: "skipped"}


def page(report: Report) -> str:
    """The whole page."""
    parts = [
        _header(report),
        _verdicts(report),
        _failures(report),
        '<h2>The whole run</h2><p class="dim">The figures of a shape show under the pointer; those of a row are in its '
        "tables.</p>",
        f"<figure>{overview(report.timeline)}</figure>",
        *(_row(report, result) for result in report.results),
        _methods("Calls of the whole run", latency_by_method(report.timeline), level=2),
        _not_shown(report),
        _made_of(report),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Qualification of Durable Memory: {_WORDS[report.verdict]}</title>"
        f"<style>{_CSS}</style></head><body>\n" + "\n".join(part for part in parts if part) + "\n</body></html>\n"
    )


def _header(report: Report) -> str:
    counts = {verdict: sum(result.verdict is verdict for result in report.results) for verdict in Verdict}
    said = ", ".join(f"{count} {_WORDS[verdict]}" for verdict, count in counts.items() if count)
    attempts = sum(map(total, report.results))
    faults = sum(sum(result.faults.values()) for result in report.results)
    of_faults = "fault" if faults == 1 else "faults"
    left_out = f" <b>{report.left_out}</b>" if report.left_out else ""
    return (
        f"<h1>Qualification of Durable Memory {_badge(report.verdict)}</h1>"
        f"<p>{said or 'nothing was tried'}; {attempts:,} operations under {faults:,} {of_faults} in "
        f"{duration(report.seconds)}.{left_out}</p>"
        f'<p class="dim">{report.started_at:%Y-%m-%d %H:%M} UTC, seed {report.seed}. Again: '
        f"<code>{escape(report.command)}</code></p>"
    )


def _verdicts(report: Report) -> str:
    rows = []
    for place, result in enumerate(report.results):
        worst = _worst(result)
        faults = "<br>".join(
            escape(_words(name)) + (f" ×{count}" if count > 1 else "") for name, count in result.faults.most_common()
        )
        doubts = unknown(result)
        resolved = ", ".join(
            f"{count:,} {what}"
            for count, what in (
                (result.operations.unknown_applied, "applied"),
                (result.operations.unknown_not_applied, "not"),
                (result.operations.unknown_untold, "untold"),
            )
            if count
        )
        said = "".join(f"<b>{escape(value)}</b><small>{escape(name)}</small>" for name, value in worst)
        rows.append(
            f'<tr><td class="number">{result.row or "–"}</td>'
            f'<td><a href="#r{place}"><b>{escape(result.name)}</b></a><small>{escape(result.promise)}</small></td>'
            f"<td>{_badge(result.verdict)}</td>"
            f'<td class="number">{duration(result.seconds)}</td>'
            f'<td class="number">{sum(result.faults.values()):,}</td>'
            f"<td><small>{faults}</small></td>"
            f'<td class="number">{total(result):,}</td>'
            f'<td class="number">{doubts:,}<small>{resolved}</small></td>'
            f"<td>{said}</td></tr>"
        )
    head = (
        '<tr><th class="number">#</th><th>row and what it promises</th><th>verdict</th><th class="number">took</th>'
        '<th class="number">faults</th><th></th><th class="number">operations</th>'
        '<th class="number">unknown</th><th>worst</th></tr>'
    )
    return (
        f'<h2>Verdicts</h2><div class="wide"><table class="whole"><thead>{head}</thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
        '<p class="dim">An operation is one attempt of a call. Unknown: its caller got no answer that says what became '
        "of it; under it, of how many commands the history shows that such an attempt had been applied, of how many "
        "that none had, and of how many it does not tell, as they change no memory.</p>"
    )


def _worst(result: RowResult) -> Sequence[tuple[str, str]]:
    """(what, figure): of figures of one kind, as `worst_seconds_without_writes: kill -9`, the worst of all."""
    found: dict[str, tuple[float, str]] = {}
    for name, value in result.figures.items():
        kind, _, of = name.partition(": ")
        if kind.startswith(_WORST) and not isinstance(value, str):
            found[kind] = max(found.get(kind, (-math.inf, "")), (value, of))
    return [
        (_words(kind).removeprefix(_WORST).strip() + (f": {of}" if of else ""), _figure(kind, value))
        for kind, (value, of) in found.items()
    ]


def _failures(report: Report) -> str:
    parts = []
    for result in report.results:
        if result.verdict is not Verdict.FAIL:
            continue
        failed = [finding for finding in result.findings if finding.verdict is Verdict.FAIL]
        said = [escape(report.shown(result.error))] if result.error else []
        if not result.findings and not result.error:
            said.append("no check looked at anything")
        parts.append(
            f'<div class="failed"><b>{escape(_named(result))}</b>{_list(said)}'
            f"{''.join(_problems(report, finding) for finding in failed)}</div>"
        )
    return f"<h2>What failed</h2>{''.join(parts)}" if parts else ""


def _problems(report: Report, finding: Finding) -> str:
    shown = [escape(problem) for problem in report.first_problems(finding)]
    if not finding.looked_at:
        shown.insert(0, "it looked at nothing, and has proved nothing")
    more = len(finding.problems) - MOST_PROBLEMS
    if more > 0:
        shown.append(f"and {more:,} more")
    return f"<h3>{escape(finding.check)}</h3>{_list(shown)}"


def _row(report: Report, result: RowResult) -> str:
    place = report.results.index(result)
    event = _turn(report, result)
    drawn = ""
    window = None
    if event is not None and event.ended is not None and event.ended - event.began > _SHORTEST_SECONDS:
        window = Window(event.began, event.ended)
        drawn = f"<figure>{closeup(report.timeline, window, result.name)}</figure>"
    beside = [
        _findings(result),
        _figures(report, result),
        _counts("Faults", "fault", {_words(name): count for name, count in result.faults.items()}),
        _counts("Refused and unknown, by reason", "reason", result.operations.refusals),
        _distributions(result.distributions),
    ]
    parts = [
        f'<h2 id="r{place}">{escape(_named(result))} {_badge(result.verdict)}</h2>',
        f"<p>{escape(result.promise)}</p>",
        f'<p class="failed">{escape(report.shown(result.error))}</p>' if result.error else "",
        drawn,
        f'<div class="beside">{"".join(beside)}</div>',
        _methods("Calls", latency_by_method(report.timeline, window), level=3) if window is not None else "",
        f"<h3>What it does not show</h3>{_list(escape(report.shown(one)) for one in result.caveats)}"
        if result.caveats
        else "",
    ]
    return "".join(parts)


def _named(result: RowResult) -> str:
    return f"{result.row}. {result.name}" if result.row else result.name


def _turn(report: Report, result: RowResult) -> Event | None:
    for event in report.timeline.events:
        if event.lane is Lane.ROW and event.label == result.name and event.key == str(result.row):
            return event
    return None


def _findings(result: RowResult) -> str:
    if not result.findings:
        return ""
    rows = [
        f"<tr><td>{escape(finding.check)}</td><td>{_badge(finding.verdict)}</td>"
        f'<td class="number">{finding.looked_at:,}</td><td class="number">{len(finding.problems):,}</td></tr>'
        for finding in result.findings
    ]
    return _table(
        "Checks", '<th>check</th><th></th><th class="number">looked at</th><th class="number">problems</th>', rows
    )


def _figures(report: Report, result: RowResult) -> str:
    rows = [
        f'<tr><td>{escape(_words(name))}</td><td class="number">'
        f"{escape(report.shown(value) if isinstance(value, str) else _figure(name, value))}</td></tr>"
        for name, value in result.figures.items()
    ]
    return _table("Figures", '<th>figure</th><th class="number">value</th>', rows)


def _counts(title: str, of: str, counts: Mapping[str, int]) -> str:
    rows = [
        f'<tr><td>{escape(name)}</td><td class="number">{count:,}</td></tr>'
        for name, count in sorted(counts.items(), key=lambda one: -one[1])
    ]
    return _table(title, f'<th>{of}</th><th class="number">times</th>', rows)


def _distributions(found: Mapping[str, Distribution]) -> str:
    rows = [f"<tr><td>{escape(_words(name))}</td>{_cells(one)}</tr>" for name, one in found.items()]
    return _table("Distributions", f"<th></th>{_HEADS}", rows)


_HEADS: Final = "".join(f'<th class="number">{name}</th>' for name in ("count", "p50", "p90", "p99", "most"))


def _cells(one: Distribution) -> str:
    values = [
        duration(value) if one.unit == "seconds" else f"{value:,.6g} {escape(one.unit)}"
        for value in (one.p50, one.p90, one.p99, one.maximum)
    ]
    cells = "".join(f'<td class="number">{value}</td>' for value in values)
    return f'<td class="number">{one.count:,}</td>{cells}'


def _methods(title: str, methods: Mapping[str, Latencies], *, level: int) -> str:
    rows = []
    for method, found in methods.items():
        counts = "".join(
            f'<td class="number">{found.outcomes.get(outcome, 0):,}</td>' for outcome in ("refused", "unknown")
        )
        answered = (
            _cells(found.of_answers) if found.of_answers is not None else '<td class="number">0</td>' + "<td></td>" * 4
        )
        rows.append(
            f"<tr><td>{escape(method)}</td>{answered}{counts}<td>{_histogram(found.histogram, method)}</td></tr>"
        )
    if not rows:
        return ""
    heads = f'<th>method</th>{_HEADS}<th class="number">refused</th><th class="number">unknown</th><th>1 ms to 5 s</th>'
    return (
        f"<h{level}>{title}</h{level}>"
        f'<div class="wide"><table><thead><tr>{heads.replace(">count<", ">answered<", 1)}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _histogram(counts: Sequence[int], method: str) -> str:
    """Bars whose titles say what they count."""
    most = max(counts, default=0)
    if not most:
        return ""
    edges = [duration(edge) for edge in EDGES_SECONDS]
    between = [f"{shorter} to {longer}" for shorter, longer in itertools.pairwise(edges)]
    names = [f"up to {edges[0]}", *between, f"over {edges[-1]}"]
    wide = 190 / len(counts)
    bars = [
        f'<rect x="{place * wide:.1f}" y="{26 - 24 * count / most:.1f}" width="{wide - 1.5:.1f}" '
        f'height="{24 * count / most:.1f}" class="strong"><title>{name}: {count:,}</title></rect>'
        for place, (name, count) in enumerate(zip(names, counts, strict=True))
        if count
    ]
    label = escape(f"Latencies of {method}", quote=True)
    return (
        f'<svg class="small" viewBox="0 0 190 28" role="img" aria-label="{label}">'
        f'<path d="M0 26.5H190" class="axis"/>{"".join(bars)}</svg>'
    )


def _not_shown(report: Report) -> str:
    skipped = [
        f"Row {result.row}, {escape(result.name)}, was not tried."
        for result in report.results
        if result.verdict is Verdict.SKIPPED
    ]
    left_out = [report.left_out] if report.left_out else []
    said = [*left_out, *skipped, *(escape(report.shown(caveat)) for caveat in report.caveats)]
    return f"<h2>What this run does not show</h2>{_list(said)}"


def _made_of(report: Report) -> str:
    def table(title: str, values: Mapping[str, str | int | float]) -> str:
        rows = [
            f"<tr><td>{escape(_words(name))}</td><td>{escape(str(value))}</td></tr>" for name, value in values.items()
        ]
        return _table(title, "<th></th><th></th>", rows)

    return (
        f'<h2>What it ran on</h2><div class="beside">{table("Versions", report.versions)}'
        f"{table('Machine', report.machine)}</div>"
    )


def _table(title: str, heads: str, rows: Sequence[str]) -> str:
    if not rows:
        return ""
    return f"<div><h3>{title}</h3><table><thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"


def _list(items: Iterable[str]) -> str:
    said = "".join(f"<li>{item}</li>" for item in items)
    return f"<ul>{said}</ul>" if said else ""


def _badge(verdict: Verdict) -> str:
    return f'<span class="verdict {_WORDS[verdict]}">{_WORDS[verdict]}</span>'


def _words(name: str) -> str:
    """A name for people: without the unit, as the value has one that suits it."""
    return name.removesuffix(_SECONDS).replace("_seconds_", "_time_").replace("_", " ")


def _figure(name: str, value: float | int | str) -> str:
    if isinstance(value, str):
        return value
    if "seconds" in name.partition(": ")[0]:
        return duration(float(value))
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
