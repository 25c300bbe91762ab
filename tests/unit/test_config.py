"""Settings: where they come from, what is refused, what is shown."""

import os
from pathlib import Path

import pytest

from durable_memory import __version__
from durable_memory.config import FAMILY, PREFIX, Settings, SettingsError
from durable_memory.settings_reading import load_settings
from durable_memory.store_url import MemoryUrl, PostgresUrl, SqliteUrl, parse_store_url

_PASSWORD = "hunter2"


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path):
    """A user's environment without any setting of this service; a function that adds settings."""
    for name in [name for name in os.environ if name.upper().startswith(FAMILY)]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))

    def setting(**values: str) -> None:
        for name, value in values.items():
            monkeypatch.setenv(PREFIX + name, value)

    return setting


def _faults(**overrides) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as refused:
        load_settings(**overrides)
    return refused.value.faults


def test_without_anything_it_is_a_private_server_over_a_file_in_the_users_data_folder(tmp_path):
    settings = load_settings()
    assert settings.address == "127.0.0.1:7447"
    assert settings.is_loopback
    assert settings.store == SqliteUrl(tmp_path / ".local" / "share" / "durable-memory" / "durable-memory.db")


def test_the_data_folder_is_where_the_desktop_says(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert load_settings().store == SqliteUrl(tmp_path / "data" / "durable-memory" / "durable-memory.db")


def test_every_variable_that_is_shown_can_be_set(environment):
    shown = dict(load_settings().variables())
    values = {name: value for name, value in shown.items() if value}
    environment(**{name.removeprefix(PREFIX): value for name, value in values.items()})
    assert dict(load_settings().variables()) == shown


def test_the_command_line_wins_over_the_environment(environment):
    environment(STORE="memory:", ADDRESS="127.0.0.1:1")
    settings = load_settings(address="127.0.0.1:2", store=None)
    assert (settings.address, settings.store) == ("127.0.0.1:2", MemoryUrl())


def test_groups_are_part_of_a_variables_name(environment):
    environment(CALLS_MAX_CONCURRENT="7", DRAIN_GRACE_SECONDS="1.5", POSTGRES_WRITE_CONNECTIONS="3")
    settings = load_settings()
    assert settings.calls.max_concurrent == 7
    assert settings.drain.grace_seconds == 1.5
    assert settings.postgres.write_connections == 3


def test_an_empty_variable_is_an_unset_one(environment):
    environment(CREDENTIALS_FILE="", CALLS_MAX_CONCURRENT="")
    assert load_settings() == load_settings(credentials_file=None)


def test_everything_wrong_is_reported_at_once(environment):
    environment(
        ADDRESS="nowhere",
        STORE="mysql://root@host/db",
        CALLS_MAX_CONCURRENT="0",
        DRAIN_GRACE_SECONDS="nan",
        TELEMETRY_LOG_LEVEL="loud",
        CALL_MAX_STREAMS="7",
    )
    reported = {fault.partition(": ")[0].removeprefix(PREFIX) for fault in _faults()}
    assert reported == {
        "ADDRESS",
        "STORE",
        "CALLS_MAX_CONCURRENT",
        "DRAIN_GRACE_SECONDS",
        "TELEMETRY_LOG_LEVEL",
        "CALL_MAX_STREAMS",
    }


def test_what_settings_are_together_is_reported_beside_what_is_wrong_with_others(environment):
    environment(
        ADDRESS="0.0.0.0:7447",
        TLS_KEY_FILE="key.pem",
        EMBEDDING_PROVIDER="openai",
        CALLS_MAX_STREAMS="none",
        DRAIN_DELAY="1",
    )
    assert [fault.partition(": ")[0].removeprefix(PREFIX) for fault in _faults()] == [
        "DRAIN_DELAY",
        "CALLS_MAX_STREAMS",
        "TLS_CERTIFICATE_FILE",
        "EMBEDDING_MODEL",
        "EMBEDDING_API_KEY",
        "ADDRESS",
    ]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("INSECURE", {"ADDRESS": "0.0.0.0:7447", "INSECURE": "perhaps"}),
        ("ADDRESS", {"ADDRESS": "0.0.0.0"}),
        ("EMBEDDING_PROVIDER", {"EMBEDDING_PROVIDER": "opneai", "EMBEDDING_MODEL": "m"}),
        ("EMBEDDING_MODEL", {"EMBEDDING_PROVIDER": "openai", "EMBEDDING_MODEL": "m" * 257, "EMBEDDING_API_KEY": "k"}),
        ("EMBEDDING_BASE_URL", {"EMBEDDING_PROVIDER": "openai", "EMBEDDING_MODEL": "m", "EMBEDDING_BASE_URL": "me"}),
        ("STORE", {"STORE": "postgresql://h:x/d", "EMBEDDING_PROVIDER": "local"}),
        ("VECTORS_REDIS_URL", {"STORE": "postgresql://h/d", "EMBEDDING_PROVIDER": "local", "VECTORS_REDIS_URL": "r"}),
    ],
)
def test_what_a_setting_was_meant_to_be_is_not_guessed(environment, name, values):
    environment(**values)
    (fault,) = _faults()
    assert fault.startswith(f"{PREFIX}{name}: ")


