"""What entered a model's input, and what was used."""

from __future__ import annotations

from collections.abc import Sequence

from durable_memory.domain.access import AccessItem
from durable_memory.domain.citation import Citation
from durable_memory.domain.errors import invalid_field
from durable_memory.domain.limits import BATCH_MAX_ITEMS
from durable_memory.rpc.decode.citation import decode_ref, decode_target
from durable_memory.rpc.decode.fields import distinct, optional_name, some
from durablememory.v1.access_pb2 import UseEvent
from durablememory.v1.recall_service_pb2 import AdmissionItem


def decode_admissions(given: Sequence[AdmissionItem]) -> list[AccessItem]:
    """Exact revisions, each once.

    Raises: INVALID_FIELD, LIMIT_EXCEEDED.
    """
    some("items", given, BATCH_MAX_ITEMS)
    items = [_admission(f"items[{index}]", item) for index, item in enumerate(given)]
    distinct("items", (item.ref for item in items))
    return items


def decode_uses(given: Sequence[UseEvent]) -> list[AccessItem]:
    """What was used; a citation is kept, so that its digest is compared.

    Raises: INVALID_FIELD, LIMIT_EXCEEDED.
    """
    some("items", given, BATCH_MAX_ITEMS)
    return [_use(f"items[{index}].", item) for index, item in enumerate(given)]


def _use(field: str, given: UseEvent) -> AccessItem:
    target = decode_target(field, given)
    event_id = optional_name(field, given, "event_id")
    if isinstance(target, Citation):
        return AccessItem(ref=target.ref, event_id=event_id, citation=target)
    return AccessItem(ref=target, event_id=event_id)


def _admission(field: str, given: AdmissionItem) -> AccessItem:
    if not given.HasField("node_revision"):
        raise invalid_field(f"{field}.node_revision", "is missing")
    return AccessItem(
        ref=decode_ref(f"{field}.node_revision", given.node_revision),
        event_id=optional_name(f"{field}.", given, "event_id"),
    )
