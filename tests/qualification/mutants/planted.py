"""Bugs to plant: small edits of a copy of the service, each of which breaks one promise.

An edit names its place by the text that is there now. When the service changes, that text no longer fits, and
`test_planted.py` says so at once: a planted bug that was never planted would be taken for one that was caught.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SERVICE_ROOT: Final = Path(__file__).resolve().parents[3] / "service"


@dataclass(frozen=True, slots=True)
class Edit:
    """In one file of the service: `new` in place of `old`, which is there once."""

    path: str
    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedBug:
    """`rows` are those of the table that have to go red with it, by one of `checks` at least, which says `said` if that
    is stated: some checks are about several things.

    A row that goes red by anything else has shown that something is odd, and not that it knows this bug.
    """

    name: str
    what: str
    edits: Sequence[Edit]
    rows: Sequence[int]
    checks: Sequence[str]
    said: str = ""


class StaleEditError(Exception):
    """The service has changed where a bug was to be planted."""


def planted(bug: PlantedBug, folder: Path, *, source: Path = SERVICE_ROOT) -> Path:
    """A copy of the service in `folder` with the bug in it. Raises: StaleEditError."""
    root = folder / "service"
    shutil.copytree(source, root, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for edit in bug.edits:
        path = root / "durable_memory" / edit.path
        text = path.read_text()
        if text.count(edit.old) != 1:
            raise StaleEditError(f"{bug.name}: {edit.path} has the text to replace {text.count(edit.old)} times")
        path.write_text(text.replace(edit.old, edit.new))
    return root


_PUBLISH_COMPARES: Final = """if held[1] ~= ARGV[1] or held[2] ~= ARGV[2] or tonumber(ARGV[2]) < highest then
  return {3, highest}
end
"""

_APPLIES: Final = """        outcome = await self._store.transact(
            call.namespace, Plan(lock=Lock.NAMESPACE, reads=reads_of(change_set), decide=decide, request=call.request)
        )
"""
_ANSWERS_FIRST: Final = """        decided: asyncio.Future[StagedChange] = asyncio.get_running_loop().create_future()
        transaction = asyncio.ensure_future(
            self._store.transact(
                call.namespace,
                Plan(lock=Lock.NAMESPACE, reads=reads_of(change_set), decide=decide, request=call.request),
            )
        )
        await asyncio.wait({decided, transaction}, return_when=asyncio.FIRST_COMPLETED)
        if decided.done():
            staged = decided.result()
            return AppliedChangeSet(token=staged.head.token, record=staged.record)
        outcome = transaction.result()
"""
_DECIDES: Final = """            staged = stage_in(loaded, call, change_set, now)
            return """
_TELLS: Final = """            staged = stage_in(loaded, call, change_set, now)
            if not decided.done():
                decided.set_result(staged)
            return """
_IMPORTS: Final = "from __future__ import annotations\n"

_LOOKUP: Final = """                if record is not None:
                    return await _replay(transaction, plan, record, head)
                loaded = await load(
                    transaction, namespace, plan.reads, plan.lock, head=head, known_evidence=known_evidence
                )
                decision = plan.decide(loaded)
"""
_LOOKUP_LAST: Final = """                loaded = await load(
                    transaction, namespace, plan.reads, plan.lock, head=head, known_evidence=known_evidence
                )
                decision = plan.decide(loaded)
                if record is not None:
                    return await _replay(transaction, plan, record, head)
"""

_VOUCHES: Final = """    plan.request.require_same(record.request.fingerprint)
    await transaction.vouch()
