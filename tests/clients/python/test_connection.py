"""Where the client connects to, and what it refuses to send where."""

import pytest

from durable_memory_client import MemoryClient, Namespace, Tls
from durable_memory_client.connection import Connection, Token, resolve_connection, resolve_namespace
from durable_memory_client.sync import MemoryClient as BlockingMemoryClient
from tests.clients.python.fake_service import FakeService


def test_the_default_is_a_server_on_this_machine():
    connection = resolve_connection(None, None, None, ())
    assert connection == Connection(target="127.0.0.1:7447")
    assert connection.credentials() is None
    assert ("grpc.enable_http_proxy", 0) in connection.channel_options()


def test_what_an_argument_leaves_open_the_environment_says(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DURABLE_MEMORY_ADDRESS", "https://memory.example:443")
    monkeypatch.setenv("DURABLE_MEMORY_TOKEN", "from-the-environment")
    monkeypatch.setenv("DURABLE_MEMORY_TENANT", "acme")
    monkeypatch.setenv("DURABLE_MEMORY_PRINCIPAL", "user-1")
    monkeypatch.setenv("DURABLE_MEMORY_SCOPE", "project-a")

    connection = resolve_connection(None, None, None, ())
    assert (connection.target, connection.token) == ("memory.example:443", "from-the-environment")
    assert connection.tls == Tls()
    assert resolve_namespace(None, "user-2", None) == Namespace("acme", "user-2", "project-a")
    assert resolve_connection("127.0.0.1:1", "stated", None, ()).token == "stated"


def test_a_part_of_the_namespace_that_nobody_states_is_left_to_the_server():
    assert not resolve_namespace("acme", None, None).to_proto().HasField("scope_id")


@pytest.mark.parametrize(
    ("address", "tls", "target", "secure"),
    [
        ("memory.example:443", True, "memory.example:443", True),
        ("memory.example:443", None, "memory.example:443", False),
        ("https://memory.example:443/", None, "memory.example:443", True),
        ("http://127.0.0.1:7447", None, "127.0.0.1:7447", False),
        ("dns:///memory.example:7447", None, "dns:///memory.example:7447", False),
    ],
)
def test_an_address_may_say_whether_it_is_tls(address: str, tls: bool | None, target: str, secure: bool):
    connection = resolve_connection(address, None, tls, ())
    assert connection.target == target
    assert (connection.credentials() is not None) is secure


@pytest.mark.parametrize(("address", "tls"), [("http://memory.example:1", True), ("https://memory.example:1", False)])
def test_a_contradiction_is_refused(address: str, tls: bool):
    with pytest.raises(ValueError, match="contradicts"):
        resolve_connection(address, None, tls, ())


@pytest.mark.parametrize("address", ["memory.example:7447", "10.0.0.1:7447", "dns:///memory.example:7447"])
def test_a_token_never_leaves_the_machine_in_clear_text_unasked(address: str):
    with pytest.raises(ValueError, match="clear text") as caught:
        resolve_connection(address, "secret-token", None, ())
    assert "secret-token" not in str(caught.value)

    assert resolve_connection(address, "secret-token", False, ()).token == "secret-token"


@pytest.mark.parametrize("address", ["127.0.0.1:7447", "localhost:7447", "[::1]:7447", "unix:/run/memory.sock"])
def test_a_token_for_this_machine_needs_no_tls(address: str):
    assert resolve_connection(address, "secret-token", None, ()).token == "secret-token"


def test_neither_client_nor_connection_prints_the_token():
    connection = resolve_connection("127.0.0.1:1", "secret-token", None, ())
    tls = Tls(private_key=b"secret-key")
    for text in (repr(connection), repr(tls), repr(MemoryClient("127.0.0.1:1", "secret-token"))):
        assert "secret" not in text


def test_a_view_of_another_namespace_keeps_what_it_does_not_replace():
    memory = MemoryClient(tenant="acme", principal="user-1", scope="project-a")
    assert memory.namespace(scope="project-b").ref == Namespace("acme", "user-1", "project-b")
    assert memory.namespace("other", "user-2", "x").ref == Namespace("other", "user-2", "x")
    assert memory.ref == Namespace("acme", "user-1", "project-a")


def test_an_impossible_choice_is_refused_at_once():
    with pytest.raises(ValueError, match="on_unavailable"):
        MemoryClient(on_unavailable="ignore")  # type: ignore[arg-type]


@pytest.mark.parametrize("token", ["secret-token\n", lambda: " secret-token\r\n"], ids=["stated", "function"])
async def test_the_line_end_of_the_file_that_a_token_comes_from_is_not_sent(token: Token, service: FakeService):
    async with MemoryClient(service.address, token) as memory:
        await memory.get_change_token()
    with BlockingMemoryClient(service.address, token) as blocking_memory:
        blocking_memory.get_change_token()
    assert [asked.headers["authorization"] for asked in service.asked] == ["Bearer secret-token"] * 2


@pytest.mark.parametrize("token", ["secret\ntoken", "secret token", "secret-tök​en", " \n"])
async def test_a_token_that_cannot_be_sent_is_refused_and_never_quoted(token: str, service: FakeService):
    with pytest.raises(ValueError, match="the token has characters") as stated:
        MemoryClient(service.address, token)
    async with MemoryClient(service.address, lambda: token) as memory:
        with pytest.raises(ValueError, match="the token has characters") as asked:
            await memory.get_change_token()
    with (
        BlockingMemoryClient(service.address, lambda: token) as blocking_memory,
        pytest.raises(ValueError, match="the token has characters") as blocking,
    ):
        blocking_memory.get_change_token()
    assert not [caught for caught in (stated, asked, blocking) if "secret" in str(caught.value)]
    assert service.asked == []


async def test_a_function_that_has_no_token_sends_none(service: FakeService):
    async with MemoryClient(service.address, lambda: "") as memory:
        await memory.get_change_token()
    assert "authorization" not in service.asked[0].headers
