"""Tokens and certificates, on the wire."""

import hashlib
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from durable_memory_client import Decision, Evidence, MemoryClient, MemoryUnavailableError, Namespace, Tls, errors
from durable_memory_client.sync import MemoryClient as BlockingMemoryClient
from tests.clients.python.fake_service import FakeService
from tests.conftest import StartServer
from tests.processes.server import ServerProcess

GET_CHANGE_TOKEN = "RepositoryService.GetChangeToken"


@pytest.fixture
def guarded_server(start_server: StartServer, tmp_path: Path) -> ServerProcess:
    """An agent that proposes, and a reviewer that decides; both are bound to one namespace."""
    keys = tmp_path / "keys.json"
    bound = {"tenants": ["acme"], "principals": ["user-1"], "scopes": ["project-a"]}
    roles = {"agent": ["reader", "writer"], "reviewer": ["reader", "writer", "activator"]}
    keys.write_text(
        json.dumps(
            [
                {"sha256": hashlib.sha256(name.encode()).hexdigest(), "name": name, "roles": roles[name], **bound}
                for name in roles
            ]
        )
    )
    keys.chmod(0o600)
    return start_server("memory:", args=("--credentials", str(keys)))


async def test_who_proposes_need_not_be_allowed_to_decide(guarded_server: ServerProcess):
    async with MemoryClient(guarded_server.address, "agent") as agent:
        proposed = await agent.propose("The user prefers tea.", evidence=[Evidence.user_statement("chat:1", "Tea.")])
        with pytest.raises(errors.PermissionDeniedError) as caught:
            await agent.activate(proposed, Decision.manual())
        assert caught.value.metadata["required_role"] == "activator"
        assert caught.value.definite

        async with MemoryClient(guarded_server.address, "reviewer") as reviewer:
            assert (await reviewer.server_info()).caller == "reviewer"
            await reviewer.activate(proposed, Decision.manual())

        node = await agent.get_node(proposed.citation.node_id)
        assert (node.status, node.decided_by) == ("ACTIVE", "reviewer")


async def test_what_the_credential_implies_need_not_be_stated(guarded_server: ServerProcess):
    async with MemoryClient(guarded_server.address, "agent") as memory:
        session = await memory.open_session("assistant")
        assert session.namespace == Namespace("acme", "user-1", "project-a")
        with pytest.raises(errors.PermissionDeniedError):
            await memory.namespace(scope="project-b").get_change_token()


@pytest.mark.parametrize("token", [None, "nobody"])
async def test_nobody_gets_in_without_a_valid_token(token: str | None, guarded_server: ServerProcess):
    async with MemoryClient(guarded_server.address, token, on_unavailable="empty") as memory:
        with pytest.raises(errors.CredentialsInvalidError):
            await memory.open_session("assistant")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    """Key and certificate of `memory.example`."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificate")
    folder = tmp_path_factory.mktemp("certificate")
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=memory.example"),
            *("-addext", "subjectAltName=DNS:memory.example", "-keyout", "key.pem", "-out", "certificate.pem"),
        ],
        check=True,
        capture_output=True,
        cwd=folder,
    )
    return (folder / "key.pem").read_bytes(), (folder / "certificate.pem").read_bytes()


@pytest.fixture
def secure_service(certificate: tuple[bytes, bytes]) -> Iterator[FakeService]:
    with FakeService(certificate) as service:
        yield service


async def test_tls_with_a_certificate_of_one_s_own(secure_service: FakeService, certificate: tuple[bytes, bytes]):
    tls = Tls(root_certificates=certificate[1], server_name="memory.example")
    async with MemoryClient(f"https://{secure_service.address}", "token-1", tls=tls) as memory:
        await memory.get_change_token()
    with BlockingMemoryClient(secure_service.address, "token-1", tls=tls) as blocking_memory:
        blocking_memory.get_change_token()

    sent = [asked.headers["authorization"] for asked in secure_service.calls(GET_CHANGE_TOKEN)]
    assert sent == ["Bearer token-1"] * 2


async def test_a_server_that_is_not_trusted_is_sent_nothing(secure_service: FakeService):
    async with MemoryClient(f"https://{secure_service.address}", "token-1") as memory:
        with pytest.raises(MemoryUnavailableError):
            await memory.get_change_token(timeout=0.5)
    assert secure_service.asked == []
