"""The server's life: listening, ready, healthy, drained."""

import asyncio

import grpc
import pytest
from grpc_health.v1 import health_pb2

from durablememory.v1 import session_service_pb2 as sessions_pb


async def test_a_started_server_serves_and_says_so(server_app):
    stubs = await server_app.stubs()

    answer = await stubs.health.Check(health_pb2.HealthCheckRequest())
    assert answer.status == health_pb2.HealthCheckResponse.SERVING
    info = await stubs.sessions.GetServerInfo(sessions_pb.GetServerInfoRequest())
    assert info.caller == "development"
