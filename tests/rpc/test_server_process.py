"""`durable-memory serve`, `migrate` and `check-config` as an operator runs them."""

import json
import os
import re
import shutil
import subprocess
import sys
from typing import Any

import grpc
import pytest

from durable_memory.cli.refusals import UNAVAILABLE
from durable_memory.config import PREFIX
from durablememory.v1 import repository_service_pb2 as repository_pb
from durablememory.v1 import repository_service_pb2_grpc
from tests.processes.child import Child
from tests.processes.free_port import free_port
from tests.processes.polling import wait_until
from tests.rpc.messages import namespace

_ENV = {name: value for name, value in os.environ.items() if not name.startswith("DURABLE_MEMORY_")}


def _run(*arguments, **env) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "durable_memory", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env={**_ENV, **env},
        check=False,
    )


@pytest.fixture
def environment(tmp_path):
    """An environment in which nothing of this machine is touched, and nothing makes vectors."""
    return {
        "XDG_DATA_HOME": str(tmp_path),
        "PYTHONPATH": os.pathsep.join(sys.path),
        f"{PREFIX}EMBEDDING_PROVIDER": "none",
    }


def test_a_server_tells_people_in_one_line_and_programs_in_json_and_ends_well_when_told(start_server):
    server = start_server("memory:")
    wait_until(lambda: "is ready on" in server.log_text(), what="the line for people")
    assert server.terminate() == 0

    lines = server.log_text().splitlines()
    for_people = [line for line in lines if not line.startswith("{")]
    assert len(for_people) == 1
    assert re.fullmatch(
        rf"Durable Memory [0-9.]+ is ready on {re.escape(server.address)}, store memory:, recall by words, "
        "no credentials: anybody on this machine may do everything",
        for_people[0],
    )
    events = [json.loads(line)["event"] for line in lines if line.startswith("{")]
    assert events == ["ready", "draining", "stopped"]


def test_a_watcher_does_not_hold_up_the_end_and_is_told_to_go_elsewhere(start_server):
    server = start_server("memory:", env={f"{PREFIX}DRAIN_GRACE_SECONDS": "3600"})
    with grpc.insecure_channel(server.address, options=(("grpc.enable_http_proxy", 0),)) as channel:
        stub = repository_service_pb2_grpc.RepositoryServiceStub(channel)
        watch = stub.WatchNamespace(
            repository_pb.WatchNamespaceRequest(namespace=namespace(), after_namespace_revision=0)
        )
        watch.initial_metadata()
        assert server.terminate(timeout=60.0) == 0  # less than the grace: the watcher was not waited for
        with pytest.raises(grpc.RpcError) as failed:
            list(watch)
    assert failed.value.code() is grpc.StatusCode.UNAVAILABLE
    metadata: Any = failed.value.trailing_metadata()
    assert b"ERROR_REASON_NOT_SERVING" in dict(metadata)["grpc-status-details-bin"]


def test_a_server_that_cannot_start_says_why_and_fails(tmp_path, environment):
    done = _run("serve", "--address", "127.0.0.1:0", "--store", f"sqlite:///{tmp_path}/none/a.db", **environment)
    assert done.returncode == 1
    assert "cannot be opened" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_open_address_without_credentials_is_refused(environment):
    done = _run("serve", "--address", "0.0.0.0:0", "--store", "memory:", **environment)
    assert done.returncode == 2
    assert "--insecure" in done.stderr


def test_an_open_address_without_credentials_is_served_loudly_when_that_is_wanted(tmp_path, environment):
    log = tmp_path / "log"
    child = Child(
        [sys.executable, "-m", "durable_memory", "serve", "--address", "0.0.0.0:0", "--store", "memory:", "--insecure"],
        log=log,
        env={**_ENV, **environment},
    )
    try:
        wait_until(lambda: "is ready on" in log.read_text(), what=child.log_tail)
    finally:
        child.end()
    assert "WARNING: 0.0.0.0:0: anybody who reaches this address can read and change every memory" in log.read_text()
    assert "EVERY MACHINE" in log.read_text()


@pytest.mark.parametrize("command", ["check-config", "serve"])
def test_all_that_is_wrong_is_told_at_once(tmp_path, environment, command):
    keys, key = tmp_path / "keys.json", tmp_path / "key.pem"
    keys.write_text('[{"name": "agent"}]')
    keys.chmod(0o600)
    key.touch()
    wrong = {
        f"{PREFIX}CALLS_MAX_STREAMS": "none",
        f"{PREFIX}CALL_MAX_STREAMS": "7",
        f"{PREFIX}VECTORS_REDIS_URL": "redis://:hunter2@127.0.0.1:port",
        f"{PREFIX}EMBEDDING_API_KEY": "hunter2",
    }
    store = "mysql://memory:hunter2@127.0.0.1/memory"
    done = _run(command, "--store", store, "--credentials", str(keys), "--tls-key", str(key), **environment | wrong)
    assert done.returncode == 2
    assert done.stdout == ""
    assert [line.partition(":")[0].removeprefix(PREFIX) for line in done.stderr.splitlines()] == [
        "CALL_MAX_STREAMS",
        "STORE",
        "CALLS_MAX_STREAMS",
        "VECTORS_REDIS_URL",
        "TLS_CERTIFICATE_FILE",
        "EMBEDDING_API_KEY",
        "CREDENTIALS_FILE",
        "CREDENTIALS_FILE",
    ]
    assert "hunter2" not in done.stderr


