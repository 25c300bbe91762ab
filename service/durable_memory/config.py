"""The server's settings: one frozen tree, read from DURABLE_MEMORY_SERVER_* and the command line.

A group and its setting make a variable's name: `drain.grace_seconds` is DURABLE_MEMORY_SERVER_DRAIN_GRACE_SECONDS.
Units are in the names, and nothing secret is shown. `settings_reading` says what is wrong with what was given.
docs/settings.md is made of the docstrings below (`make gen`): they are for operators.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from durable_memory.store_url import SqliteUrl, StoreUrl, parse_store_url

FAMILY: Final = "DURABLE_MEMORY_"
"""What the variables of servers, clients and the command line all begin with."""
PREFIX: Final = f"{FAMILY}SERVER_"
_MIB: Final = 1024 * 1024
_PORT_MAX: Final = 65_535

Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]
SecondsOrNone = Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)]
Count = Annotated[int, Field(gt=0, le=1_000_000)]
Bytes = Annotated[int, Field(ge=_MIB, le=2**40)]
RequestBytes = Annotated[int, Field(ge=_MIB, le=256 * _MIB)]
# A recall that admits is committed before it is answered, so its answer has to fit, whatever the memories are like.
ResponseBytes = Annotated[int, Field(ge=24 * _MIB, le=256 * _MIB)]


Location: TypeAlias = tuple[str, ...]
"""A setting by its name, or by those of its group and itself."""


class SettingsError(Exception):
    """All that is wrong with the settings, one line each."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults: Final = tuple(faults)


