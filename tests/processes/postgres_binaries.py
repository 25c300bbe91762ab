"""Where the PostgreSQL server binaries are on this machine.

Standard library only, because ``tools/postgres`` runs it before anything else is known to be installed.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

REQUIRED = ("initdb", "postgres")


class PostgresBinariesMissingError(RuntimeError):
    """No folder of this machine has the server binaries."""


def postgres_bindir() -> Path:
    """Return the folder with ``initdb`` and ``postgres``; of several Debian versions, the newest."""
    for folder in _candidates():
        if all(os.access(folder / name, os.X_OK) for name in REQUIRED):
            return folder
    raise PostgresBinariesMissingError(
        "PostgreSQL server binaries (initdb, postgres) were not found in PATH, by pg_config --bindir or in "
        "/usr/lib/postgresql/*/bin; run 'make postgres' as root on Debian, or install PostgreSQL 15 or newer"
    )


def _candidates() -> Iterator[Path]:
    on_path = shutil.which("postgres")
    if on_path:
        yield Path(on_path).resolve().parent
    pg_config = shutil.which("pg_config")
    if pg_config:
        answer = subprocess.run([pg_config, "--bindir"], capture_output=True, text=True, check=False)
        if answer.returncode == 0:
            yield Path(answer.stdout.strip())
    versions = [path for path in Path("/usr/lib/postgresql").glob("*/bin") if path.parent.name.isdecimal()]
    yield from sorted(versions, key=lambda path: int(path.parent.name), reverse=True)


if __name__ == "__main__":
    try:
        print(postgres_bindir())
    except PostgresBinariesMissingError as error:
        raise SystemExit(str(error)) from None
