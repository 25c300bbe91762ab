"""The qualification against a deployment that it did not start: a server with two tenants' tokens."""

import asyncio
import hashlib
import json
from pathlib import Path

import pytest

from durable_memory_client import Evidence, MemoryClient, NodeStatus
from tests.conftest import StartServer
from tests.processes.server import ServerProcess
from tests.qualification.__main__ import main
from tests.qualification.deployment import Deployment, Identity, clean_up
from tests.qualification.report.pack import HYGIENE_OK, REPORT_JSON
from tests.qualification.report.timeline import Timeline
from tests.qualification.scenarios.table import BY_NUMBER

_ROLES = ["reader", "writer", "activator", "operator", "administrator"]
_TOKENS = {"acme": "token-of-acme-0123456789", "globex": "token-of-globex-0123456789"}


@pytest.fixture
def server(start_server: StartServer, tmp_path: Path) -> ServerProcess:
    entries = [
        {
            "sha256": hashlib.sha256(token.encode()).hexdigest(),
            "name": f"qualifier-{tenant}",
            "roles": _ROLES,
            "tenants": [tenant],
        }
        for tenant, token in _TOKENS.items()
    ]
    credentials = tmp_path / "credentials.json"
    credentials.write_text(json.dumps(entries))
    for tenant, token in _TOKENS.items():
        (tmp_path / f"{tenant}.token").write_text(token + "\n")
    return start_server("memory:", ["--credentials", str(credentials)])


def _visit(server: ServerProcess, folder: Path, *options: str) -> int:
    """The exit code of the command."""
    address = ["--endpoint", server.address, "--token-file", str(folder / "acme.token"), "--tenant", "acme"]
    return main([*address, "--principal", "qualifier", "--seed", "5", "--out", str(folder / "out"), *options])


def test_what_may_be_tried_is_tried_and_the_rest_is_skipped_with_its_reason(server: ServerProcess, tmp_path: Path):
    other = ["--other-token-file", str(tmp_path / "globex.token"), "--other-tenant", "globex"]

    code = _visit(server, tmp_path, "--minutes", "0.1", *other)

    kept = json.loads((tmp_path / "out" / REPORT_JSON).read_text())
    assert code == 0, kept
    assert {row["row"]: row["verdict"] for row in kept["rows"]} == {
        **dict.fromkeys((1, 3, 4, 5, 6, 7, 8, 9, 11), "skipped"),
        **dict.fromkeys((0, 2, 10), "pass"),
    }
    assert all(row["caveats"] for row in kept["rows"] if row["row"])
    assert all(
        (row["promise"] == BY_NUMBER[row["row"]].promise) is (row["verdict"] == "skipped")
        for row in kept["rows"]
        if row["row"]
    )
    for stated in ("--token-file", "--tenant acme", "--principal qualifier", "--other-tenant globex"):
        assert stated in kept["command"]
    assert kept["rows"][0]["operations"]["total"] > 0
    assert (tmp_path / "out" / HYGIENE_OK).exists()
    assert any(caveat.startswith("Left in the deployment: 4 namespaces") for caveat in kept["caveats"])
    asyncio.run(_all_is_put_away_in_the_scopes_of(kept["caveats"], server))


async def _all_is_put_away_in_the_scopes_of(caveats: list[str], server: ServerProcess) -> None:
    mark = next(word for caveat in caveats for word in caveat.split() if word.startswith("qualify-")).partition("-…")[0]
    for scope in ("use-a", "use-b", "race", "apart"):
        async with MemoryClient(
            server.address, _TOKENS["acme"], tenant="acme", principal="qualifier", scope=f"{mark}-{scope}"
        ) as client:
            nodes = await client.snapshot().all()
            assert nodes
            assert not [node for node in nodes if node.status in (NodeStatus.ACTIVE, NodeStatus.CANDIDATE)]


async def test_a_candidate_that_nobody_decided_about_is_rejected_at_the_end(server: ServerProcess):
    identity = Identity(token=_TOKENS["acme"], tenant="acme", principal="qualifier")
    deployment = Deployment(server.address, identity, timeline=Timeline())
    async with deployment.client("", scope="left") as client:
        await client.propose("Tea is served at four.", evidence=[Evidence.user_statement("chat:1", "It is.")])

        left = await clean_up(deployment)

        assert (left.rejected, left.failures) == (1, 0)
        assert [node.status for node in await client.snapshot().all()] == [NodeStatus.TOMBSTONED]


def test_nothing_is_taken_from_the_environment(
    server: ServerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("DURABLE_MEMORY_TOKEN", _TOKENS["acme"])
    monkeypatch.setenv("DURABLE_MEMORY_TENANT", "acme")

    assert main(["--endpoint", server.address, "--minutes", "0.1", "--out", str(tmp_path / "out")]) == 1

    assert "the deployment refuses: " in capsys.readouterr().out


def test_another_tenant_that_is_not_named_is_its_tokens_own(
    server: ServerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("DURABLE_MEMORY_TENANT", "acme")
    other = ["--other-token-file", str(tmp_path / "globex.token")]

    assert _visit(server, tmp_path, "--minutes", "0.1", "--rows", "10", *other) == 0


def test_a_row_that_was_asked_for_and_may_not_be_tried_is_no_pass(server: ServerProcess, tmp_path: Path):
    assert _visit(server, tmp_path, "--minutes", "0.1", "--rows", "4") == 1


def test_two_tokens_of_one_tenant_are_not_apart(server: ServerProcess, tmp_path: Path):
    other = ["--other-token-file", str(tmp_path / "acme.token"), "--other-tenant", "acme"]

    assert _visit(server, tmp_path, "--minutes", "0.1", "--rows", "10", *other) == 1

    (row,) = json.loads((tmp_path / "out" / REPORT_JSON).read_text())["rows"]
    failed = {finding["check"] for finding in row["findings"] if finding["verdict"] == "fail"}
    assert "another tenant's namespace is denied" in failed
    assert "nothing was changed from outside" in failed


def test_a_token_that_is_refused_ends_the_run_with_a_sentence(
    server: ServerProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "acme.token").write_text("another")

    assert _visit(server, tmp_path) == 1

    assert "the deployment refuses: " in capsys.readouterr().out
