"""TLS to the database: what a URL asks for, the files that it names, and what failed, in words to act on."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Final

from durable_memory.certificate_files import list_faults, pair_faults
from durable_memory.tls_failure import tls_failure

_MODES: Final = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_NEGOTIATIONS: Final = ("postgres", "direct")
_VERSIONS: Final = ("TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3")
_VALUES: Final = {
    "sslmode": _MODES,
    "sslnegotiation": _NEGOTIATIONS,
    "ssl_min_protocol_version": _VERSIONS,
    "ssl_max_protocol_version": _VERSIONS,
}
_OPTIONS: Final = (*_VALUES, "sslrootcert", "sslcrl", "sslcert", "sslkey", "sslpassword")


def require_known_tls(options: Mapping[str, str]) -> None:
    """Raises: ValueError for an option of TLS that the driver would pass over, which would protect less than it says,
    or whose value it would refuse.

    What the driver does not know it sends to the server as a setting, and only after the password.
    """
    for name, value in options.items():
        if name.startswith("ssl"):
            if name not in _OPTIONS:
                raise ValueError(f"has an unknown option of TLS; there are {', '.join(_OPTIONS)}")
            if not value:
                raise ValueError(f"has the option {name} without a value")
    for name, values in _VALUES.items():
        if options.get(name, values[0]) not in values:
            raise ValueError(f"has an {name} that is none: there are {', '.join(values)}")


def tls_file_faults(
    options: Mapping[str, str], environment: Mapping[str, str], hosts: Collection[str]
) -> Iterator[str]:
    """What is wrong with the files of TLS that the driver reads at each connection by a URL with these options, and
    which of them it would not look at.

    As in the driver, the environment and the user's folder stand in for options and `hosts` that are not given.
    """
    if options.get("service"):
        return  # its file may say anything; the driver reads it
    # A default host is one of the network.
    by_network = not all(host.startswith("/") for host in hosts or environment.get("PGHOST", "").split(","))
    mode = options.get("sslmode") or environment.get("PGSSLMODE", "prefer" if by_network else "disable")
    mode = mode.replace("_", "-")  # the driver takes either from the environment
    negotiation = options.get("sslnegotiation") or environment.get("PGSSLNEGOTIATION", "postgres")
    for variable, value, values in (("PGSSLMODE", mode, _MODES), ("PGSSLNEGOTIATION", negotiation, _NEGOTIATIONS)):
        if value not in values:
            yield f"is used with the environment's {variable}, which is none of {', '.join(values)}"
            return
    is_required = _MODES.index(mode) >= _MODES.index("require")
    if negotiation == "direct" and not is_required:
        yield f"asks for TLS with sslnegotiation=direct, and with sslmode={mode} not: say sslmode=verify-full"
    if by_network and not is_required:
        for name in sorted({"sslrootcert", "sslcrl"} & options.keys()):
            yield (
                f"names {options[name]} with {name}, which nobody looks at with sslmode={mode}: say sslmode=verify-full"
            )
    if mode == "disable":
        return
    if is_required:
        yield from _faults_of_checking(mode, options, environment)
    certificate = options.get("sslcert") or environment.get("PGSSLCERT")
    if certificate:
        key = options.get("sslkey") or environment.get("PGSSLKEY") or _in_users_folder("postgresql.key")
        yield from pair_faults(("sslcert", "sslkey"), certificate, key, options.get("sslpassword", ""))


def _faults_of_checking(mode: str, options: Mapping[str, str], environment: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with the files by which the server's certificate is checked."""
    authorities = options.get("sslrootcert") or environment.get("PGSSLROOTCERT")
    if authorities:
        yield from list_faults("sslrootcert", authorities)
    elif _in_users_folder("root.crt") is None:
        if mode != "require":
            yield (
                f"asks for sslmode={mode} without sslrootcert=FILE: the certificates, as PEM, of the authorities that "
                "sign those of the database's servers"
            )
        elif "sslcrl" in options:
            yield "has sslcrl without sslrootcert=FILE: no certificate is checked, and so none is looked up"
    revoked = options.get("sslcrl") or environment.get("PGSSLCRL")
    if revoked:
        yield from list_faults("sslcrl", revoked, of="revocation list")


def _in_users_folder(name: str) -> str | None:
    try:
        path = Path.home() / ".postgresql" / name
        return str(path) if path.exists() else None
    except (RuntimeError, OSError):  # there is none, or it may not be entered
        return None


def tls_problem(error: BaseException | None) -> str | None:
    """Why there is no TLS, without the host's name; None if a connection failed for another reason."""
    # The driver has no class of its own for this one; the network's are subclasses.
    if type(error) is ConnectionError and "rejected SSL upgrade" in str(error):
        return "the database server speaks no TLS, and the URL's sslmode asks for it"
    return tls_failure(error, "the database server's")