class _Group(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class TlsSettings(_Group):
    """PEM files. With both, the server speaks TLS; behind a mesh or proxy that does, neither is needed."""

    certificate_file: Path | None = None
    """The certificate, followed by its chain. Read at the start, as the key is."""
    key_file: Path | None = None
    """The private key of the certificate."""


class CallSettings(_Group):
    """Bounds of calls. A call above one is refused at once, with a reason.

    OVERLOADED and RATE_LIMITED name a time to wait, and the clients wait. Streams are watches, snapshots, refreshes,
    exports and imports; all other calls are unary. A caller is the `name` of a credential. Health and reflection, which
    need none, are bounded alike and counted apart.
    """

    default_deadline_seconds: Seconds = 10.0
    """How long a unary call may run whose caller sets no deadline."""
    maximum_deadline_seconds: Seconds = 120.0
    """How long a unary call may run at most. A stream but an import runs for as long as its caller wants it to."""
    maximum_upload_seconds: Seconds = 1_800.0
    """How long an import may take: what it has sent is held until all of it is verified."""
    max_concurrent: Count = 256
    """Unary calls that this server runs at once. More are OVERLOADED."""
    max_concurrent_per_caller: Count = 128
    """Unary calls of one caller at once. More are RATE_LIMITED."""
    max_streams: Count = 1024
    """Streams that this server has at once. More are OVERLOADED."""
    max_streams_per_caller: Count = 256
    """Streams of one caller at once. More are RATE_LIMITED."""
    max_request_bytes: RequestBytes = 16 * _MIB
    """One message of a request. A larger one fails with LIMIT_EXCEEDED."""
    max_response_bytes: ResponseBytes = 32 * _MIB
    """One message of an answer. Pages of a listing end before it."""


class ConnectionSettings(_Group):
    """Connections of clients: how long they live, and how dead ones are noticed."""

    max_age_seconds: Seconds = 1800.0
    """A client whose connection is older, by a tenth more or less, is told to connect anew, which spreads the load."""
    max_age_grace_seconds: Seconds = 300.0
    """How long calls on such a connection may go on. A watch that is cut goes on where it was, on a new one."""
    keepalive_interval_seconds: Seconds = 60.0
    """A connection on which nothing came for so long is pinged."""
    keepalive_timeout_seconds: Seconds = 20.0
    """A connection that does not answer a ping for so long is closed."""


class DrainSettings(_Group):
    """What happens between SIGTERM and the end of the process."""

    delay_seconds: SecondsOrNone = 0.0
    """How long calls are let in while health already says NOT_SERVING: what a load balancer needs to notice."""
    grace_seconds: Seconds = 20.0
    """How long the calls that run after that may go on."""


class HealthSettings(_Group):
    """How old what health says may be: both together."""

    probe_interval_seconds: Seconds = 5.0
    """How often the store is asked whether it is there, and gauges are read."""
    probe_timeout_seconds: Seconds = 3.0
    """How long it may take to answer."""


class ViewSettings(_Group):
    """Memory for recall, of this process: several processes on one machine have to share what it has."""

    budget_bytes: Bytes = 512 * _MIB
    """All views together. The least recently used leave when it is full."""
    max_view_bytes: Bytes = 512 * _MIB
    """One view. A namespace whose view would be larger, or larger than the budget, is refused: NAMESPACE_TOO_LARGE."""
    revision_cache_bytes: Bytes = 64 * _MIB
    """Texts of recent hits."""


class PostgresSettings(_Group):
    """Connections of this process to PostgreSQL; a few more are for notifications and looks at its health."""

    write_connections: Count = 8
    """Connections that change something: so many namespaces can be written to at once."""
    read_connections: Count = 8
    """Connections that read."""


def _checked_base_url(text: str) -> str:
    # No message quotes it: people put passwords into URLs.
    try:
        parts = urlsplit(text)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid or not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError("is no URL that begins with http:// or https://")
    if "@" in parts.netloc:
        raise ValueError("must not hold a user or password; the key has a setting of its own")
    if parts.query or parts.fragment:
        raise ValueError("must end with its path, for example /v1")
    return text


def _checked_key(key: SecretStr) -> SecretStr:
    value = key.get_secret_value()
    if not value.isascii() or not value.isprintable() or " " in value:
        raise ValueError("has white space or other characters that no key has")
    return key


class EmbeddingSettings(_Group):
    """Who makes the vectors of recall by meaning.

    With another provider than `openai`, all but the provider and the two timeouts are refused.
    """

    provider: Literal["auto", "none", "local", "local-fast", "openai"] = "auto"
    """`local` and `local-fast` run a packaged model in this process. `openai` is any endpoint of that protocol. `auto`
    is `local` where the extra of that name is installed, otherwise `local-fast` where that one is, and `none` without
    either, or without a place for vectors: recall is by words, and says so."""
    base_url: Annotated[str, AfterValidator(_checked_base_url)] = "https://api.openai.com/v1"
    """Where the endpoint is, up to `/v1`."""
    api_key: Annotated[SecretStr, AfterValidator(_checked_key)] | None = None
    """The bearer token for it. OpenAI's address needs one."""
    model: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    """The model's name there. `openai` needs it."""
    dimensions: Annotated[int, Field(gt=0, le=8_192)] | None = None
    """Asks for shortened vectors. An endpoint that gives others is refused."""
    revision: Annotated[str, Field(min_length=1, max_length=128)] | None = None
    """Names the weights where the endpoint does not. A new name makes all vectors anew."""
    query_prefix: Annotated[str, Field(max_length=1_024)] = ""
    """Words that the model needs before a question (e5: `query: `). The space at the end counts."""
    passage_prefix: Annotated[str, Field(max_length=1_024)] = ""
    """The same before a memory (e5: `passage: `)."""
    max_text_bytes: Annotated[int, Field(ge=64, le=8_192)] = 8_192
    """What is longer is cut at a character, for endpoints that refuse long texts."""
    similarity_floor: Annotated[float, Field(ge=-1, lt=1, allow_inf_nan=False)] = 0.0
    """The cosine that unrelated texts reach with this model."""
    batch_texts: Annotated[int, Field(gt=0, le=2_048)] = 64
    """The most texts that one call carries."""
    batch_bytes: Annotated[int, Field(gt=0, le=16 * _MIB)] = 128 * 1024
    """The most bytes of text that one call carries."""
    max_concurrent: Annotated[int, Field(gt=0, le=64)] = 4
    """Calls under way at once. One of them is kept for questions, unless it is 1."""
    attempts: Annotated[int, Field(gt=0, le=10)] = 4
    """How often one call is made when it was rate-limited, failed at the provider or lost its connection."""
    call_timeout_seconds: Seconds = 60.0
    """One call for memories."""
    query_timeout_seconds: Seconds = 5.0
    """One question, waiting and repetitions included."""


FOR_EVERY_PROVIDER: Final = frozenset({"provider", "call_timeout_seconds", "query_timeout_seconds"})


def _checked_redis_url(url: SecretStr) -> SecretStr:
    # Its driver takes time to load, and only servers with such a URL need it.
    from durable_memory.adapters.redis.url import parse_redis_url

    parse_redis_url(url.get_secret_value())  # its refusals never quote the text
    return url


class VectorSettings(_Group):
    """Where vectors are published, and when they are brought up to date."""

    redis_url: Annotated[SecretStr, AfterValidator(_checked_redis_url)] | None = None
    """The index and its leases are there: `redis://host:6379/0`, the primary that Sentinels know,
    `redis+sentinel://host:26379,host:26379/primary-name/0`, or a cluster, `redis+cluster://host:6379,host:6379`; with
    `rediss` for TLS. An embedded store needs none and keeps them in its own file."""
    budget_bytes: Bytes = 512 * _MIB
    """Memory of this process for vectors of the namespaces in use."""
    max_partition_bytes: Bytes = 512 * _MIB
    """The index of one namespace and model. A refresh that would make it larger fails with QUOTA_EXCEEDED."""
    vector_format: Literal["float16", "float32"] = "float32"
    """How vectors are stored in the index. float16 takes half the room, and keeps three digits of a cosine."""
    lease_ttl_seconds: Annotated[float, Field(ge=3, le=3_600, allow_inf_nan=False)] = 30.0
    """A refresh that stands still for longer loses its lease, and another server may take over."""
    refresh_workers: Annotated[int, Field(gt=0, le=64)] = 2
    """Scheduled refreshes that this server makes at once."""
    refresh_delay_seconds: Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)] = 2.0
    """How long after a change a namespace with an open session is refreshed, unless its own schedule says otherwise."""
    poll_interval_seconds: Annotated[float, Field(ge=0.05, le=3_600, allow_inf_nan=False)] = 1.0
    """How often a server looks for refreshes that are due."""
    search_budget_seconds: Seconds = 2.0
    """How long a recall in mode AUTO waits for what is found by meaning, and no more than half of what its caller has
    left. Then it answers by words and says so."""


