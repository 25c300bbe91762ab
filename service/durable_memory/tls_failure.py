"""Why a connection with TLS was not made, in words to act on, whichever driver it was."""

from __future__ import annotations

import ssl
from typing import Final

_OTHER_HOST: Final = frozenset({62, 64})
"""OpenSSL's codes for a certificate that is trusted, and not that of the name or address connected to."""


def tls_failure(error: BaseException | None, whose: str) -> str | None:
    """Why there is no TLS, without the host's name; None if it is something else. `whose`: "its", "the server's"."""
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code in _OTHER_HOST:
            return f"{whose} certificate is for another host name"
        return f"{whose} certificate is not trusted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"{whose} TLS fails: {error.reason or 'the driver gives no reason'}"
    return None
