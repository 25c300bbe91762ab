"""TLS: the server is who its certificate says, or nothing is sent to it."""

import shutil
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from durable_memory.domain.errors import DomainError, Reason
from tests.conformance.index_samples import grant, publish
from tests.integration.redis.conftest import OpenIndex, made
from tests.integration.redis.told_sentinel import NAME, ToldSentinel
from tests.processes.free_port import free_port
from tests.processes.redis import RedisProcess
from tests.processes.redis_binaries import system_redis


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A self-signed certificate for localhost; its key lies beside it."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificate")
    path = tmp_path / "server.crt"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-keyout", str(path.with_suffix(".key")), "-out", str(path), "-days", "1", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=DNS:localhost"),
        ],
        check=True,
        capture_output=True,
    )
    return path


@pytest.fixture
def server(certificate: Path) -> Iterator[RedisProcess]:
    settings = {
        "tls-port": str(free_port()),
        "tls-cert-file": str(certificate),
        "tls-key-file": str(certificate.with_suffix(".key")),
        "tls-auth-clients": "no",
    }
    with RedisProcess(system_redis(), settings=settings) as server:
        yield server


async def test_a_server_with_a_certificate_that_is_known_is_used(server, certificate, open_index: OpenIndex, partition):
    opened = await open_index(f"rediss://localhost:{server.tls_port}/0?ssl_ca_certs={certificate}")
    manifest = await publish(opened.index, partition, await grant(opened.leases, partition))
    assert await opened.index.manifest(partition) == manifest
    await opened.index.close()


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
async def test_a_server_that_cannot_prove_who_it_is_is_not_used(server, certificate, host):
    """By the machine's own authorities, who do not know it; or under a name that is not its own."""
    options = "" if host == "localhost" else f"?ssl_ca_certs={certificate}"
    with pytest.raises(DomainError) as refusal:
        await made(f"rediss://{host}:{server.tls_port}/0{options}", attempts=1).index.open()
    assert refusal.value.reason is Reason.DEPENDENCY_UNAVAILABLE


async def test_sentinels_and_the_primary_that_they_name_both_have_to_prove_who_they_are(
    server, certificate, open_index: OpenIndex, partition
):
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, certificate.with_suffix(".key"))
    sentinel = ToldSentinel(server.tls_port, 1, host="localhost")
    async with sentinel.serving(context):
        url = f"rediss+sentinel://localhost:{sentinel.port}/{NAME}"
        opened = await open_index(f"{url}?ssl_ca_certs={certificate}")
        manifest = await publish(opened.index, partition, await grant(opened.leases, partition))
        assert await opened.index.manifest(partition) == manifest
        await opened.index.close()
        with pytest.raises(DomainError, match="no sentinel answers"):
            await made(url, attempts=1).index.open()
    sentinel = ToldSentinel(server.tls_port, 1)  # by its address, which the certificate does not have
    async with sentinel.serving(context):
        with pytest.raises(DomainError, match="cannot be reached"):
            await made(f"rediss+sentinel://localhost:{sentinel.port}/{NAME}?ssl_ca_certs={certificate}").index.open()