class TelemetrySettings(_Group):
    """Traces, metrics and the log."""

    otlp_endpoint: str | None = None
    """Where traces and metrics go, by OTLP over gRPC: `http://localhost:4317`, or `https://` with TLS. Without it there
    are none."""
    service_name: Annotated[str, Field(min_length=1)] = "durable-memory"
    """`service.name` of both."""
    metrics_interval_seconds: Seconds = 60.0
    """How often metrics are sent."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """The least level that is logged."""
    log_exception_text: bool = False
    """Puts the words of unexpected exceptions into the log. They may quote stored values; nothing else there does."""


def _checked_address(text: str) -> str:
    if text.startswith("unix:"):
        if len(text) == len("unix:"):
            raise ValueError("names no socket file after unix:")
        return text
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not colon or not host or (":" in host and not bracketed):
        raise ValueError("is not host:port, [ipv6]:port or unix:/path")
    if not port.isascii() or not port.isdigit() or int(port) > _PORT_MAX:
        raise ValueError(f"has a port that is not 0..{_PORT_MAX}")
    return text


def _parsed_store(value: Any) -> Any:
    return parse_store_url(value) if isinstance(value, str) else value


def default_store() -> StoreUrl:
    """A file in the user's data folder, so that the same memories are there from whatever folder one starts.

    Raises: ValueError if the user has no home.
    """
    configured = os.environ.get("XDG_DATA_HOME", "")
    try:
        base = Path(configured) if Path(configured).is_absolute() else Path.home() / ".local" / "share"
    except RuntimeError as error:
        raise ValueError("is not set, and there is no home folder for the default") from error
    return SqliteUrl(base / "durable-memory" / "durable-memory.db")


class _KnownVariables(EnvSettingsSource):
    """The variables that are settings. One that is none, such as the bare name of a group, would end the reading."""

    def __init__(self, settings: type[BaseSettings]) -> None:
        super().__init__(settings)
        known = variable_names()
        self.env_vars = {name: value for name, value in self.env_vars.items() if name.upper() in known}


class Settings(BaseSettings):
    """The whole tree. See the groups for what they are about; `variables` lists every name."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_nested_delimiter="_",
        env_nested_max_split=1,
        env_ignore_empty=True,
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        validate_default=False,
    )

    address: Annotated[str, AfterValidator(_checked_address)] = "127.0.0.1:7447"
    """Where to listen: `host:port`, `[ipv6]:port` or `unix:/path`. `--address`."""
    store: Annotated[StoreUrl, NoDecode, BeforeValidator(_parsed_store)] = Field(default_factory=default_store)
    """Where memories are kept: `sqlite:///file.db`, `postgresql://user@host/database`, or `memory:` for tests. By
    default in `durable-memory/durable-memory.db` of `$XDG_DATA_HOME` or `~/.local/share`. `--store`."""
    credentials_file: Path | None = None
    """JSON with the hashes of the accepted bearer tokens. Read at the start. `--credentials`."""
    insecure: bool = False
    """Allows an address that other machines reach without credentials: everybody may do everything. `--insecure`."""
    reflection: bool = True
    """gRPC reflection, which anybody may ask without a credential. It shows the contract and no data."""
    reuse_port: bool = False
    """Shares the port with other servers of this machine over the same PostgreSQL. `--reuse-port`."""
    tls: TlsSettings = TlsSettings()
    calls: CallSettings = CallSettings()
    connections: ConnectionSettings = ConnectionSettings()
    drain: DrainSettings = DrainSettings()
    health: HealthSettings = HealthSettings()
    views: ViewSettings = ViewSettings()
    postgres: PostgresSettings = PostgresSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    vectors: VectorSettings = VectorSettings()
    telemetry: TelemetrySettings = TelemetrySettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        *_: PydanticBaseSettingsSource,
        **__: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, _KnownVariables(settings_cls)

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the address."""
        if self.address.startswith("unix:"):
            return True
        host = self.address.rpartition(":")[0].strip("[]")
        if host == "localhost":
            return True
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return False  # a name may resolve to anything

    def variables(self) -> Iterator[tuple[str, str]]:
        """Every variable with its effective value, in order; an unset one has the value ``""``."""
        for name in type(self).model_fields:
            value = getattr(self, name)
            if isinstance(value, _Group):
                for setting in type(value).model_fields:
                    yield f"{PREFIX}{name}_{setting}".upper(), _shown(getattr(value, setting))
            else:
                yield f"{PREFIX}{name}".upper(), _shown(value)


def variable_names() -> frozenset[str]:
    """Of all settings."""
    names: list[Location] = []
    for name in Settings.model_fields:
        group = group_of(name)
        names += [(name,)] if group is None else [(name, setting) for setting in group.model_fields]
    return frozenset(map(variable, names))


def given_variables() -> frozenset[str]:
    """Names in the environment that begin as all of the family do, in upper case, whether anybody reads them."""
    return frozenset(name.upper() for name in os.environ if name.upper().startswith(FAMILY))


def group_of(name: str) -> type[_Group] | None:
    """The group that has this name; None for a setting."""
    annotation = Settings.model_fields[name].annotation
    return annotation if isinstance(annotation, type) and issubclass(annotation, _Group) else None


def variable(setting: Location) -> str:
    """The name of its variable."""
    return PREFIX + "_".join(setting).upper()


def _shown(value: object) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
