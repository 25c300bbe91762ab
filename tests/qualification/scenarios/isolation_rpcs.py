"""Every RPC of the contract, called with what belongs to another tenant."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

import grpc
from google.rpc import error_details_pb2, status_pb2

from durable_memory_client import MemoryClient
from durablememory.v1 import citation_pb2, namespace_pb2
from tests.qualification.checks import isolation
from tests.qualification.checks.isolation import Said, shape_of, words_of
from tests.rpc.conftest import CHANNEL_OPTIONS, Stubs
from tests.rpc.every_rpc import CONTENT, PROPOSED, Known, populate, requests
from tests.rpc.messages import request_id
from tests.rpc.reflected import ReflectedRpc, reflected_rpcs

NO_NAMESPACE: Final = frozenset({"SessionService.GetServerInfo"})
CREATING: Final = frozenset(
    {
        *("SessionService.OpenSession", "CandidateService.ProposeCandidates", "MemoryService.Remember"),
        *("MemoryService.PutMemory", "SemanticService.ClearPartition", "SemanticService.SetSchedule"),
    }
)
"""What makes something under a name that is free: it comes last, so that nothing is of one's own before."""

_ONE_FILE: Final = "TransferService.ImportNamespace"
"""Names another's things by bringing all of them, which has no counterpart that is nowhere."""

SECRETS: Final = {"the text of a memory": CONTENT, "the text of a candidate": PROPOSED}
_IDS: Final = 1_000


@dataclass(slots=True, kw_only=True)
class Tried:
    """What came of it, by RPC."""

    rpcs: Sequence[str]
    asked: Sequence[str]
    denied: Mapping[str, Sequence[Said]]
    """A foreign namespace, named: with what is there, with what is not, and one that is empty."""
    own: Mapping[str, Sequence[Said]]
    """One's own empty namespace: asked for what is another's, and for what is nowhere."""
    imported: Said
    before: Mapping[str, object]
    after: Mapping[str, object]
    ratios: Mapping[str, float] = field(default_factory=dict)
    """How much longer it takes to refuse what is another's than what is nowhere."""

    @property
    def everything(self) -> dict[str, Said]:
        """All answers, for a look into them."""
        of_namespaces = {f"{name} in the other's namespace": said[0] for name, said in self.denied.items()}
        return {**{name: said[0] for name, said in self.own.items()}, **of_namespaces, _ONE_FILE: self.imported}


class EveryRpc:
    """Two tenants' tokens at one address: `intruder` tries what is `owner`'s."""

    def __init__(
        self, address: str, *, intruder: tuple[str, str], owner: tuple[str, str], owner_client: MemoryClient
    ) -> None:
        """Tenants come with their tokens. `owner_client` is of the owner's namespace that is to be filled."""
        self._address = address
        self._tenant, self._token = intruder
        self._owner_tenant, self._owner_token = owner
        self._client = owner_client
        self._mark = secrets.token_hex(4)

    async def run(self, times: int) -> Tried:
        """Try everything, and measure refusals so many times each."""
        await self._client.set_schedule()  # what is looked at before and after moves by nobody's hand but the other's
        async with (
            grpc.aio.insecure_channel(self._address, options=CHANNEL_OPTIONS) as channel,
            grpc.aio.insecure_channel(self._address, options=CHANNEL_OPTIONS) as owner_channel,
        ):
            theirs = self._client.ref.to_proto()
            known = await populate(Stubs(owner_channel, self._owner_token), theirs)
            nobodys = _nobodys(known)
            rpcs = {rpc.name: rpc for rpc in await reflected_rpcs(channel) if rpc.name not in NO_NAMESPACE}
            before = await self._standing()
            denied = await self._denied(channel, rpcs, theirs, known, nobodys)
            own, asked = await self._own(channel, rpcs, known, nobodys)
            mine = self._namespace("own-f")
            imported = await self._say(channel, rpcs[_ONE_FILE], requests(mine, known)[_ONE_FILE], ())
            tried = Tried(
                rpcs=list(rpcs),
                asked=[*asked, _ONE_FILE],
                denied=denied,
                own=own,
                imported=imported,
                before=before,
                after=await self._standing(),
            )
            refused = [rpcs[name] for name, said in own.items() if said[0].status != "OK" and name not in CREATING]
            tried.ratios = await self._times(channel, refused, known, nobodys, times)
        return tried

    async def _denied(
        self,
        channel: grpc.aio.Channel,
        rpcs: Mapping[str, ReflectedRpc],
        theirs: namespace_pb2.NamespaceRef,
        known: Known,
        nobodys: Known,
    ) -> dict[str, list[Said]]:
        empty = namespace_pb2.NamespaceRef(
            tenant_id=theirs.tenant_id, principal_id=theirs.principal_id, scope_id="x" * len(theirs.scope_id)
        )
        kinds = [requests(theirs, known), requests(theirs, nobodys), requests(empty, nobodys)]
        return {
            name: [await self._say(channel, rpc, kind[name], ()) for kind in kinds]
            for name, rpc in rpcs.items()
            if name in kinds[0]
        }

    async def _own(
        self, channel: grpc.aio.Channel, rpcs: Mapping[str, ReflectedRpc], known: Known, nobodys: Known
    ) -> tuple[dict[str, list[Said]], list[str]]:
        """Each RPC in two empty namespaces alike: in one it names what is another's, in one what is nowhere."""
        _make_room()
        with_known, with_nobodys = (
            requests(self._namespace("own-k"), known),
            requests(self._namespace("own-n"), nobodys),
        )
        names = (*_names(known), *_names(nobodys), "own-k", "own-n")
        answers: dict[str, list[Said]] = {}
        for name in sorted(with_known, key=lambda name: (name in CREATING, name)):
            if name in rpcs and name != _ONE_FILE:
                answers[name] = [
                    await self._say(channel, rpcs[name], asked[name], names) for asked in (with_known, with_nobodys)
                ]
        return answers, list(answers)

    async def _times(
        self, channel: grpc.aio.Channel, refused: Iterable[ReflectedRpc], known: Known, nobodys: Known, times: int
    ) -> dict[str, float]:
        mine = self._namespace("own-t")
        of_known, of_nobodys = requests(mine, known), requests(mine, nobodys)
        ratios: dict[str, float] = {}
        for rpc in refused:
            taken: tuple[list[float], list[float]] = ([], [])
            for _ in range(times):
                for place, asked in enumerate((of_known, of_nobodys)):
                    began = time.perf_counter()
                    with suppress(grpc.aio.AioRpcError):
                        await rpc.call(channel, asked[rpc.name], token=self._token)
                    taken[place].append(time.perf_counter() - began)
            ratios[rpc.name] = isolation.ratio(*taken)
        return ratios

    async def _say(self, channel: grpc.aio.Channel, rpc: ReflectedRpc, request: Any, names: Iterable[str]) -> Said:
        return await say(channel, rpc, request, self._token, names)

    async def _standing(self) -> dict[str, object]:
        """All that the owner can see of its namespace."""
        memory = self._client
        snapshot = memory.snapshot()
        await snapshot.all()
        status = await memory.get_index_status()
        health = await memory.get_maintenance_health()
        return {
            "the change token": await memory.get_change_token(),
            "the digest of everything": snapshot.digest,
            "the history": await memory.list_change_sets().all(),
            "the usage": await memory.usage().all(),
            "the sessions": await memory.list_sessions().all(),
            "the index": (status.state, status.published, status.last_receipt, status.schedule),
            "the receipts": await memory.list_receipts().all(),
            "the scheduled refreshes": health.runs,
        }

    def _namespace(self, scope: str) -> namespace_pb2.NamespaceRef:
        """One of the intruder's own, in which nothing is."""
        return namespace_pb2.NamespaceRef(tenant_id=self._tenant, principal_id=f"p-{self._mark}", scope_id=scope)