def test_a_setting_that_means_nothing_says_so_at_once_also_if_it_is_wrong(environment):
    environment(EMBEDDING_PROVIDER="none", EMBEDDING_DIMENSIONS="-1")
    wrong, meaningless = _faults()
    assert wrong.startswith(f"{PREFIX}EMBEDDING_DIMENSIONS: ")
    assert meaningless == f"{PREFIX}EMBEDDING_DIMENSIONS: means nothing to the provider none, only to openai"


def test_what_the_settings_name_is_looked_at_whatever_else_is_wrong(environment):
    environment(CREDENTIALS_FILE="keys.json", CALLS_MAX_STREAMS="none", TLS_KEY_FILE="key.pem")
    looked_at: list[Settings] = []

    def refused(settings: Settings) -> None:
        looked_at.append(settings)
        raise SettingsError(["first", "second"])

    with pytest.raises(SettingsError) as all_of_it:
        load_settings(refused, looked_at.append)
    assert [fault.partition(": ")[0].removeprefix(PREFIX) for fault in all_of_it.value.faults] == [
        "CALLS_MAX_STREAMS",
        "TLS_CERTIFICATE_FILE",
        "first",
        "second",
    ]
    assert [settings.credentials_file for settings in looked_at] == [Path("keys.json")] * 2


def test_that_there_is_no_place_for_memories_is_told_with_the_rest(environment, monkeypatch):
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    environment(CALLS_MAX_STREAMS="none", TLS_KEY_FILE="key.pem")
    assert {fault.partition(": ")[0].removeprefix(PREFIX) for fault in _faults()} == {
        "STORE",
        "CALLS_MAX_STREAMS",
        "TLS_CERTIFICATE_FILE",
    }
    environment(CALLS_MAX_STREAMS="1", TLS_KEY_FILE="")
    (fault,) = _faults()
    assert fault == f"{PREFIX}STORE: is not set, and there is no home folder for the default"


def test_what_the_command_line_has_wrong_is_told_with_what_the_environment_has(environment):
    environment(CALLS_MAX_CONCURRENT="0", STORE="memory:")
    reported = {fault.partition(": ")[0].removeprefix(PREFIX) for fault in _faults(store="x", calls={"max_streams": 0})}
    assert reported == {"STORE", "CALLS_MAX_CONCURRENT", "CALLS_MAX_STREAMS"}


def test_an_unknown_variable_is_refused_with_the_one_that_was_meant(environment):
    environment(CALLS_MAX_CONCURENT="7")
    (fault,) = _faults()
    assert (
        fault
        == f"{PREFIX}CALLS_MAX_CONCURENT: is no setting of this version; did you mean {PREFIX}CALLS_MAX_CONCURRENT?"
    )


