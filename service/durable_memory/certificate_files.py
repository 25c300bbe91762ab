"""Files with certificates and keys for TLS: what is wrong with them, before a driver or the server meets it."""

from __future__ import annotations

import ssl
from collections.abc import Generator, Iterator
from pathlib import Path


def list_faults(option: str, path: str, *, of: str = "certificate") -> Iterator[str]:
    """Of a file, named by an option of a URL, that holds certificates to check others by; or the like."""
    if not (yield from _is_unreadable(option, path)):
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cafile=path)
        except ssl.SSLError:
            yield f"names {path} with {option}, which holds no {of} as PEM"


def pair_faults(options: tuple[str, str], certificate: str, key: str | None, password: str = "") -> Iterator[str]:
    """Of a certificate's file and its private key's, named by the options of a URL in this order. Without the latter,
    the key is with the certificate."""
    if (yield from _is_unreadable(options[0], certificate)) or (key and (yield from _is_unreadable(options[1], key))):
        return
    if not is_pair(certificate, key, password):
        yield (
            f"names {certificate} with {options[0]} and {key or 'nothing'} with {options[1]}, which are not a "
            "certificate and its private key as PEM, or take another password"
        )


def is_pair(certificate: str | Path, key: str | Path | None, password: str = "") -> bool:
    """Whether these are a certificate and its private key, which takes this password, as PEM. Raises: OSError."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(certificate, key, password=lambda: password)
    except ssl.SSLError:
        return False
    return True


def _is_unreadable(option: str, path: str) -> Generator[str, None, bool]:
    """Yields why."""
    try:
        Path(path).read_bytes()
    except OSError as error:
        yield f"names {path} with {option}, which cannot be read: {error.strerror}"
        return True
    except ValueError:  # it has a character that no path has
        yield f"names no file with {option}"
        return True
    return False