def test_every_file_that_cannot_be_read_is_told(environment):
    done = _run("check-config", "--tls-key", "none", "--tls-certificate", "no", "--credentials", "not", **environment)
    assert done.returncode == 2
    assert [line.partition(":")[0].removeprefix(PREFIX) for line in done.stderr.splitlines()] == [
        "CREDENTIALS_FILE",
        "TLS_CERTIFICATE_FILE",
        "TLS_KEY_FILE",
    ]


@pytest.mark.parametrize("command", ["check-config", "serve"])
def test_files_that_are_no_certificate_and_key_are_told(tmp_path, environment, command):
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    certificate.write_text("none")
    key.write_text("hunter2")
    files = ("--tls-certificate", str(certificate), "--tls-key", str(key), "--address", "127.0.0.1:0")
    done = _run(command, *files, "--store", "memory:", **environment)
    assert done.returncode == 2
    assert done.stderr == (
        f"{PREFIX}TLS_CERTIFICATE_FILE: {certificate} and {key} are not a certificate and its private key as PEM, "
        "without a password\n"
    )


@pytest.mark.parametrize("command", ["serve", "migrate"])
def test_a_folder_for_memories_that_cannot_be_made_is_told(tmp_path, environment, command):
    (tmp_path / "durable-memory").symlink_to(tmp_path / "nowhere" / "else")
    done = _run(command, **environment)
    assert done.returncode == 2
    (fault,) = (line for line in done.stderr.splitlines() if not line.startswith("{"))
    assert fault.startswith(f"{PREFIX}STORE: {tmp_path / 'durable-memory'} cannot be made: ")


def test_the_effective_settings_are_shown_as_variables_or_as_json(environment):
    url = "postgresql://memory:hunter2@127.0.0.1/memory"
    shown = _run("check-config", "--store", url, **environment, **{f"{PREFIX}CALLS_MAX_STREAMS": "7"})
    assert shown.returncode == 0
    lines = shown.stdout.splitlines()
    assert f"{PREFIX}CALLS_MAX_STREAMS=7" in lines
    assert f"{PREFIX}STORE=postgresql://memory@127.0.0.1/memory" in lines
    as_json = _run("check-config", "--store", url, "--json", **environment, **{f"{PREFIX}CALLS_MAX_STREAMS": "7"})
    assert [f"{name}={value}" for name, value in json.loads(as_json.stdout).items()] == lines


def test_migrate_brings_a_database_to_the_current_schema_and_says_what_it_did(postgres_empty_database, environment):
    first = _run("migrate", "--store", postgres_empty_database, **environment)
    assert first.returncode == 0, first.stderr
    assert first.stdout.startswith("applied 0001")
    again = _run("migrate", "--store", postgres_empty_database, **environment)
    assert again.stdout.splitlines() == [first.stdout.splitlines()[-1]]
    assert again.stdout.endswith(" is up to date\n")


def test_migrate_makes_the_default_file_for_its_owner_alone(tmp_path, environment):
    done = _run("migrate", **environment)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "durable-memory"
    assert (folder / "durable-memory.db").exists()
    assert folder.stat().st_mode & 0o077 == 0


def test_migrate_needs_none_of_the_files_that_only_a_server_reads(tmp_path, environment):
    missing = environment | {
        f"{PREFIX}VECTORS_REDIS_URL": f"rediss://localhost/0?ssl_ca_certs={tmp_path}/ca.pem",
        f"{PREFIX}EMBEDDING_PROVIDER": "local",
        f"{PREFIX}CREDENTIALS_FILE": f"{tmp_path}/credentials.json",
    }
    assert _run("check-config", **missing).returncode == 2
    done = _run("migrate", **missing)
    assert (done.returncode, done.stderr) == (0, "")


def test_migrate_that_cannot_reach_the_database_fails_without_its_password(environment):
    done = _run("migrate", "--store", f"postgresql://memory:hunter2@127.0.0.1:{free_port()}/memory", **environment)
    assert done.returncode == 1
    assert "cannot be migrated" in done.stderr
    assert "hunter2" not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_a_server_with_tls_is_reached_by_those_who_trust_it(tmp_path, environment):
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    log, port, store = tmp_path / "log", free_port(), f"sqlite:///{tmp_path / 'memory.db'}"
    child = Child(
        [
            *(sys.executable, "-m", "durable_memory", "serve", "--address", f"localhost:{port}", "--store", store),
            *("--tls-certificate", certificate, "--tls-key", key),
        ],
        log=log,
        env={**_ENV, **environment},
    )
    try:
        wait_until(lambda: "is ready on" in log.read_text(), what=child.log_tail)
        credentials = grpc.ssl_channel_credentials(certificate.read_bytes())
        options = (("grpc.enable_http_proxy", 0),)
        with grpc.secure_channel(f"localhost:{port}", credentials, options) as channel:
            stub = repository_service_pb2_grpc.RepositoryServiceStub(channel)
            answer = stub.GetChangeToken(repository_pb.GetChangeTokenRequest(namespace=namespace()), timeout=60.0)
        assert answer.change_token.namespace_revision == 0
        found = subprocess.run(
            [sys.executable, "-m", "durable_memory", "info", "--store", store],
            env={**_ENV, **environment},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (found.returncode, found.stdout) == (UNAVAILABLE, "")
        assert f"speaks TLS at https://localhost:{port}" in found.stderr
    finally:
        child.end()
    assert "TLS" in log.read_text()
