"""TLS: the server is who its certificate says, or nothing is sent to it."""

import os
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from redis.crc import REDIS_CLUSTER_HASH_SLOTS

from durable_memory.config import PREFIX, EmbeddingSettings, Settings, SettingsError
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.main import read_access
from durable_memory.store_url import parse_store_url
from tests.conformance.index_samples import grant, publish
from tests.integration.redis.conftest import OpenIndex, made
from tests.integration.redis.told_sentinel import NAME, ToldSentinel
from tests.processes.certificates import Authority, Certificate
from tests.processes.free_port import free_port
from tests.processes.polling import wait_until
from tests.processes.proxy import Fate, TcpProxy, Way
from tests.processes.redis import RedisProcess
from tests.processes.redis_binaries import system_redis

_PASSWORD = "hunter2"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "authority")


@pytest.fixture
def another_authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "another authority")


def _secured(authority: Authority, host: str = "localhost", **settings: str) -> RedisProcess:
    """A server whose certificate is for that host."""
    own = authority.issue(host)
    secure = {
        "tls-port": str(free_port()),
        "tls-cert-file": str(own.certificate),
        "tls-key-file": str(own.key),
        "tls-ca-cert-file": str(authority.certificate),
        "tls-auth-clients": "no",
    }
    return RedisProcess(system_redis(), settings={**secure, **settings})


@pytest.fixture
def server(authority: Authority) -> Iterator[RedisProcess]:
    with _secured(authority) as server:
        yield server


def _identity(own: Certificate) -> str:
    return f"ssl_certfile={own.certificate}&ssl_keyfile={own.key}"


async def test_a_server_with_a_certificate_that_is_known_is_used(server, authority, open_index: OpenIndex, partition):
    opened = await open_index(f"rediss://localhost:{server.tls_port}/0?ssl_ca_certs={authority.certificate}")
    manifest = await publish(opened.index, partition, await grant(opened.leases, partition))
    assert await opened.index.manifest(partition) == manifest
    await opened.index.close()


@pytest.mark.parametrize(
    ("host", "trusted", "problem"),
    [
        ("localhost", "the machine's own", "certificate is not trusted"),
        ("localhost", "another", "certificate is not trusted"),
        ("127.0.0.1", "its own", "certificate is for another host name"),
    ],
)
async def test_a_server_that_cannot_prove_who_it_is_is_not_used(
    server, authority, another_authority, host: str, trusted: str, problem: str
):
    known = {"its own": authority, "another": another_authority}
    options = f"?ssl_ca_certs={known[trusted].certificate}" if trusted in known else ""
    with pytest.raises(DomainError, match=problem) as refusal:
        await made(f"rediss://:{_PASSWORD}@{host}:{server.tls_port}/0{options}", attempts=1).index.open()
    assert refusal.value.reason is Reason.DEPENDENCY_UNAVAILABLE
    assert _PASSWORD not in f"{refusal.value!r} {refusal.value.__cause__!r}"


async def test_a_server_without_tls_hears_no_password_where_tls_is_wanted(redis_server: RedisProcess, authority):
    sent: list[bytes] = []

    def cut_after_the_first(way: Way, chunk: bytes) -> Fate:
        """A server without TLS waits for the end of what it takes for a command."""
        sent.append(chunk)
        return Fate.CUT_AFTER

    async with TcpProxy(redis_server.port) as proxy:
        proxy.rule = cut_after_the_first
        url = f"rediss://:{_PASSWORD}@localhost:{proxy.port}/0?ssl_ca_certs={authority.certificate}"
        with pytest.raises(DomainError) as refusal:
            await made(url, attempts=2).index.open()
    assert refusal.value.reason is Reason.DEPENDENCY_UNAVAILABLE
    assert sent
    assert not [chunk for chunk in sent if _PASSWORD.encode() in chunk]


async def test_a_server_that_wants_a_certificate_of_its_clients_takes_one_of_its_authority_and_no_other(
    authority, another_authority, open_index: OpenIndex
):
    with _secured(authority, **{"tls-auth-clients": "yes"}) as server:
        url = f"rediss://localhost:{server.tls_port}/0?ssl_ca_certs={authority.certificate}"
        for options in ("", f"&{_identity(another_authority.issue('stranger'))}"):
            with pytest.raises(DomainError) as refusal:
                await made(f"{url}{options}", attempts=1).index.open()
            assert refusal.value.reason is Reason.DEPENDENCY_UNAVAILABLE
        opened = await open_index(f"{url}&{_identity(authority.issue('client'))}")
        await opened.index.check()
        await opened.index.close()


