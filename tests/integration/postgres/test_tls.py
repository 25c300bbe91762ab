"""TLS to the database: its server is who its certificate says, or hears nothing but that TLS is wanted."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncpg
import pytest
import pytest_asyncio
from structlog.testing import capture_logs

from durable_memory.adapters.postgres.migrations import migrate
from durable_memory.config import PREFIX, Settings, SettingsError
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.main import MigrationError, migrate_store, read_access
from durable_memory.store_url import parse_store_url
from tests.integration.postgres.conftest import OpenStore, answers
from tests.integration.postgres.plans import NAMESPACE, create
from tests.integration.postgres.silent_host import with_hosts
from tests.processes.certificates import Authority, Certificate
from tests.processes.polling import wait_until_async
from tests.processes.postgres import PostgresProcess
from tests.processes.proxy import Fate, TcpProxy, Way
from tests.processes.server import ServerProcess

_DATABASE = "memory"
_USER = "memory_server"
_PASSWORD = "hunter2"
_WITH_CERTIFICATE = "memory_certified"
"""A user whom the server takes for one who has a certificate of its authority."""
_HBA = f"""
hostssl all {_WITH_CERTIFICATE} 127.0.0.1/32 trust clientcert=verify-ca
host    all {_USER}             127.0.0.1/32 password
host    all all                 127.0.0.1/32 trust
"""


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority") / "of the server")


@pytest.fixture(scope="module")
def another_authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority") / "of others")


@pytest.fixture(scope="module")
def server(authority: Authority) -> Iterator[PostgresProcess]:
    """Its certificate is for localhost, and it knows its clients' by the same authority."""
    own = authority.issue("localhost")
    files = {
        "ssl_cert_file": own.certificate.read_text(),
        "ssl_key_file": own.key.read_text(),
        "ssl_ca_file": authority.certificate.read_text(),
        "hba_file": _HBA,
    }
    with PostgresProcess(durable=False, settings={"ssl": "on"}, files=files) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def database(server: PostgresProcess) -> str:
    """The URL of a migrated database on it, for its administrator."""
    dsn = await server.create_database(_DATABASE)
    await migrate(dsn)
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(f"CREATE ROLE {_USER} SUPERUSER LOGIN PASSWORD '{_PASSWORD}'")
        await connection.execute(f"CREATE ROLE {_WITH_CERTIFICATE} SUPERUSER LOGIN")
    finally:
        await connection.close()
    return dsn


