"""A run over a cluster that is made up: what it does with what scenarios find, break and raise."""

import asyncio
import errno
import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self, cast

import pytest

from tests.qualification import run as running
from tests.qualification.report.pack import HYGIENE_OK, MANIFEST, REPORT_HTML, REPORT_JSON
from tests.qualification.report.report import WITHHELD
from tests.qualification.report.results import Verdict
from tests.qualification.report.timeline import Lane, Series, Timeline
from tests.qualification.run import Run
from tests.qualification.scenarios.stage import Scenario, Stage
from tests.qualification.scenarios.table import ROWS, MissingRowError, Row

_TOKEN = "a-token-of-this-run"
_CANARY = "qabsolutelynowhere"
_COMMAND = "python -m tests.qualification --seed 7"


class _MadeUpCluster:
    """Healthy unless it is told otherwise."""

    def __init__(self, folder: Path, timeline: Timeline) -> None:
        self.folder = folder
        self.timeline = timeline
        self.secrets = [_TOKEN]
        self.canary = _CANARY
        self.servers: list[Any] = []
        self.postgres = self.redis = SimpleNamespace(nodes=(), sentinels=())
        self.telemetry = SimpleNamespace(raw_path=folder / "otlp.bin", raw_bytes_lost=0)
        self.broken = False
        self.ended = False

    @property
    def logs(self) -> list[Path]:
        return sorted(self.folder.glob("*.log"))

    async def healthy(self) -> list[str]:
        return ["server-1 does not run"] if self.broken else []

    async def __aenter__(self) -> Self:
        (self.folder / "server-0.log").write_text('{"event": "started"}\n')
        self.telemetry.raw_path.touch()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.ended = True


@dataclass
class _Clusters:
    opened: list[_MadeUpCluster] = field(default_factory=list)

    def __call__(self, folder: Path, timeline: Timeline, number: int) -> Any:
        self.opened.append(_MadeUpCluster(folder, timeline))
        return self.opened[-1]


class _Played:
    def __init__(self, row: int, play: Callable[[Stage], Any], name: str = "played") -> None:
        self.row = row
        self.name = name
        self.promise = "it plays"
        self._play = play

    async def run(self, stage: Stage) -> None:
        await self._play(stage)


async def _passes(stage: Stage) -> None:
    stage.found("a check", 3, [])


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "_HEALTHY_SECONDS", 0.0)


@pytest.fixture
def clusters() -> _Clusters:
    return _Clusters()


def _run(
    out: Path, clusters: _Clusters, *rows: int, minutes: float = 1, say: Callable[[str], None] = print, **plays: Any
) -> Run:
    """`plays`: `row_2` for what the second row does; the rest passes."""

    def find(row: Row) -> tuple[Scenario, Sequence[Scenario]]:
        found = plays.get(f"row_{row.number}", _passes)
        if isinstance(found, MissingRowError):
            raise found
        return _Played(row.number, found), tuple(plays.get("regressions", ()))

    return Run(7, minutes, rows, out, command=_COMMAND, open_cluster=clusters, find=find, say=say)


