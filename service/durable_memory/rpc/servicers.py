"""Every service of the contract, built over the use cases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import grpc

from durable_memory.app.services import AppServices
from durable_memory.rpc.candidate_servicer import CandidateServicer
from durable_memory.rpc.listing import Listing
from durable_memory.rpc.memory_servicer import MemoryServicer
from durable_memory.rpc.options import CallOptions
from durable_memory.rpc.paging import PageTokens
from durable_memory.rpc.recall_servicer import RecallServicer
from durable_memory.rpc.repository_servicer import RepositoryServicer
from durable_memory.rpc.semantic_servicer import SemanticServicer
from durable_memory.rpc.session_servicer import SessionServicer
from durable_memory.rpc.transfer_servicer import TransferServicer
from durablememory.v1 import (
    candidate_service_pb2,
    candidate_service_pb2_grpc,
    memory_service_pb2,
    memory_service_pb2_grpc,
    recall_service_pb2,
    recall_service_pb2_grpc,
    repository_service_pb2,
    repository_service_pb2_grpc,
    semantic_service_pb2,
    semantic_service_pb2_grpc,
    session_service_pb2,
    session_service_pb2_grpc,
    transfer_service_pb2,
    transfer_service_pb2_grpc,
)

_HEADROOM_BYTES: Final = 64 * 1024
"""What an answer holds beside the items of its page."""


def servicers(
    app: AppServices, tokens: PageTokens, calls: CallOptions, version: str
) -> list[tuple[Callable[[Any, grpc.aio.Server], None], object, str]]:
    """For each service: how to add it to a server, its servicer, and its full name. `version` is the server's own."""
    listing = Listing(app.repository, tokens, max(calls.max_response_bytes - _HEADROOM_BYTES, 1))
    return [
        (
            session_service_pb2_grpc.add_SessionServiceServicer_to_server,
            SessionServicer(app.sessions, app.defaults, app.repository, listing, calls, version),
            session_service_pb2.DESCRIPTOR.services_by_name["SessionService"].full_name,
        ),
        (
            recall_service_pb2_grpc.add_RecallServiceServicer_to_server,
            RecallServicer(app.recall, app.access, app.repository, listing),
            recall_service_pb2.DESCRIPTOR.services_by_name["RecallService"].full_name,
        ),
        (
            candidate_service_pb2_grpc.add_CandidateServiceServicer_to_server,
            CandidateServicer(app.candidates, app.clock, listing),
            candidate_service_pb2.DESCRIPTOR.services_by_name["CandidateService"].full_name,
        ),
        (
            memory_service_pb2_grpc.add_MemoryServiceServicer_to_server,
            MemoryServicer(app.memories, app.repository),
            memory_service_pb2.DESCRIPTOR.services_by_name["MemoryService"].full_name,
        ),
        (
            repository_service_pb2_grpc.add_RepositoryServiceServicer_to_server,
            RepositoryServicer(
                app.change_sets, app.repository, listing, app.ids.time_ordered, calls.max_response_bytes
            ),
            repository_service_pb2.DESCRIPTOR.services_by_name["RepositoryService"].full_name,
        ),
        (
            semantic_service_pb2_grpc.add_SemanticServiceServicer_to_server,
            SemanticServicer(app.semantic, app.defaults.current, app.repository, listing),
            semantic_service_pb2.DESCRIPTOR.services_by_name["SemanticService"].full_name,
        ),
        (
            transfer_service_pb2_grpc.add_TransferServiceServicer_to_server,
            TransferServicer(app.transfer, version),
            transfer_service_pb2.DESCRIPTOR.services_by_name["TransferService"].full_name,
        ),
    ]