async def test_the_servers_of_a_cluster_have_to_prove_who_they_are(
    authority, another_authority, open_index: OpenIndex, partition
):
    # What a cluster tells of its servers are addresses, unless it is told otherwise.
    settings = {"cluster-enabled": "yes", "cluster-port": str(free_port()), "tls-cluster": "yes"}
    with _secured(authority, "127.0.0.1", **settings) as server:
        with server.client() as client:
            client.execute_command("CLUSTER ADDSLOTS", *range(REDIS_CLUSTER_HASH_SLOTS))
            wait_until(lambda: client.execute_command("CLUSTER INFO")["cluster_state"] == "ok", what="it is whole")
        url = f"rediss+cluster://127.0.0.1:{server.tls_port}"
        opened = await open_index(f"{url}?ssl_ca_certs={authority.certificate}")
        manifest = await publish(opened.index, partition, await grant(opened.leases, partition))
        assert await opened.index.manifest(partition) == manifest
        await opened.index.close()
        with pytest.raises(DomainError, match="certificate is not trusted"):
            await made(f"{url}?ssl_ca_certs={another_authority.certificate}", attempts=1).index.open()


async def test_sentinels_and_the_primary_that_they_name_both_have_to_prove_who_they_are(
    server, authority, open_index: OpenIndex, partition
):
    own = authority.issue("localhost")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(own.certificate, own.key)
    sentinel = ToldSentinel(server.tls_port, 1, host="localhost")
    async with sentinel.serving(context):
        url = f"rediss+sentinel://localhost:{sentinel.port}/{NAME}"
        opened = await open_index(f"{url}?ssl_ca_certs={authority.certificate}")
        manifest = await publish(opened.index, partition, await grant(opened.leases, partition))
        assert await opened.index.manifest(partition) == manifest
        await opened.index.close()
        with pytest.raises(DomainError, match="no sentinel answers: its certificate is not trusted"):
            await made(url, attempts=1).index.open()
    sentinel = ToldSentinel(server.tls_port, 1)  # by its address, which the certificate does not have
    async with sentinel.serving(context):
        with pytest.raises(DomainError, match="cannot be reached: its certificate is for another host name"):
            await made(
                f"rediss+sentinel://localhost:{sentinel.port}/{NAME}?ssl_ca_certs={authority.certificate}"
            ).index.open()


async def test_who_names_an_authority_trusts_no_other(
    server, authority, another_authority, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.certificate))  # what the machine trusts
    url = f"rediss://localhost:{server.tls_port}/0"
    index = made(url, attempts=1).index
    await index.open()
    await index.close()
    with pytest.raises(DomainError, match="certificate is not trusted"):
        await made(f"{url}?ssl_ca_certs={another_authority.certificate}", attempts=1).index.open()


async def test_files_that_were_replaced_are_read_by_the_next_connection(
    server, authority, another_authority, open_index: OpenIndex, tmp_path: Path
):
    trusted = tmp_path / "trusted.pem"
    trusted.write_text(authority.certificate.read_text())
    opened = await open_index(f"rediss://localhost:{server.tls_port}/0?ssl_ca_certs={trusted}")

    async def check_anew() -> None:
        with server.client() as client:
            client.execute_command("CLIENT KILL TYPE normal SKIPME yes")
        await opened.index.check()

    await check_anew()
    trusted.write_text(another_authority.certificate.read_text())
    with pytest.raises(DomainError, match="certificate is not trusted"):
        await check_anew()
    trusted.write_text(authority.certificate.read_text())
    await check_anew()
    await opened.index.close()


def _faults(url: str, provider: Any = "local") -> tuple[str, ...]:
    """What `check-config` finds, and a server when it starts."""
    vectors: Any = {"redis_url": url}
    embedding = EmbeddingSettings(provider=provider)
    try:
        read_access(Settings(store=parse_store_url("memory:"), vectors=vectors, embedding=embedding))
    except SettingsError as error:
        return error.faults
    return ()


def test_files_that_a_url_names_are_looked_at_before_anything_is_connected(
    authority, another_authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        monkeypatch.delenv(name)
    url, client = f"rediss+cluster://:{_PASSWORD}@a,b", authority.issue("client")
    assert _faults(f"{url}?ssl_ca_certs={authority.certificate}&{_identity(client)}") == ()
    no_certificate, missing = tmp_path / "empty.pem", tmp_path / "missing.pem"
    no_certificate.touch()
    for options, fault in (
        (f"ssl_ca_certs={missing}", f"{missing} with ssl_ca_certs, which cannot be read: No"),
        (f"ssl_ca_certs={no_certificate}", f"{no_certificate} with ssl_ca_certs, which holds no certificate"),
        (f"ssl_certfile={missing}", f"{missing} with ssl_certfile, which cannot be read"),
        (f"ssl_certfile={client.certificate}", "and nothing with ssl_keyfile, which are not a certificate"),
        (
            _identity(Certificate(client.certificate, another_authority.issue("client").key)),
            "which are not a certificate and its private key",
        ),
        (f"ssl_keyfile={client.key}", "ssl_keyfile without ssl_certfile"),
    ):
        (told,) = _faults(f"{url}?{options}")
        assert told.startswith("DURABLE_MEMORY_SERVER_VECTORS_REDIS_URL: ")
        assert fault in told
        assert _PASSWORD not in told
        assert _faults(f"{url}?{options}", provider="none") == ()  # nobody connects to it