@pytest.mark.parametrize("value", ['{"max_concurrent": 7}', "many"])
def test_a_group_is_not_a_variable(environment, value):
    environment(CALLS=value, DRAIN_GRACE_SECONDS="nan")
    group, setting = _faults()
    assert group == f"{PREFIX}CALLS: is no setting of this version"
    assert setting.startswith(f"{PREFIX}DRAIN_GRACE_SECONDS: ")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        (f"{FAMILY}SEVER_STORE", f"{PREFIX}STORE"),
        (f"{FAMILY}TENNANT", f"{FAMILY}TENANT"),
        (f"{FAMILY}STORE", f"{PREFIX}STORE"),
    ],
)
def test_a_variable_that_neither_servers_nor_clients_read_is_refused(monkeypatch, name, meant):
    monkeypatch.setenv(name, "x")
    assert _faults() == (f"{name}: is no setting of this version; did you mean {meant}?",)


def test_variables_of_clients_are_not_a_servers_concern(monkeypatch):
    for name in ("ADDRESS", "TOKEN", "TOKEN_FILE", "TENANT", "PRINCIPAL", "SCOPE", "SERVER_COMMAND"):
        monkeypatch.setenv(FAMILY + name, "x")
    assert load_settings().address == "127.0.0.1:7447"


def test_what_kubernetes_says_of_a_service_is_no_setting(environment, monkeypatch):
    monkeypatch.setenv(f"{FAMILY}SERVICE_HOST", "10.0.0.3")
    monkeypatch.setenv(f"{FAMILY}PORT_7447_TCP_PROTO", "tcp")
    environment(
        SERVICE_HOST="10.0.0.1",
        SERVICE_PORT="7447",
        SERVICE_PORT_GRPC="7447",
        PORT="tcp://10.0.0.1:7447",
        PORT_7447_TCP_ADDR="10.0.0.1",
        BLUE_SERVICE_HOST="10.0.0.2",
        BLUE_PORT="tcp://10.0.0.2:7447",
    )
    assert load_settings().address == "127.0.0.1:7447"
    environment(RESUE_PORT="true")
    (fault,) = _faults()
    assert fault.endswith(f"did you mean {PREFIX}REUSE_PORT?")


@pytest.mark.parametrize("address", ["0.0.0.0:7447", "[::]:7447", "10.0.0.1:1", "memory.example:7447", "[fe80::1]:1"])
def test_an_address_that_others_reach_needs_credentials_or_an_explicit_word(address):
    (fault,) = _faults(address=address)
    assert "--insecure" in fault
    assert not load_settings(address=address, insecure=True).is_loopback
    assert load_settings(address=address, credentials_file=Path("keys.json"))


@pytest.mark.parametrize("address", ["127.0.0.1:0", "127.9.9.9:1", "[::1]:65535", "localhost:7447", "unix:/run/socket"])
def test_an_address_of_this_machine_needs_none(address):
    assert load_settings(address=address).is_loopback


@pytest.mark.parametrize(
    "address", ["", "7447", ":7447", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "::1:7447", "unix:"]
)
def test_a_malformed_address_is_refused(address):
    assert len(_faults(address=address)) == 1


def test_tls_needs_both_files():
    (fault,) = _faults(tls={"certificate_file": Path("cert.pem")})
    assert fault.startswith(f"{PREFIX}TLS_KEY_FILE: is missing")


def test_a_password_is_never_shown(environment):
    environment(STORE=f"postgresql://memory:{_PASSWORD}@db.example:5432/memory?password={_PASSWORD}")
    settings = load_settings()
    assert dict(settings.variables())[f"{PREFIX}STORE"] == "postgresql://memory@db.example:5432/memory"
    assert _PASSWORD not in repr(settings)
    assert isinstance(settings.store, PostgresUrl)
    assert _PASSWORD in settings.store.dsn

    environment(STORE=f"postgre://memory:{_PASSWORD}@db.example/memory")
    assert _PASSWORD not in "".join(_faults())


