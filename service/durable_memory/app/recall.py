"""Recall: what an agent may be reminded of, found in a view that is as new as the call."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Final

from durable_memory.app.access import AccessService, admission_decision, admission_reads
from durable_memory.app.call import Call, Mutation
from durable_memory.app.change_sets import committed, repeated
from durable_memory.app.degradation import degradation
from durable_memory.app.ranking import Question, Ranker
from durable_memory.app.recall_result import (
    NOT_USED,
    AdmittedRecall,
    BranchScore,
    Degradation,
    DegradationReason,
    Explanation,
    HitRelation,
    RecallAnswer,
    RecallChannel,
    RecallHit,
    SemanticSearched,
)
from durable_memory.app.sessions import PolicyDefaults, PolicyRequest
from durable_memory.app.stored_results import integer, mapping, number, objects, parse_ref, ref_json
from durable_memory.app.views.cache import ViewCache
from durable_memory.app.views.revisions import HeldRevision, RevisionCache
from durable_memory.app.views.view import View, document_of
from durable_memory.domain.access import AccessItem
from durable_memory.domain.canonical import JsonObject, JsonValue
from durable_memory.domain.errors import invalid_field, limit_exceeded, node_not_found
from durable_memory.domain.lexical.query import ANY_DOCUMENT, LexicalFilter, has_searchable_text
from durable_memory.domain.limits import QUERY_MAX_BYTES
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.node import NodeRef, NodeRevision, NodeStatus, RelationKind
from durable_memory.domain.semantic.fusion import BRANCH_CUT
from durable_memory.domain.semantic.manifest import Manifest
from durable_memory.domain.session import RecallMode, RecallPolicy, Session, session_not_found
from durable_memory.domain.state import ChangeToken, Head
from durable_memory.ports.observing import UNOBSERVED, Observer
from durable_memory.ports.runtime import Clock
from durable_memory.ports.store import Decision, Loaded, Lock, Outcome, Plan, Store

_SESSION_CACHE: Final = 10_000


class RecallService:
    """Active recall for sessions, preview without one, and the explanation of both. Pure but for `admit`."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        views: ViewCache,
        revisions: RevisionCache,
        access: AccessService,
        defaults: PolicyDefaults,
        ranker: Ranker,
        observer: Observer = UNOBSERVED,
    ) -> None:
        self._store = store
        self._clock = clock
        self._views = views
        self._revisions = revisions
        self._access = access
        self._defaults = defaults
        self._ranker = ranker
        self._observer = observer
        self._sessions: OrderedDict[tuple[bytes, str], tuple[str, int, Session]] = OrderedDict()

    async def active(
        self,
        call: Call,
        session_id: str,
        query: str,
        filter: LexicalFilter = ANY_DOCUMENT,
        mode: RecallMode | None = None,
    ) -> RecallAnswer:
        """The session's recall. Sees every change set acknowledged before it began, from any replica.

        Raises: INVALID_FIELD, LIMIT_EXCEEDED, SESSION_NOT_FOUND, SESSION_CLOSED, SEMANTIC_UNAVAILABLE,
        NAMESPACE_TOO_LARGE.
        """
        check_query(query)
        manifest = self._read_ahead(call.namespace, session_id, mode)
        head = await self._store.head(call.namespace)
        policy = await self._policy(call, session_id, mode, head)
        return await self._recall(call, head, query, filter, policy, manifest)

    async def preview(
        self, call: Call, query: str, request: PolicyRequest, filter: LexicalFilter = ANY_DOCUMENT
    ) -> RecallAnswer:
        """A recall under a policy given with the call, for people and tools that have no session."""
        check_query(query)
        policy = self._defaults.settle(request)
        manifest = None if policy.mode is RecallMode.LEXICAL else self._ranker.read_ahead(call.namespace)
        head = await self._store.head(call.namespace)
        return await self._recall(call, head, query, filter, policy, manifest)

    async def active_admitted(
        self,
        call: Mutation,
        session_id: str,
        context_id: str,
        query: str,
        filter: LexicalFilter = ANY_DOCUMENT,
        mode: RecallMode | None = None,
    ) -> AdmittedRecall:
        """Recall and admit in one call. A repeat of the request returns the hits of the first, whatever changed since.

        Raises: as `active` and `AccessService.admit`.
        """
        check_query(query)
        if await self._store.find_request(call.namespace, call.request.method, call.request.key) is None:
            answer = await self.active(call, session_id, query, filter, mode)
            outcome = await self._admit(call, session_id, context_id, answer)
        else:
            outcome = await repeated(self._store, call)
        with committed():
            return await self._stored_answer(call, outcome.result, outcome.head.history_id)

    async def explain(
        self,
        call: Call,
        session_id: str,
        node_id: str,
        query: str,
        filter: LexicalFilter = ANY_DOCUMENT,
        mode: RecallMode | None = None,
    ) -> Explanation:
        """Status, terms, score against the floors, rank, and what cut the memory off, if anything did.

        Raises: as `active`, and NODE_NOT_FOUND.
        """
        check_query(query)
        head = await self._store.head(call.namespace)
        policy = await self._policy(call, session_id, mode, head)
        begun = self._ranker.begin(_question(call, query, filter, policy))
        view = await self._views.view(call.namespace, head)
        nodes = await self._store.nodes_at(call.namespace, {node_id}, view.key.revision)
        if node_id not in nodes:
            raise node_not_found(node_id)
        ranking = await self._ranker.rank(begun, view, uncut=True)
        explanation = await asyncio.to_thread(
            view.index.explain,
            query,
            policy.lexical_profile,
            node_id,
            limit=BRANCH_CUT if ranking.mode is RecallMode.HYBRID else policy.max_results,
            filter=filter,
            min_score=policy.min_score,
            min_relative_score=policy.min_relative_score,
        )
        rank = next((rank for rank, hit in enumerate(ranking.hits, start=1) if hit.node_id == node_id), None)
        standing, without = NOT_USED, ranking.degradation
        if ranking.semantic is not None:
            standing, without = await self._ranker.standing(begun, view, node_id)
        return Explanation(
            token=view.key.token,
            node=nodes[node_id],
            mode=ranking.mode,
            degradation=without,
            lexical=explanation,
            semantic=standing,
            rank=explanation.rank if rank is None and ranking.mode is RecallMode.LEXICAL else rank,
            recalled=rank is not None and rank <= policy.max_results,
        )

    # One recall in one view

    async def _recall(
        self,
        call: Call,
        head: Head,
        query: str,
        filter: LexicalFilter,
        policy: RecallPolicy,
        manifest: asyncio.Future[Manifest | None] | None,
    ) -> RecallAnswer:
        begun = self._ranker.begin(_question(call, query, filter, policy), manifest)
        view = await self._views.view(call.namespace, head)
        ranking = await self._ranker.rank(begun, view)
        texts = await self._exact(call, view, [NodeRef(hit.node_id, hit.revision) for hit in ranking.hits])
        related = await self._related(call, view, texts, policy, filter)
        statuses = await self._statuses(call, view, [*texts, *(held for _, held in related)])
        now = self._clock.now()
        hits = [
            RecallHit(
                held=held,
                rank=rank,
                score=hit.score,
                channel=hit.channel,
                lexical=hit.lexical,
                semantic=hit.semantic,
                relations=_relations(held.node, statuses),
                age=_age(held.node, now),
            )
            for rank, (hit, held) in enumerate(zip(ranking.hits, texts, strict=True), start=1)
        ]
        hits += [
            RecallHit(
                held=held,
                rank=rank,
                score=0.0,
                channel=RecallChannel.RELATED,
                lexical=None,
                semantic=None,
                relations=_relations(held.node, statuses),
                age=_age(held.node, now),
                related_to=source,
            )
            for rank, (source, held) in enumerate(related, start=len(hits) + 1)
        ]
        self._observer.recall_answered(hit.channel.name for hit in hits)
        return RecallAnswer(
            token=view.key.token,
            mode=ranking.mode,
            degradation=ranking.degradation,
            searched_nodes=view.index.count(filter),
            hits=tuple(hits),
            semantic=ranking.semantic,
        )

    async def _related(
        self,
        call: Call,
        view: View,
        hits: Sequence[HeldRevision],
        policy: RecallPolicy,
        filter: LexicalFilter,
    ) -> list[tuple[str, HeldRevision]]:
        """One hop of RELATED_TO from each hit, in order: (hit's node id, text), within both bounds of the policy.

        Only what is ACTIVE in the view, and was not found or excluded already, is read at all.
        """
        room = policy.max_results - len(hits)
        if not room or not policy.related_lookups:
            return []
        taken = filter.excluded_ids | {hit.node.node_id for hit in hits}
        sources: dict[NodeRef, str] = {}
        for hit in hits:
            for relation in hit.node.relations:
                if relation.kind is RelationKind.RELATED_TO and relation.node_id not in taken:
                    revision = view.index.revision_of(relation.node_id)
                    if revision is not None:
                        sources.setdefault(NodeRef(relation.node_id, revision), hit.node.node_id)
        refs = list(sources)[: policy.related_lookups]
        texts = await self._exact(call, view, refs)
        return [(sources[held.node.ref], held) for held in texts if not filter.refusal(document_of(held.node))][:room]

    async def _statuses(self, call: Call, view: View, texts: Sequence[HeldRevision]) -> dict[str, NodeStatus]:
        """Of the other ends of some nodes' relations, at the view's revision. The view knows the ACTIVE ones."""
        ids = {relation.node_id for held in texts for relation in held.node.relations}
        statuses = {node_id: NodeStatus.ACTIVE for node_id in ids if node_id in view.index}
        others = ids - statuses.keys()
        if others:
            found = await self._store.nodes_at(call.namespace, others, view.key.revision)
            statuses.update((node_id, node.status) for node_id, node in found.items())
        return statuses

    async def _exact(self, call: Call, view: View, refs: Sequence[NodeRef]) -> list[HeldRevision]:
        return await self._revisions.held(call.namespace, view.key.history_id, refs)

    # Sessions

    def _read_ahead(
        self, namespace: Namespace, session_id: str, mode: RecallMode | None
    ) -> asyncio.Future[Manifest | None] | None:
        """The manifest, read beside the head, if the session was last seen to search by meaning.

        Whatever it was then, nothing else than the order of reads depends on it.
        """
        cached = self._sessions.get((namespace.key, session_id))
        if cached is None:
            return None
        policy = cached[2].binding.policy
        if policy.semantic is None or RecallMode.LEXICAL in (mode, policy.mode):
            return None
        return self._ranker.read_ahead(namespace)

    async def _policy(self, call: Call, session_id: str, mode: RecallMode | None, head: Head) -> RecallPolicy:
        """What an open session is bound to, for one call.

        Raises: SESSION_NOT_FOUND, SESSION_CLOSED, INVALID_FIELD for a mode that the binding does not leave open.
        """
        session = await self._session(call.namespace, session_id, head)
        session.require_open()
        return _narrowed(session.binding.policy, mode)

    async def _session(self, namespace: Namespace, session_id: str, head: Head) -> Session:
        """The stored session, as of `head`: the head counts the writes of sessions, so a copy is known to be new."""
        key = (namespace.key, session_id)
        cached = self._sessions.get(key)
        if cached is not None and cached[:2] == (head.history_id, head.session_revision):
            self._sessions.move_to_end(key)
            return cached[2]
        session = await self._store.get_session(namespace, session_id)
        if session is None:
            raise session_not_found(session_id)
        self._sessions[key] = (head.history_id, head.session_revision, session)
        if len(self._sessions) > _SESSION_CACHE:
            self._sessions.popitem(last=False)
        return session

    # Recall and admission as one mutation

    async def _admit(self, call: Mutation, session_id: str, context_id: str, answer: RecallAnswer) -> Outcome:
        items = [AccessItem(ref=hit.node.ref) for hit in answer.hits]
        now = self._clock.now()

        def decide(loaded: Loaded) -> Decision:
            admitted = admission_decision(loaded, call, session_id, context_id, items, now)
            return replace(admitted, result={**admitted.result, "recall": _answer_json(answer)})

        plan = Plan(
            lock=Lock.NODES,
            reads=admission_reads(session_id, context_id, items),
            decide=decide,
            request=call.request,
        )
        return await self._store.transact(call.namespace, plan)

    async def _stored_answer(self, call: Mutation, result: JsonObject, history_id: str) -> AdmittedRecall:
        """The answer that a stored result describes; texts and relations are read again."""
        recall = mapping(result["recall"])
        token = ChangeToken(history_id=history_id, namespace_revision=integer(recall["at"]))
        recorded = await self._access.recorded(call, result, history_id)
        admitted = {outcome.ref for outcome in recorded.outcomes if outcome.error is None}
        stored = [hit for hit in objects(recall["hits"]) if parse_ref(hit["node"]) in admitted]
        texts = await self._revisions.held(call.namespace, history_id, [parse_ref(hit["node"]) for hit in stored])
        ids = {relation.node_id for held in texts for relation in held.node.relations}
        others = await self._store.nodes_at(call.namespace, ids, token.namespace_revision) if ids else {}
        statuses = {node_id: node.status for node_id, node in others.items()}
        now = self._clock.now()
        hits = tuple(
            _hit_of_json(hit, rank, held, _relations(held.node, statuses), _age(held.node, now))
            for rank, (hit, held) in enumerate(zip(stored, texts, strict=True), start=1)
        )
        return AdmittedRecall(
            answer=RecallAnswer(
                token=token,
                mode=RecallMode[str(recall["mode"])],
                degradation=_degradation_of_json(recall),
                searched_nodes=integer(recall["searched_nodes"]),
                hits=hits,
                semantic=_semantic_of_json(recall.get("semantic")),
            ),
            admissions=recorded.outcomes,
            next_context_id=recorded.next_context_id,
        )


