"""TLS to the database: what a URL asks for, the files that it names, and what failed, in words to act on."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from durable_memory.certificate_files import list_faults, pair_faults

_MODES: Final = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_OPTIONS: Final = (
    *("sslmode", "sslrootcert", "sslcrl", "sslcert", "sslkey", "sslpassword", "sslnegotiation"),
    *("ssl_min_protocol_version", "ssl_max_protocol_version"),
)
_OTHER_HOST: Final = frozenset({62, 64})
"""OpenSSL's codes for a certificate that is trusted, and not that of the name or address connected to."""


def require_known_tls(options: Mapping[str, str]) -> None:
    """Raises: ValueError for an option of TLS that the driver would pass over, which would protect less than it says.

    What the driver does not know it sends to the server as a setting, and only after the password.
    """
    for name, value in options.items():
        if name.startswith("ssl"):
            if name not in _OPTIONS:
                raise ValueError(f"has an unknown option of TLS; there are {', '.join(_OPTIONS)}")
            if not value:
                raise ValueError(f"has the option {name} without a value")
    if options.get("sslmode", "prefer") not in _MODES:
        raise ValueError(f"has an sslmode that is none: there are {', '.join(_MODES)}")


def tls_file_faults(options: Mapping[str, str], environment: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with the files of TLS that the driver reads at each connection by a URL with these options.

    As in the driver, the environment and the user's folder stand in for options that are not given.
    """
    if "service" in options or "PGSERVICE" in environment:
        return  # its file may say anything; the driver reads it
    mode = options.get("sslmode") or environment.get("PGSSLMODE", "prefer")
    if mode not in _MODES or mode == "disable":
        return
    if _MODES.index(mode) >= _MODES.index("require"):
        authorities = options.get("sslrootcert") or environment.get("PGSSLROOTCERT")
        if authorities:
            yield from list_faults("sslrootcert", authorities)
        elif mode.startswith("verify") and _in_users_folder("root.crt") is None:
            yield (
                f"asks for sslmode={mode} without sslrootcert=FILE: the certificates, as PEM, of the authorities that "
                "sign those of the database's servers"
            )
        revoked = options.get("sslcrl") or environment.get("PGSSLCRL")
        if revoked:
            yield from list_faults("sslcrl", revoked, of="revocation list")
    certificate = options.get("sslcert") or environment.get("PGSSLCERT")
    if certificate:
        key = options.get("sslkey") or environment.get("PGSSLKEY") or _in_users_folder("postgresql.key")
        yield from pair_faults(("sslcert", "sslkey"), certificate, key, options.get("sslpassword", ""))


def _in_users_folder(name: str) -> str | None:
    try:
        path = Path.home() / ".postgresql" / name
    except RuntimeError:  # there is none
        return None
    return str(path) if path.exists() else None


def tls_problem(error: BaseException | None) -> str | None:
    """Why there is no TLS, without the host's name; None if a connection failed for another reason."""
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code in _OTHER_HOST:
            return "the database server's certificate is for another host name"
        return f"the database server's certificate is not trusted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS to the database server fails: {error.reason or 'the driver gives no reason'}"
    # The driver has no class of its own for this one; the network's are subclasses.
    if type(error) is ConnectionError and "rejected SSL upgrade" in str(error):
        return "the database server speaks no TLS, and the URL's sslmode asks for it"
    return None
