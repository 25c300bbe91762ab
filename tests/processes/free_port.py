"""A loopback port that a server of the tests may have."""

import random
import socket

# Below the ephemeral range of Linux and macOS. A port inside it could be taken by an outgoing connection
# while its server is down, or a client that redials a killed server could be connected to itself.
_FIRST, _LAST = 20_000, 32_000
_ATTEMPTS = 100

_given: set[int] = set()


def free_port() -> int:
    """Return a TCP port of 127.0.0.1 that nobody listens on now, and that this process has not got before.

    Several are often asked for before anything listens on the first, and a killed server keeps its port.
    """
    # Own randomness: test plugins seed the global generator alike in every worker process.
    source = random.SystemRandom()
    for _ in range(_ATTEMPTS):
        port = source.randint(_FIRST, _LAST)
        if port in _given:
            continue
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            _given.add(port)
            return port
    raise RuntimeError(f"no free port found in {_ATTEMPTS} attempts")
