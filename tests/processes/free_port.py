"""A loopback port that a server of the tests may have."""

import random
import socket

# Below the ephemeral range of Linux and macOS. A port inside it could be taken by an outgoing connection
# while its server is down, or a client that redials a killed server could be connected to itself.
_FIRST, _LAST = 20_000, 32_000
_ATTEMPTS = 100

_claims: dict[int, socket.socket] = {}
"""What keeps other processes that ask here from a port, while nobody listens on it: the same number of UDP."""


def free_port() -> int:
    """Return a TCP port of 127.0.0.1 that nobody listens on now, and that is given to nobody else.

    Several are often asked for before anything listens on the first, and a killed server keeps its port. Test
    processes beside this one are kept from it as well, for as long as this one lives.
    """
    # Own randomness: test plugins seed the global generator alike in every worker process.
    source = random.SystemRandom()
    for _ in range(_ATTEMPTS):
        port = source.randint(_FIRST, _LAST)
        if port not in _claims and _is_free(port) and _claim(port):
            return port
    raise RuntimeError(f"no free port found in {_ATTEMPTS} attempts")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _claim(port: int) -> bool:
    claim = socket.socket(type=socket.SOCK_DGRAM)
    try:
        claim.bind(("127.0.0.1", port))
    except OSError:
        claim.close()
        return False
    _claims[port] = claim
    return True