"""
_DOES_NOT: Final = """    plan.request.require_same(record.request.fingerprint)
"""

_LOST: Final = "is not there"
"""What `kernel.lost_acknowledgements` says of a command whose change set is gone."""

FENCE_COMPARE_REMOVED: Final = PlantedBug(
    name="fence_compare_removed",
    what="the publish script takes whatever fence it is given",
    edits=[Edit("adapters/redis/scripts/publish.lua", _PUBLISH_COMPARES, "")],
    rows=[3],
    checks=["a late publication is refused by its fence", "one holder at a time, and fences that rise"],
)
ACKNOWLEDGED_BEFORE_COMMIT: Final = PlantedBug(
    name="acknowledged_before_commit",
    # With what was decided, and not with what is read again: that would not be there, which the service itself reports.
    what="a change set is answered when it has been decided on, and committed a moment later",
    edits=[
        Edit("app/change_sets.py", _IMPORTS, _IMPORTS + "\nimport asyncio\n"),
        Edit("app/change_sets.py", _DECIDES, _TELLS),
        Edit("app/change_sets.py", _APPLIES, _ANSWERS_FIRST),
    ],
    rows=[5],
    checks=["acknowledged writes are kept", "what is acknowledged is there right after each fault"],
    said=_LOST,
)
COMMIT_NOT_DURABLE: Final = PlantedBug(
    name="commit_not_durable",
    what="a commit waits neither for the disk nor for the standby",
    edits=[Edit("adapters/postgres/pool.py", '"synchronous_commit": "on"', '"synchronous_commit": "off"')],
    rows=[5],
    checks=["acknowledged writes are kept", "what is acknowledged is there right after each fault"],
    said=_LOST,
)
STANDBY_NOT_AWAITED: Final = PlantedBug(
    name="standby_not_awaited",
    what="a commit waits for the disk of the primary alone",
    edits=[Edit("adapters/postgres/pool.py", '"synchronous_commit": "on"', '"synchronous_commit": "local"')],
    rows=[5],
    checks=["nothing is acknowledged, and everything can be read"],
)
REPETITION_NOT_VOUCHED_FOR: Final = PlantedBug(
    name="repetition_not_vouched_for",
    what="a repetition is answered from what can be seen, whether or not the standby has it",
    edits=[Edit("adapters/postgres/transacting.py", _VOUCHES, _DOES_NOT)],
    rows=[5],
    checks=["no repetition vouches for what the standby lacks"],
)
LOOKUP_AFTER_COMPARE: Final = PlantedBug(
    name="lookup_after_compare",
    what="a request id is looked up after the revisions have been compared",
    edits=[Edit("adapters/postgres/transacting.py", _LOOKUP, _LOOKUP_LAST)],
    rows=[1],
    checks=["repetitions get the first answer", "refused writes are not there"],
)
REVISION_COMPARE_LOOSENED: Final = PlantedBug(
    name="revision_compare_loosened",
    what="a change set is applied to a node that has left the revision which it names",
    edits=[
        Edit(
            "domain/staging.py",
            "elif node.revision != operation.expected_revision:",
            "elif node.revision < operation.expected_revision:",
        )
    ],
    rows=[2],
    checks=["exactly one winner per revision", "what is named is what is compared", "one compare-and-set winner"],
)
RECEIPT_NOT_COMPLETED: Final = PlantedBug(
    name="receipt_not_completed",
    what="a publication whose holder died is left without a receipt, and built again",
    edits=[
        Edit(
            "app/semantic/partition_state.py",
            "if intent is not None and manifest is not None and _happened(intent, manifest):",
            "if intent is not None and manifest is not None and not _happened(intent, manifest):",
        )
    ],
    rows=[3],
    checks=["a dead holder's publication is put on record"],
)
REGRESS_NOT_COMPARED: Final = PlantedBug(
    name="regress_not_compared",
    what="whatever index is there counts as what was published last",
    edits=[
        Edit(
            "app/semantic/partition_state.py",
            "elif manifest is not None and _agrees(receipt, manifest):",
            "elif manifest is not None:",
        )
    ],
    rows=[4],
    checks=["an index that lost a publication is known as such"],
)
HITS_NOT_RECHECKED: Final = PlantedBug(
    name="hits_not_rechecked",
    what="what the index finds is a hit, whether or not it is ACTIVE and says the same now",
    edits=[
        Edit("app/semantic/binding.py", "kept = alive[first + documents]", "kept = alive[first + documents] | True"),
        Edit("app/semantic/search.py", "same = text_digest(embedded_text(node)) == record.text_digest", "same = True"),
    ],
    rows=[8],
    checks=["no outdated meaning is found"],
)
NAMESPACE_NOT_CHECKED: Final = PlantedBug(
    name="namespace_not_checked",
    what="a credential opens every tenant's namespace, whatever it was made for",
    edits=[Edit("domain/caller.py", "if allowed is not None and given not in allowed:", "if allowed == frozenset():")],
    rows=[10],
    checks=["a foreign namespace is denied"],
)
NAMES_LIKE_OTHERS: Final = PlantedBug(
    name="names_like_others",
    what="names of tenants are compared without their blanks and their case",
    edits=[
        Edit(
            "domain/caller.py",
            "if allowed is not None and given not in allowed:",
            "if allowed is not None and given.strip().lower() not in allowed:",
        )
    ],
    rows=[10],
    checks=["no tenant by a name like it"],
)
CACHE_SHARED: Final = PlantedBug(
    name="cache_shared",
    what="whoever embeds a text finds the vector that another namespace has paid for",
    edits=[
        Edit(
            "adapters/postgres/sql/semantic_records.sql",
            "WHERE namespace_key = $1 AND model_digest = $2 AND text_digest = ANY ($3::bytea[]);",
            "WHERE $1::bytea IS NOT NULL AND model_digest = $2 AND text_digest = ANY ($3::bytea[]);",
        )
    ],
    rows=[10],
    checks=["no vector of another is there before"],
)
ARCHIVED_BELOW: Final = 0.5
"""Importance. The first half-life of any memory takes it below that, so that each run of hosts comes to it."""

ARCHIVED_SILENTLY: Final = PlantedBug(
    name="archived_silently",
    what="a memory that hardly matters any more is archived by the very change that says so",
    edits=[
        Edit(
            "domain/staging.py",
            "            labels=dict(sorted(labels.items())),\n        )\n\n    # Relations",
            "            labels=dict(sorted(labels.items())),\n"
            "            status=NodeStatus.ARCHIVED\n"
            f"            if (operation.importance or 1) < {ARCHIVED_BELOW} else after.status,\n"
            "        )\n\n    # Relations",
        )
    ],
    rows=[6],
    checks=["no ACTIVE memory ended unasked"],
)

ALL: Final = (
    FENCE_COMPARE_REMOVED,
    ACKNOWLEDGED_BEFORE_COMMIT,
    COMMIT_NOT_DURABLE,
    STANDBY_NOT_AWAITED,
    REPETITION_NOT_VOUCHED_FOR,
    LOOKUP_AFTER_COMPARE,
    REVISION_COMPARE_LOOSENED,
    RECEIPT_NOT_COMPLETED,
    REGRESS_NOT_COMPARED,
    HITS_NOT_RECHECKED,
    NAMESPACE_NOT_CHECKED,
    NAMES_LIKE_OTHERS,
    CACHE_SHARED,
    ARCHIVED_SILENTLY,
)