async def test_a_run_passes_when_all_rows_do_and_leaves_a_pack_that_says_so(tmp_path: Path, clusters: _Clusters):
    said: list[str] = []

    report = await _run(tmp_path, clusters, say=said.append).run()

    assert report.passed
    assert [result.row for result in report.results] == [row.number for row in ROWS]
    kept = json.loads((tmp_path / REPORT_JSON).read_text())
    assert kept["verdict"] == "pass"
    assert kept["seed"] == 7
    assert [row["promise"] for row in kept["rows"]] == [row.promise for row in ROWS]
    manifest = json.loads((tmp_path / MANIFEST).read_text())["files"]
    for name in (REPORT_JSON, REPORT_HTML):
        content = (tmp_path / name).read_bytes()
        assert manifest[name] == {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    assert kept["rows_not_run"] == []
    assert (tmp_path / HYGIENE_OK).exists()
    assert [line.split()[0] for line in said[:-1]] == ["PASS"] * len(ROWS)
    assert said[-1].endswith(REPORT_HTML)
    assert [cluster.ended for cluster in clusters.opened] == [True]


async def test_a_run_of_some_rows_says_which_were_not_run(tmp_path: Path, clusters: _Clusters):
    said: list[str] = []

    report = await _run(tmp_path, clusters, 1, 2, 5, 11, say=said.append).run()

    assert report.passed
    sentence = "Rows 3, 4, 6 to 10 were not run."
    assert sentence in said
    assert json.loads((tmp_path / REPORT_JSON).read_text())["rows_not_run"] == [3, 4, 6, 7, 8, 9, 10]
    assert (tmp_path / REPORT_HTML).read_text().count(sentence) == 2


async def test_every_row_has_its_own_chance_prefix_and_share_of_the_time(tmp_path: Path, clusters: _Clusters):
    stages: list[Stage] = []

    async def keep(stage: Stage) -> None:
        stages.append(stage)
        await _passes(stage)

    await _run(tmp_path, clusters, 1, 2, 11, minutes=2, row_1=keep, row_2=keep).run()
    again, stages = stages, []
    await _run(tmp_path / "again", clusters, 2, minutes=2, row_2=keep).run()

    assert [stage.prefix for stage in again] == ["q01", "q02"]
    assert again[1].rng.random() == stages[0].rng.random()
    assert again[0].rng.random() != again[1].rng.random()
    assert again[0].seconds / again[1].seconds == pytest.approx(60 / 40)
    assert sum(stage.seconds for stage in again) < 120


async def test_what_a_scenario_raises_fails_its_row_and_the_others_go_on(tmp_path: Path, clusters: _Clusters):
    async def breaks(stage: Stage) -> None:
        stage.timeline.sample(Series.LATENCY_SECONDS, 0.1, key="Recall unknown")
        raise RuntimeError("the observer lost its connection")

    said: list[str] = []
    report = await _run(tmp_path, clusters, 1, 2, say=said.append, row_1=breaks).run()

    assert [result.verdict for result in report.results] == [Verdict.FAIL, Verdict.PASS]
    assert report.results[0].error == "RuntimeError: the observer lost its connection"
    assert not report.passed
    assert report.results[0].operations.attempts == {("Recall", "unknown"): 1}
    assert "in breaks" in (tmp_path / "run.log").read_text()
    assert "Traceback" not in (tmp_path / REPORT_JSON).read_text()
    assert said[-1] == f"again: {_COMMAND}"


async def test_a_row_without_a_scenario_fails(tmp_path: Path, clusters: _Clusters):
    report = await _run(tmp_path, clusters, 1, 2, row_2=MissingRowError("row 2 has no module")).run()

    assert [result.verdict for result in report.results] == [Verdict.PASS, Verdict.FAIL]
    assert report.results[1].error == "row 2 has no module"


async def test_a_scenario_that_finds_nothing_has_proved_nothing(tmp_path: Path, clusters: _Clusters):
    async def idle(stage: Stage) -> None:
        return None

    said: list[str] = []
    report = await _run(tmp_path, clusters, 1, say=said.append, row_1=idle).run()

    assert report.results[0].verdict is Verdict.FAIL
    assert "no check looked at anything" in said[1]


async def test_a_cluster_that_stays_broken_fails_the_row_and_the_next_one_gets_another(
    tmp_path: Path, clusters: _Clusters
):
    async def breaks(stage: Stage) -> None:
        await _passes(stage)
        cast(Any, stage.cluster).broken = True

    report = await _run(tmp_path, clusters, 1, 2, row_1=breaks).run()

    assert [result.verdict for result in report.results] == [Verdict.FAIL, Verdict.PASS]
    assert report.results[0].findings[-1].problems == ["after it: server-1 does not run"]
    assert [cluster.ended for cluster in clusters.opened] == [True, True]
    assert sorted(path.name for path in (tmp_path / "logs").iterdir()) == ["cluster-1", "cluster-2"]


async def test_a_scenario_that_does_not_end_is_ended(
    tmp_path: Path, clusters: _Clusters, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(running, "_ANYWAY_SECONDS", 0.05)
    ended = asyncio.Event()

    async def hangs(stage: Stage) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    report = await _run(tmp_path, clusters, 1, 2, minutes=0.001, row_1=hangs).run()

    assert ended.is_set()
    assert report.results[0].error.startswith("it was not done after")
    assert report.results[1].verdict is Verdict.PASS


async def test_a_scenario_that_goes_on_after_its_end_does_so_without_the_next_ones_cluster(
    tmp_path: Path, clusters: _Clusters, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(running, "_ANYWAY_SECONDS", 0.05)
    monkeypatch.setattr(running, "_CANCEL_SECONDS", 0.02)
    monkeypatch.setattr(running, "_CANCEL_AGAIN_SECONDS", 0.01)
    given, told = list[Any](), 0
    ended = asyncio.Event()

    async def goes_on(stage: Stage) -> None:
        nonlocal told
        given.append(stage.cluster)
        while not cast(Any, stage.cluster).ended or told < 8:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                told += 1
        ended.set()

    async def keeps(stage: Stage) -> None:
        given.append(stage.cluster)
        await ended.wait()
        await _passes(stage)

    report = await _run(tmp_path, clusters, 1, 2, minutes=0.001, row_1=goes_on, row_2=keeps).run()

    assert report.results[0].error.endswith("and lost its cluster")
    assert report.results[1].verdict is Verdict.PASS
    assert given == clusters.opened
    assert len(given) == 2


async def test_a_cluster_that_does_not_start_fails_every_row(tmp_path: Path):
    def refuses(folder: Path, timeline: Timeline, number: int) -> Any:
        raise OSError("no PostgreSQL here")

    def find(row: Row) -> tuple[Scenario, Sequence[Scenario]]:
        return _Played(row.number, _passes), ()

    report = await Run(1, 1, (1, 2), tmp_path, command=_COMMAND, open_cluster=refuses, find=find).run()

    assert [result.error for result in report.results] == [
        "the cluster does not start: OSError: no PostgreSQL here"
    ] * 2


async def test_a_run_that_is_ended_writes_what_there_is(tmp_path: Path, clusters: _Clusters):
    started = asyncio.Event()

    async def waits(stage: Stage) -> None:
        started.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(_run(tmp_path, clusters, 1, 2, 3, row_2=waits).run())
    await started.wait()
    task.cancel()
    report = await task

    assert [result.verdict for result in report.results] == [Verdict.PASS, Verdict.FAIL, Verdict.FAIL]
    assert json.loads((tmp_path / REPORT_JSON).read_text())["caveats"][0] == "The run was ended before it was done."
    assert clusters.opened[0].ended


async def test_a_past_fault_is_tried_after_its_row(tmp_path: Path, clusters: _Clusters):
    past = _Played(1, _passes, "a token that was cut off")

    report = await _run(tmp_path, clusters, 1, regressions=[past]).run()

    assert [result.name for result in report.results] == ["repeated restart", "regression: a token that was cut off"]
    assert [event.key for event in report.timeline.events if event.lane is Lane.ROW] == ["1", "1"]


@pytest.mark.parametrize("planted", [_TOKEN, _CANARY])
async def test_a_leak_in_a_log_fails_hygiene_and_leaves_the_pack_without_its_mark(
    tmp_path: Path, clusters: _Clusters, planted: str
):
    async def leaks(stage: Stage) -> None:
        await _passes(stage)
        with (cast(Any, stage.cluster).folder / "server-0.log").open("a") as log:
            log.write(f"authorization: {planted}\n")

    said: list[str] = []
    report = await _run(tmp_path, clusters, 1, 11, say=said.append, row_1=leaks).run()

    assert [result.verdict for result in report.results] == [Verdict.PASS, Verdict.FAIL]
    assert not (tmp_path / HYGIENE_OK).exists()
    assert json.loads((tmp_path / REPORT_JSON).read_text())["verdict"] == "fail"
    assert any("server-0.log: " in line and planted not in line for line in said)


async def test_a_disk_without_room_for_a_log_fails_hygiene_and_the_report_says_so(
    tmp_path: Path, clusters: _Clusters, monkeypatch: pytest.MonkeyPatch
):
    def half(source: Path, kept: Path) -> None:
        kept.write_bytes(source.read_bytes()[:3])
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(shutil, "copyfile", half)

    report = await _run(tmp_path, clusters, 1, 11).run()

    assert [result.verdict for result in report.results] == [Verdict.PASS, Verdict.FAIL]
    assert "server-0.log is gone, and was not looked at" in report.results[1].findings[-1].problems
    assert json.loads((tmp_path / REPORT_JSON).read_text())["verdict"] == "fail"
    assert not (tmp_path / HYGIENE_OK).exists()
    assert not list((tmp_path / "logs" / "cluster-1").iterdir())


async def test_telemetry_that_was_lost_fails_hygiene_also_if_its_cluster_was_replaced(
    tmp_path: Path, clusters: _Clusters
):
    async def loses(stage: Stage) -> None:
        await _passes(stage)
        cast(Any, stage.cluster).telemetry.raw_bytes_lost = 7
        cast(Any, stage.cluster).broken = True

    report = await _run(tmp_path, clusters, 1, 2, 11, row_1=loses).run()

    assert [result.verdict for result in report.results] == [Verdict.FAIL, Verdict.PASS, Verdict.FAIL]
    assert report.results[2].findings[-1].problems == ["7 bytes of cluster 1's telemetry found no room on the disk"]


async def test_telemetry_is_written_where_it_is_kept_and_looked_through_without_a_copy(
    tmp_path: Path, clusters: _Clusters, monkeypatch: pytest.MonkeyPatch
):
    copied = set[str]()

    def copyfile(source: Path, kept: Path) -> None:
        copied.add(source.name)
        kept.touch()

    monkeypatch.setattr(shutil, "copyfile", copyfile)
    out = tmp_path / "out"
    made = running._cluster_of(7, None, out / "logs")(tmp_path, Timeline(), 1)

    async def leaks(stage: Stage) -> None:
        await _passes(stage)
        cast(Any, stage.cluster).telemetry = cast(Any, made).telemetry
        cast(Any, made).telemetry.raw_path.write_text(_TOKEN)

    report = await _run(out, clusters, 1, 11, row_1=leaks).run()
    await cast(Any, made).telemetry.__aexit__(None, None, None)

    assert (out / "logs" / "cluster-1" / "otlp.bin").read_text() == _TOKEN
    assert copied == {"server-0.log"}
    assert report.results[1].findings[-1].problems == ["otlp.bin: secret at byte 0"]


async def test_a_cluster_that_does_not_start_leaves_no_telemetry_that_nobody_looks_through(tmp_path: Path):
    def refuses(folder: Path, timeline: Timeline, number: int) -> Any:
        kept = tmp_path / "logs" / f"cluster-{number}"
        kept.mkdir(parents=True)
        (kept / "otlp.bin").write_text(_TOKEN)
        raise OSError("no PostgreSQL here")

    def find(row: Row) -> tuple[Scenario, Sequence[Scenario]]:
        return _Played(row.number, _passes), ()

    await Run(1, 1, (1,), tmp_path, command=_COMMAND, open_cluster=refuses, find=find).run()

    assert not (tmp_path / "logs" / "cluster-1" / "otlp.bin").exists()


async def test_the_more_there_is_to_scan_the_longer_hygiene_may_take(
    tmp_path: Path, clusters: _Clusters, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(running, "_ANYWAY_SECONDS", 0.05)
    monkeypatch.setattr(running, "_SCANNED_BYTES_PER_SECOND", 10_000)

    async def hangs(stage: Stage) -> None:
        cast(Any, stage.cluster).telemetry.raw_path.write_bytes(bytes(6_000))
        await asyncio.Event().wait()

    report = await _run(tmp_path, clusters, 1, 11, minutes=0.0001, row_1=hangs, row_11=hangs).run()

    assert [result.error for result in report.results] == [
        "it was not done after 0 seconds",
        "it was not done after 1 seconds",
    ]


async def test_a_report_withholds_problems_that_would_tell_a_text(tmp_path: Path, clusters: _Clusters):
    async def tells(stage: Stage) -> None:
        stage.found("texts are not mixed up", 1, [f"node 1 has the text {_CANARY} tea"])

    report = await _run(tmp_path, clusters, 1, row_1=tells).run()

    assert not report.passed
    for name in (REPORT_JSON, REPORT_HTML):
        assert _CANARY not in (tmp_path / name).read_text()
        assert WITHHELD in (tmp_path / name).read_text()
    assert (tmp_path / HYGIENE_OK).exists()


async def test_a_row_that_the_table_does_not_have_is_refused(tmp_path: Path, clusters: _Clusters):
    with pytest.raises(ValueError, match="there is no row 12"):
        await _run(tmp_path, clusters, 12).run()


async def test_a_long_run_explores_for_the_rest_of_its_time_and_hygiene_comes_last(tmp_path: Path, clusters: _Clusters):
    given: dict[str, float] = {}

    async def keep(stage: Stage) -> None:
        given[stage.prefix] = stage.seconds
        await _passes(stage)

    report = await _run(tmp_path, clusters, minutes=30, row_0=keep, row_1=keep).run()

    assert [result.row for result in report.results] == [*range(1, 11), 0, 11]
    assert given["q00"] == 20 * 60
    assert given["q01"] < 60