def test_an_embedding_key_is_never_shown(environment):
    environment(EMBEDDING_PROVIDER="openai", EMBEDDING_MODEL="m", EMBEDDING_API_KEY=_PASSWORD)
    settings = load_settings()
    assert _PASSWORD not in repr(settings)
    assert _PASSWORD not in str(dict(settings.variables()))
    assert settings.embedding.api_key is not None
    assert settings.embedding.api_key.get_secret_value() == _PASSWORD

    environment(EMBEDDING_API_KEY=f"{_PASSWORD}\n", EMBEDDING_BASE_URL=f"https://me:{_PASSWORD}@embeddings.example/v1")
    faults = _faults()
    assert [fault.partition(": ")[0].removeprefix(PREFIX) for fault in faults] == [
        "EMBEDDING_BASE_URL",
        "EMBEDDING_API_KEY",
    ]
    assert _PASSWORD not in "".join(faults)


def test_openai_needs_a_model_and_at_its_own_address_a_key(environment):
    environment(EMBEDDING_PROVIDER="openai")
    assert [fault.partition(": ")[0].removeprefix(PREFIX) for fault in _faults()] == [
        "EMBEDDING_MODEL",
        "EMBEDDING_API_KEY",
    ]
    environment(EMBEDDING_MODEL="m", EMBEDDING_BASE_URL="http://localhost:8000/v1")
    assert load_settings().embedding.api_key is None


@pytest.mark.parametrize("provider", ["local", "local-fast"])
def test_a_provider_that_is_named_for_a_shared_store_needs_a_place_that_is_shared(environment, provider):
    environment(STORE="postgresql://h/d", EMBEDDING_PROVIDER=provider)
    (fault,) = _faults()
    assert fault.startswith(f"{PREFIX}VECTORS_REDIS_URL: is missing")
    environment(VECTORS_REDIS_URL="redis://127.0.0.1:1")
    assert load_settings().embedding.provider == provider


@pytest.mark.parametrize("provider", ["auto", "none"])
def test_a_shared_store_without_such_a_place_is_served_where_no_provider_is_named(environment, provider):
    environment(STORE="postgresql://h/d", EMBEDDING_PROVIDER=provider)
    assert load_settings().embedding.provider == provider


@pytest.mark.parametrize("provider", ["auto", "none", "local", "local-fast"])
def test_what_only_openai_understands_is_refused_for_another_provider(environment, provider):
    environment(EMBEDDING_PROVIDER=provider, EMBEDDING_CALL_TIMEOUT_SECONDS="9")
    assert load_settings().embedding.call_timeout_seconds == 9
    environment(EMBEDDING_MODEL="m", EMBEDDING_QUERY_PREFIX="query: ", EMBEDDING_API_KEY="key")
    assert [fault.partition(": ")[0].removeprefix(PREFIX) for fault in _faults()] == [
        "EMBEDDING_API_KEY",
        "EMBEDDING_MODEL",
        "EMBEDDING_QUERY_PREFIX",
    ]


def test_the_space_at_the_end_of_a_prefix_belongs_to_it(environment):
    environment(
        EMBEDDING_PROVIDER="openai",
        EMBEDDING_MODEL="e5",
        EMBEDDING_BASE_URL="http://[::1]:8000/v1",
        EMBEDDING_QUERY_PREFIX="query: ",
    )
    assert load_settings().embedding.query_prefix == "query: "