def check_query(query: str) -> None:
    """Raises: LIMIT_EXCEEDED, INVALID_FIELD for a query without a letter or digit of any script."""
    size = len(query.encode("utf-8", "surrogatepass"))
    if size > QUERY_MAX_BYTES:
        raise limit_exceeded("query", QUERY_MAX_BYTES, size, "bytes")
    if "\0" in query:
        raise invalid_field("query", "has a NUL character", position=query.index("\0"))
    if not has_searchable_text(query):
        raise invalid_field("query", "has no letter or digit")


def _narrowed(policy: RecallPolicy, mode: RecallMode | None) -> RecallPolicy:
    """The policy for one call. Only AUTO leaves the choice of the mode to the caller.

    Raises: INVALID_FIELD.
    """
    if mode is None or mode is policy.mode:
        return policy
    if policy.mode is not RecallMode.AUTO:
        raise invalid_field("mode", f"differs from the session's, which is {policy.mode.name}")
    return replace(policy, mode=mode)


def _question(call: Call, query: str, filter: LexicalFilter, policy: RecallPolicy) -> Question:
    return Question(namespace=call.namespace, query=query, filter=filter, policy=policy, ends_at=call.ends_at)


def _relations(node: NodeRevision, statuses: Mapping[str, NodeStatus]) -> tuple[HitRelation, ...]:
    return tuple(
        HitRelation(relation.kind, relation.node_id, statuses[relation.node_id])
        for relation in node.relations
        if relation.node_id in statuses
    )


