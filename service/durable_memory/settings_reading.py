"""Reads the settings from the environment and the command line, and says everything that is wrong with them at once.

Where a setting is not what it may be, its default stands in for it until all others have been looked at.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Set
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from durable_memory.config import (
    FAMILY,
    FOR_EVERY_PROVIDER,
    PREFIX,
    EmbeddingSettings,
    Location,
    Settings,
    SettingsError,
    given_variables,
    group_of,
    variable,
    variable_names,
)
from durable_memory.store_url import MemoryUrl, PostgresUrl

_OF_OTHERS: Final = frozenset(
    FAMILY + name for name in ("ADDRESS", "TOKEN", "TOKEN_FILE", "TENANT", "PRINCIPAL", "SCOPE", "SERVER_COMMAND")
)
"""What clients, commands and tests read, who may share an environment with a server."""
_PROVIDER: Final = ("embedding", "provider")


def load_settings(*checks: Callable[[Settings], object], **overrides: Any) -> Settings:
    """Read the environment; `overrides` (those that are not None) come from the command line and win.

    `checks` look at what the settings name, such as files, and raise SettingsError. They run whatever else is wrong.

    Raises: SettingsError with every fault.
    """
    faults = [f"{name}: {fault}" for name, fault in _unknown_variables()]
    settings, malformed = _read({name: value for name, value in overrides.items() if value is not None})
    faults += [_fault(setting, message) for setting, message in malformed.items()]
    faults += [
        _fault(contradiction.setting, contradiction.message)
        for contradiction in _contradictions(settings, malformed.keys())
        if malformed.keys().isdisjoint(contradiction.among)
    ]
    for check in checks:
        try:
            check(settings)
        except SettingsError as error:
            faults += error.faults
    if faults:
        raise SettingsError(faults)
    return settings


def _read(stated: Mapping[str, Any]) -> tuple[Settings, dict[Location, str]]:
    """The settings, and what is wrong with those that are not what they may be, in whose place are defaults."""
    malformed: dict[Location, str] = {}
    while True:
        try:
            return Settings(**stated), malformed
        except ValidationError as error:
            found = {_location(problem["loc"]): problem["msg"] for problem in error.errors(include_url=False)}
        except ValueError as error:  # of the default for the store, which ends the validation of everything else
            found = {("store",): str(error)}
        malformed |= found
        stated = _with_defaults(stated, found)


def _with_defaults(stated: Mapping[str, Any], malformed: Mapping[Location, str]) -> dict[str, Any]:
    """What is stated, and above it the defaults of these settings, wherever their values came from."""
    sound = dict(stated)
    for name, *of_group in malformed:
        info = Settings.model_fields[name]
        group = group_of(name)
        if group is not None:
            defaults = {setting: group.model_fields[setting].default for setting in of_group}
            sound[name] = {**sound.get(name, {}), **defaults}
        else:
            sound[name] = MemoryUrl() if name == "store" else info.default  # that of the store may be what is wrong
    return sound


class _Contradiction(NamedTuple):
    setting: Location
    message: str
    among: frozenset[Location]
    """The settings that it is said of. It is not known while one of them is not what it may be."""


def _contradictions(settings: Settings, malformed: Set[Location]) -> Iterator[_Contradiction]:
    tls = settings.tls
    if (tls.certificate_file is None) != (tls.key_file is None):
        missing = "certificate_file" if tls.certificate_file is None else "key_file"
        files = frozenset({("tls", "certificate_file"), ("tls", "key_file")})
        yield _Contradiction(("tls", missing), "is missing: TLS needs both files", files)
    yield from _embedding_contradictions(settings.embedding, malformed)
    shared = isinstance(settings.store, PostgresUrl)
    if shared and settings.vectors.redis_url is None and settings.embedding.provider not in ("auto", "none"):
        yield _Contradiction(
            ("vectors", "redis_url"),
            f"is missing: servers that share a store share its vectors too, and the provider "
            f"{settings.embedding.provider} makes some",
            frozenset({("store",), ("vectors", "redis_url"), _PROVIDER}),
        )
    if not (settings.is_loopback or settings.credentials_file or settings.insecure):
        yield _Contradiction(
            ("address",),
            f"{settings.address} can be reached from other machines, and there are no credentials: everybody there "
            "could read and change every memory. Give a credentials file, or --insecure if that is what you want",
            frozenset({("address",), ("credentials_file",), ("insecure",)}),
        )


def _embedding_contradictions(embedding: EmbeddingSettings, malformed: Set[Location]) -> Iterator[_Contradiction]:
    fields = EmbeddingSettings.model_fields
    if embedding.provider != "openai":
        for name, info in fields.items():
            setting = ("embedding", name)
            stated = setting in malformed or getattr(embedding, name) != info.default
            if stated and name not in FOR_EVERY_PROVIDER:
                message = f"means nothing to the provider {embedding.provider}, only to openai"
                yield _Contradiction(setting, message, frozenset({_PROVIDER}))
        return
    model, key = ("embedding", "model"), ("embedding", "api_key")
    if embedding.model is None:
        message = "is missing: the provider openai needs the name of a model"
        yield _Contradiction(model, message, frozenset({_PROVIDER, model}))
    default_url = fields["base_url"].default
    if embedding.api_key is None and embedding.base_url == default_url:
        among = frozenset({_PROVIDER, key, ("embedding", "base_url")})
        yield _Contradiction(key, f"is missing: {default_url} needs one", among)


def _unknown_variables() -> Iterator[tuple[str, str]]:
    settings, given = variable_names(), given_variables()
    for name in sorted(given - settings - _OF_OTHERS - _service_links(given)):
        meant = _nearest(name, settings)
        yield name, f"is no setting of this version{f'; did you mean {meant}?' if meant else ''}"


def _nearest(name: str, settings: Set[str]) -> str | None:
    beginning = PREFIX if name.startswith(PREFIX) else FAMILY
    own = name.removeprefix(beginning)
    if PREFIX + own in settings:
        return PREFIX + own
    # Without what they begin with, in which all are alike.
    names = [known.removeprefix(beginning) for known in settings | _OF_OTHERS if known.startswith(beginning)]
    near = difflib.get_close_matches(own, names, n=1)
    return beginning + near[0] if near else None


def _service_links(names: Set[str]) -> set[str]:
    """Those that Kubernetes sets in every container for a Service whose name begins as settings do."""
    services = [name.removesuffix("_SERVICE_HOST") for name in names if name.endswith("_SERVICE_HOST")]
    return {
        name
        for name in names
        for service in services
        if name == f"{service}_PORT" or name.startswith((f"{service}_SERVICE_", f"{service}_PORT_"))
    }


def _location(found: tuple[int | str, ...]) -> Location:
    """The setting that a problem was found in, whatever part of its value that is."""
    depth = 1 if group_of(str(found[0])) is None else 2
    return tuple(map(str, found[:depth]))


def _fault(setting: Location, message: str) -> str:
    return f"{variable(setting)}: {message.removeprefix('Value error, ')}"