@pytest.mark.parametrize(
    "url",
    [
        "localhost:8000/v1",
        "ftp://host/v1",
        "https://",
        "https://host:port/v1",
        "https://host:0/v1",
        "https://host/v1 ",
        "https://ho st/v1",
        "https://[::1/v1",
        "https://host/v1?key=1",
        "https://host/v1#a",
    ],
)
def test_what_is_no_base_url_is_refused(environment, url):
    environment(EMBEDDING_PROVIDER="openai", EMBEDDING_MODEL="m", EMBEDDING_BASE_URL=url)
    (fault,) = _faults()
    assert fault.startswith(f"{PREFIX}EMBEDDING_BASE_URL: ")


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("memory:", MemoryUrl()),
        ("sqlite:///a.db", SqliteUrl(Path("a.db"))),
        ("sqlite:////var/lib/a.db", SqliteUrl(Path("/var/lib/a.db"))),
        ("postgresql://h/d", PostgresUrl("postgresql://h/d")),
        ("postgres://h1,h2/d", PostgresUrl("postgres://h1,h2/d")),
        ("postgresql:///d?host=/run/postgresql", PostgresUrl("postgresql:///d?host=/run/postgresql")),
    ],
)
def test_store_urls(text, url):
    assert parse_store_url(text) == url


@pytest.mark.parametrize(
    "text",
    ["", "memory", "memory://", "sqlite:a.db", "sqlite://a.db", "sqlite:///", "a.db", "postgresql:", "sqlite:///a\0b"],
)
def test_what_is_no_store_url_is_refused_with_the_forms_there_are(text):
    with pytest.raises(ValueError, match=r"sqlite:///relative/path\.db"):
        parse_store_url(text)


@pytest.mark.parametrize(
    ("dsn", "shown"),
    [
        ("postgresql://u:p@h:1/d?sslmode=require", "postgresql://u@h:1/d"),
        ("postgresql://u:p%40x@h1:1,h2:2/d", "postgresql://u@h1:1,h2:2/d"),
        ("postgresql:///d?host=/run", "postgresql://%2Frun/d"),
        ("postgresql://u@%2Ftmp:5433/d", "postgresql://u@%2Ftmp:5433/d"),
        ("postgresql://u:p@/d?host=h1,h2&port=1,2&password=p", "postgresql://u@h1:1,h2:2/d"),
        ("postgresql://u:p@[::1]:1,h2,[2001:db8::2]/d", "postgresql://u@[::1]:1,h2,[2001:db8::2]/d"),
        ("postgresql://u:p@h1,h2/d?target_session_attrs=read-write", "postgresql://u@h1,h2/d"),
        ("postgresql://h/d", "postgresql://h/d"),
    ],
)
def test_a_database_is_shown_without_password_and_options(dsn, shown):
    assert str(PostgresUrl(dsn)) == shown


@pytest.mark.parametrize(
    ("dsn", "problem"),
    [
        ("postgresql://u:s3cret@h1,h2/d?target_session_attrs=standby", "another server than the primary"),
        ("postgresql://u:s3cret@h1,h2/d?target_session_attrs=prefer-standby", "another server than the primary"),
        ("postgresql://u:s3cret@h1,h2/d?target_session_attrs=s3cret", "another server than the primary"),
        ("postgresql://u:s3cret@h1:x/d", "a port that is no number"),
        ("postgresql://u:s3cret@::1/d", "a host without a name"),
        ("postgresql://u:s3cret@h1,,h2/d", "a host without a name"),
        ("postgresql://u:s3cret@h1,h2/d?port=1,2,3", "another number of ports"),
        ("postgresql://u:s3@cret@h/d", "percent-encoded"),
        ("postgresql://u:12/s3cret@h/d", "percent-encoded"),
        ("postgresql://u:s3cret?x@h/d", "options"),
        ("postgresql://u@h/d?s3cret", "options"),
    ],
)
def test_a_database_that_cannot_be_used_is_refused_with_the_reason_and_without_its_password(dsn, problem):
    with pytest.raises(ValueError, match=problem) as caught:
        parse_store_url(dsn)
    assert "s3" not in str(caught.value)


def test_the_version_is_that_of_the_distribution():
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert f'\nversion = "{__version__}"\n' in text