def _age(node: NodeRevision, now: datetime) -> timedelta:
    """Never negative, though a source's clock may be ahead of the server's."""
    return max(now - node.updated_at, timedelta())


def _answer_json(answer: RecallAnswer) -> JsonObject:
    return {
        "at": answer.token.namespace_revision,
        "degradation": None if answer.degradation is None else answer.degradation.reason.name,
        "degradation_message": None if answer.degradation is None else answer.degradation.message,
        "hits": [
            {
                "channel": hit.channel.name,
                "lexical_rank": None if hit.lexical is None else hit.lexical.rank,
                "lexical_score": None if hit.lexical is None else hit.lexical.score,
                "node": ref_json(hit.node.ref),
                "related_to": hit.related_to,
                "score": hit.score,
                "semantic_rank": None if hit.semantic is None else hit.semantic.rank,
                "semantic_score": None if hit.semantic is None else hit.semantic.score,
            }
            for hit in answer.hits
        ],
        "mode": answer.mode.name,
        "searched_nodes": answer.searched_nodes,
        "semantic": None if answer.semantic is None else asdict(answer.semantic),
    }


def _degradation_of_json(stored: JsonObject) -> Degradation | None:
    reason = stored["degradation"]
    if reason is None:
        return None
    known = degradation(DegradationReason[str(reason)])
    message = stored.get("degradation_message")  # not in what earlier versions stored
    return known if message is None else replace(known, message=str(message))


def _semantic_of_json(stored: JsonValue) -> SemanticSearched | None:
    if stored is None:
        return None
    value = mapping(stored)
    return SemanticSearched(
        index_revision=integer(value["index_revision"]),
        index_history_digest=str(value["index_history_digest"]),
        vectors_searched=integer(value["vectors_searched"]),
        dropped=integer(value["dropped"]),
        refilled=integer(value["refilled"]),
        unindexed_active=integer(value["unindexed_active"]),
    )


def _branch_of_json(stored: JsonObject, branch: str) -> BranchScore | None:
    rank = stored.get(f"{branch}_rank")
    return None if rank is None else BranchScore(integer(rank), number(stored[f"{branch}_score"]))


def _hit_of_json(
    stored: JsonObject, rank: int, held: HeldRevision, relations: tuple[HitRelation, ...], age: timedelta
) -> RecallHit:
    related_to = stored["related_to"]
    return RecallHit(
        held=held,
        rank=rank,
        score=number(stored["score"]),
        channel=RecallChannel[str(stored["channel"])],
        lexical=_branch_of_json(stored, "lexical"),
        semantic=_branch_of_json(stored, "semantic"),
        relations=relations,
        age=age,
        related_to=None if related_to is None else str(related_to),
    )