@pytest.fixture
async def administrator(database: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(database)
    yield connection
    await connection.close()


def _url(hosts: str, user: str = _USER, /, **options: str | Path) -> str:
    query = "&".join(f"{name}={value}" for name, value in options.items())
    return f"postgresql://{user}:{_PASSWORD}@{hosts}/{_DATABASE}?{query}"


def _verified(authority: Authority) -> dict[str, str | Path]:
    return {"sslmode": "verify-full", "sslrootcert": authority.certificate}


@pytest.mark.parametrize(
    "hosts",
    [
        "localhost:{port}",
        "localhost:{refusing},localhost:{port}",
        "localhost:{port},localhost:{refusing}",
        # Under a name that is not in its certificate, it is one host of those that cannot be used.
        "127.0.0.1:{port},localhost:{port}",
    ],
)
async def test_every_connection_to_a_server_that_proves_who_it_is_goes_by_tls(
    open_store: OpenStore, server, database, authority, administrator, refusing_port: int, hosts: str
):
    dsn = _url(hosts.format(port=server.port, refusing=refusing_port), **_verified(authority))
    assert await migrate(dsn) == []
    store = await open_store(dsn)
    revision = (await store.head(NAMESPACE)).revision
    await store.transact(NAMESPACE, create(f"n{revision}"))
    assert (await store.head(NAMESPACE)).revision == revision + 1
    assert set(await store.current_nodes(NAMESPACE, [f"n{revision}"])) == {f"n{revision}"}
    wires = await administrator.fetch(
        "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)"
        " WHERE usename = $1 AND backend_type = 'client backend'",
        _USER,
    )
    assert len(wires) >= 4  # of those that write, read, ask for heads and listen
    assert all(wire["ssl"] for wire in wires)
    await store.close()


class _Overheard:
    """Remembers what a client sends on the wire."""

    def __init__(self, proxy: TcpProxy) -> None:
        self.sent = b""
        proxy.rule = self._hear

    def _hear(self, way: Way, chunk: bytes) -> Fate:
        if way is Way.TO_SERVER:
            self.sent += chunk
        return Fate.PASS


@pytest.mark.parametrize("beside", ["alone", "beside a host that refuses connections"])
@pytest.mark.parametrize(
    ("host", "trusted", "problem"),
    [
        ("localhost", "another", "certificate is not trusted"),
        ("127.0.0.1", "its own", "certificate is for another host name"),
    ],
)
async def test_a_server_that_cannot_prove_who_it_is_hears_neither_name_nor_password(
    open_store: OpenStore,
    server,
    database,
    authority,
    another_authority,
    refusing_port: int,
    host: str,
    trusted: str,
    problem: str,
    beside: str,
):
    options = _verified(authority if trusted == "its own" else another_authority)
    async with TcpProxy(server.port) as proxy:
        overheard = _Overheard(proxy)
        hosts = f"{host}:{proxy.port}" if beside == "alone" else f"{host}:{refusing_port},{host}:{proxy.port}"
        dsn = _url(hosts, **options)
        for connecting in (lambda: open_store(dsn), lambda: migrate(dsn)):
            with pytest.raises(DomainError, match=problem) as refusal:
                await connecting()
            assert refusal.value.reason is Reason.DEPENDENCY_UNAVAILABLE
            assert _PASSWORD not in f"{refusal.value!r} {refusal.value.__cause__!r}"
        _require_secret(overheard.sent)


@pytest.mark.parametrize("mode", ["require", "verify-ca", "verify-full"])
@pytest.mark.parametrize("beside", ["alone", "beside a host that refuses connections"])
async def test_a_server_without_tls_is_not_used_where_tls_is_wanted(
    open_store: OpenStore, postgres: PostgresProcess, authority, refusing_port: int, mode: str, beside: str
):
    async with TcpProxy(postgres.port) as proxy:
        overheard = _Overheard(proxy)
        ports = (proxy.port,) if beside == "alone" else (refusing_port, proxy.port)
        dsn = with_hosts(_url("", sslmode=mode, sslrootcert=authority.certificate), *ports)
        with pytest.raises(DomainError, match="speaks no TLS") as refusal:
            await open_store(dsn)
        assert refusal.value.reason is Reason.DEPENDENCY_UNAVAILABLE
        assert _PASSWORD not in f"{refusal.value!r} {refusal.value.__cause__!r}"
        _require_secret(overheard.sent)


def _require_secret(sent: bytes) -> None:
    assert sent  # it was asked for TLS
    assert not [word for word in (_USER, _PASSWORD, _DATABASE) if word.encode() in sent]


async def test_a_server_that_wants_a_certificate_of_its_clients_takes_one_of_its_authority_and_no_other(
    open_store: OpenStore, server, database, authority, another_authority
):
    def dsn(certificate: Certificate | None) -> str:
        own = {"sslcert": certificate.certificate, "sslkey": certificate.key} if certificate else {}
        return _url(f"localhost:{server.port}", _WITH_CERTIFICATE, **_verified(authority), **own)

    with pytest.raises(DomainError, match="refuses the user") as refusal:
        await open_store(dsn(None))
    assert refusal.value.reason is Reason.DEPENDENCY_UNAVAILABLE
    with pytest.raises(DomainError) as refusal:  # with an alert, which may be lost with the connection
        await open_store(dsn(another_authority.issue("stranger")))
    assert refusal.value.reason is Reason.DEPENDENCY_UNAVAILABLE
    store = await open_store(dsn(authority.issue("client")))
    await store.check()
    await store.close()


async def test_a_server_whose_certificate_stops_being_trusted_is_away_until_it_is_trusted_again(
    open_store: OpenStore, server, database, authority, another_authority, administrator, tmp_path: Path
):
    trusted = tmp_path / "trusted.pem"
    trusted.write_text(authority.certificate.read_text())
    store = await open_store(_url(f"localhost:{server.port}", sslmode="verify-full", sslrootcert=trusted))
    trusted.write_text(another_authority.certificate.read_text())
    with capture_logs() as logs:
        await administrator.execute(
            "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE usename = $1", _USER
        )

        async def is_known() -> bool:
            with pytest.raises(DomainError) as refusal:
                await store.transact(NAMESPACE, create("never"))
            assert refusal.value.reason is Reason.DEPENDENCY_UNAVAILABLE
            return refusal.value.message == "the database is away"

        await wait_until_async(is_known, what="the database is known to be away")
        trusted.write_text(authority.certificate.read_text())
        await wait_until_async(lambda: answers(store), what="it is found")
    problems = [log["problem"] for log in logs if log["event"] == "database_away"]
    assert "certificate is not trusted" in problems[0]
    await store.close()


async def test_a_server_of_memory_is_alive_and_says_why_until_the_certificate_is_trusted(
    server, database, authority, another_authority, tmp_path: Path
):
    trusted = tmp_path / "trusted.pem"
    trusted.write_text(another_authority.certificate.read_text())
    url = _url(f"localhost:{server.port}", sslmode="verify-full", sslrootcert=trusted)
    memory = ServerProcess(url, tmp_path / "server.log")
    memory.launch()
    try:
        await wait_until_async(lambda: "it is tried again" in memory.log_text(), what=lambda: memory.log_text())
        assert "the store cannot be reached yet: the database server's certificate is not trusted" in memory.log_text()
        trusted.write_text(authority.certificate.read_text())
        await asyncio.to_thread(memory.wait_serving)
    finally:
        await asyncio.to_thread(memory.terminate)
    assert _PASSWORD not in memory.log_text()


@pytest.fixture
def no_files_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither the folder nor the environment of who runs the tests says anything about TLS."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in [name for name in os.environ if name.startswith((PREFIX, "PGS"))]:
        monkeypatch.delenv(name)


def _faults(**options: str | Path) -> tuple[str, ...]:
    """What `check-config` finds, and a server when it starts."""
    settings = Settings(store=parse_store_url(_url("db1.example,db2.example", **options)))
    try:
        read_access(settings)
    except SettingsError as error:
        return error.faults
    return ()


@pytest.mark.usefixtures("no_files_of_the_user")
def test_files_that_a_url_names_are_looked_at_before_anything_is_connected(authority, another_authority, tmp_path):
    client, other = authority.issue("client"), another_authority.issue("client")
    own = {"sslcert": client.certificate, "sslkey": client.key}
    assert _faults(**_verified(authority), **own) == ()
    assert _faults(sslmode="require") == ()
    no_certificate, missing = tmp_path / "empty.pem", tmp_path / "missing.pem"
    no_certificate.touch()
    for options, fault in (
        ({"sslmode": "verify-full"}, "asks for sslmode=verify-full without sslrootcert=FILE"),
        ({"sslmode": "verify-ca"}, "asks for sslmode=verify-ca without sslrootcert=FILE"),
        ({"sslmode": "verify-full", "sslrootcert": missing}, f"{missing} with sslrootcert, which cannot be read: No"),
        ({"sslmode": "require", "sslrootcert": no_certificate}, f"{no_certificate} with sslrootcert, which holds no"),
        ({**_verified(authority), "sslcrl": missing}, f"{missing} with sslcrl, which cannot be read"),
        ({**_verified(authority), "sslcert": missing}, f"{missing} with sslcert, which cannot be read"),
        ({"sslrootcert": authority.certificate}, "with sslrootcert, which nobody looks at with sslmode=prefer"),
        ({**own, "sslcert": "%00"}, "names no file with sslcert"),
        ({**own, "sslkey": missing}, f"{missing} with sslkey, which cannot be read"),
        ({**own, "sslkey": other.key}, "which are not a certificate and its private key"),
        ({"sslcert": client.certificate}, "and nothing with sslkey, which are not a certificate"),
    ):
        (told,) = _faults(**options)
        assert told.startswith("DURABLE_MEMORY_SERVER_STORE: ")
        assert fault in told
        assert _PASSWORD not in told


@pytest.mark.usefixtures("no_files_of_the_user")
def test_what_the_environment_and_the_user_s_folder_say_stands_in_for_options(
    authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PGSSLMODE", "verify-full")
    (told,) = _faults()
    assert "without sslrootcert" in told
    monkeypatch.setenv("PGSSLROOTCERT", str(tmp_path / "missing.pem"))
    (told,) = _faults()
    assert "missing.pem with sslrootcert, which cannot be read" in told
    assert _faults(sslmode="disable") == ()
    monkeypatch.delenv("PGSSLROOTCERT")
    (tmp_path / ".postgresql").mkdir()
    (tmp_path / ".postgresql" / "root.crt").write_text(authority.certificate.read_text())
    assert _faults() == ()


@pytest.mark.usefixtures("no_files_of_the_user")
async def test_a_migration_looks_at_the_files_that_its_url_names(tmp_path: Path):
    missing = Settings(store=parse_store_url(_url("db1.example", sslmode="verify-full", sslrootcert=tmp_path / "no")))
    with pytest.raises(SettingsError, match="with sslrootcert, which cannot be read"):
        await migrate_store(missing)


@pytest.mark.usefixtures("no_files_of_the_user")
async def test_a_migration_that_the_driver_refuses_says_so_without_its_words(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PGSSLMINPROTOCOLVERSION", "TLS1.2")  # only the driver knows that it is none
    with pytest.raises(MigrationError, match="cannot be migrated: ClientConfigurationError") as refusal:
        await migrate_store(Settings(store=parse_store_url(_url("db1.example", sslmode="require"))))
    assert _PASSWORD not in str(refusal.value)
