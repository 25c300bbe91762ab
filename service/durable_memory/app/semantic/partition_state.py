"""What a partition's index is worth, judged by what the repository says was published."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from durable_memory.domain.semantic.generation import Partition
from durable_memory.domain.semantic.manifest import INDEX_HISTORY_START, Manifest
from durable_memory.ports.semantic_records import Intent, Receipt, SemanticRecords
from durable_memory.ports.vector_index import VectorIndex


class IndexState(IntEnum):
    """Numbers equal the contract's."""

    NOT_BUILT = 1
    """Nothing was ever published."""
    CURRENT = 2
    """It is what the last receipt or the pending intent says."""
    REGRESSED = 3
    """It is empty or another than what was published last: not served, and rebuilt from cached vectors."""
    CORRUPTED = 4
    """It is what was published last, but a segment of it is damaged or gone: known only to whoever reads them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """`completes` is the intent whose publication happened and whose receipt is missing, if that is so."""

    state: IndexState
    manifest: Manifest | None
    receipt: Receipt | None
    completes: Intent | None = None

    @property
    def index_revision(self) -> int:
        return 0 if self.manifest is None else self.manifest.index_revision

    @property
    def history_digest(self) -> str:
        return INDEX_HISTORY_START if self.manifest is None else self.manifest.history_digest

    @property
    def lists_segments(self) -> bool:
        return self.manifest is not None and bool(self.manifest.segments)


async def judge(index: VectorIndex, records: SemanticRecords, partition: Partition) -> PartitionState:
    """Read index and repository, and compare.

    A publication may happen between the reads: an index that agrees with neither intent nor receipt is read once more
    after them, and counts as regressed if it is still the same. The receipt is read after the intent, for what ends an
    intent is the receipt of it.
    """
    manifest = await index.manifest(partition)
    while True:
        intent = await records.pending_intent(partition)
        receipt = await records.last_receipt(partition)
        state = compare(manifest, receipt, intent)
        if state.state is not IndexState.REGRESSED:
            return state
        before, manifest = manifest, await index.manifest(partition)
        if manifest == before:
            return state


def compare(manifest: Manifest | None, receipt: Receipt | None, intent: Intent | None) -> PartitionState:
    """The judgement, as a pure function."""
    if intent is not None and manifest is not None and _happened(intent, manifest):
        return PartitionState(state=IndexState.CURRENT, manifest=manifest, receipt=receipt, completes=intent)
    if receipt is None or receipt.index_revision == 0:
        # An intent without any receipt is of a first publication that did not happen.
        state = IndexState.NOT_BUILT if manifest is None else IndexState.REGRESSED
    elif manifest is not None and _agrees(receipt, manifest):
        state = IndexState.CURRENT
    else:
        state = IndexState.REGRESSED
    return PartitionState(state=state, manifest=manifest, receipt=receipt)


def _agrees(receipt: Receipt, manifest: Manifest) -> bool:
    return (receipt.index_revision, receipt.history_digest) == (manifest.index_revision, manifest.history_digest)


def _happened(intent: Intent, manifest: Manifest) -> bool:
    return (intent.expected_index_revision + 1, intent.history_digest, intent.nonce) == (
        manifest.index_revision,
        manifest.history_digest,
        manifest.nonce,
    )