async def say(channel: grpc.aio.Channel, rpc: ReflectedRpc, request: Any, token: str, names: Iterable[str]) -> Said:
    """Make a call, and keep what its caller learns. `names`: what it put into it, of which it learns nothing."""
    try:
        answers = await rpc.call(channel, request, token=token)
    except grpc.aio.AioRpcError as error:
        return refusal(error, names)
    shape = repr([shape_of(answer) for answer in answers])
    return Said(status="OK", shape=shape, text=b"".join(answer.SerializeToString() for answer in answers))


def refusal(error: grpc.aio.AioRpcError, names: Iterable[str]) -> Said:
    """What a refused call says: its status, and everything in its details."""
    metadata = dict(error.trailing_metadata() or ())
    packed = metadata.get("grpc-status-details-bin", b"")
    raw = packed if isinstance(packed, bytes) else packed.encode()
    info = error_details_pb2.ErrorInfo()
    for detail in status_pb2.Status.FromString(raw).details:
        detail.Unpack(info)
    told = f"{error.details()} {sorted(info.metadata.items())} {sorted(metadata)}"
    return Said(
        status=error.code().name,
        reason=info.reason.removeprefix("ERROR_REASON_"),
        field=info.metadata.get("field", ""),
        shape=words_of(told, names),
        text=repr(sorted(metadata.items())).encode() + raw + (error.details() or "").encode(),
    )


def _names(known: Known) -> tuple[str, ...]:
    return (
        *(known.active.node_id, known.active.content_digest, known.candidate.node_id, known.candidate.content_digest),
        *(known.session_id, known.binding_digest, known.run_id, known.incarnation, known.context_id),
        known.apply_request_id,
    )


def _nobodys(known: Known) -> Known:
    """Names as long as those that are known, which are nowhere."""
    return replace(
        known,
        active=_citation_of_nothing(known.active, "n"),
        candidate=_citation_of_nothing(known.candidate, "m"),
        session_id="n" * len(known.session_id),
        binding_digest=secrets.token_hex(len(known.binding_digest) // 2),
        run_id="n" * len(known.run_id),
        incarnation=secrets.token_hex(len(known.incarnation) // 2),
        context_id=secrets.token_hex(len(known.context_id) // 2),
        apply_request_id="n" * len(known.apply_request_id),
    )


def _citation_of_nothing(known: citation_pb2.Citation, letter: str) -> citation_pb2.Citation:
    return citation_pb2.Citation(
        namespace_revision=known.namespace_revision,
        node_id=letter * len(known.node_id),
        node_revision=known.node_revision,
        content_digest=secrets.token_hex(len(known.content_digest) // 2),
    )


def _make_room() -> None:
    """Go on in the numbers of request ids until the next few hundred are equally long."""
    while True:
        number = int(request_id().rpartition("-")[2])
        if number >= _IDS // 10 and number % _IDS < _IDS // 2:
            return
