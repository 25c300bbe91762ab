"""CandidateService: propose, list, decide, through a real channel."""

import pytest

from durable_memory.domain.errors import Reason
from durablememory.v1 import candidate_service_pb2 as pb
from durablememory.v1 import decision_pb2, error_reason_pb2, node_pb2
from durablememory.v1 import memory_service_pb2 as memory_pb
from tests.rpc.messages import call, change_token, draft, manual, namespace, ref, remember, turn
from tests.rpc.refusals import refused


@pytest.fixture
async def stubs(server_app):
    return await server_app.stubs()


def proposal(content="The user prefers tea.", number=1, **fields):
    return pb.CandidateProposal(memory=draft(content, evidence=[turn(number)]), **fields)


async def propose(stubs, *proposals, **fields):
    return await stubs.candidates.ProposeCandidates(pb.ProposeCandidatesRequest(**call(proposals=proposals, **fields)))


async def activate(stubs, *refs, **fields):
    fields = {"decision": manual(), **fields}
    return await stubs.candidates.ActivateCandidates(pb.ActivateCandidatesRequest(**call(items=refs, **fields)))


async def reject(stubs, *refs):
    return await stubs.candidates.RejectCandidates(
        pb.RejectCandidatesRequest(**call(items=refs, decision=manual("not true")))
    )


async def test_a_proposal_becomes_a_candidate_with_its_evidence(stubs):
    answer = await propose(stubs, proposal(node_id="drink"))

    (result,) = answer.results
    assert result.outcome == pb.PROPOSAL_OUTCOME_CREATED
    assert result.citation.node_id == "drink"
    listed = await stubs.candidates.ListCandidates(pb.ListCandidatesRequest(namespace=namespace()))
    (candidate,) = listed.candidates
    assert candidate.status == node_pb2.NODE_STATUS_CANDIDATE
    assert candidate.citation == result.citation
    assert candidate.decided_by == ""
    assert listed.change_token == answer.change_token


async def test_an_equal_proposal_corroborates_and_the_same_evidence_changes_nothing(stubs):
    await propose(stubs, proposal(number=1))
    token = await change_token(stubs)

    same = await propose(stubs, proposal(number=1))
    assert [result.outcome for result in same.results] == [pb.PROPOSAL_OUTCOME_UNCHANGED]
    assert await change_token(stubs) == token

    more = await propose(stubs, proposal(number=2))
    assert [result.outcome for result in more.results] == [pb.PROPOSAL_OUTCOME_CORROBORATED]
    assert more.results[0].citation.node_revision == 2


async def test_an_equal_proposal_ends_at_the_active_memory(stubs):
    active = await remember(stubs)

    answer = await propose(stubs, proposal())

    (result,) = answer.results
    assert result.outcome == pb.PROPOSAL_OUTCOME_ALREADY_ACTIVE
    assert result.citation == active


async def test_a_decision_lets_an_exact_revision_in_and_a_second_look_finds_it_there(stubs):
    (proposed,) = (await propose(stubs, proposal())).results

    answer = await activate(stubs, ref(proposed.citation))
    again = await activate(stubs, ref(proposed.citation))

    (result,) = answer.results
    assert result.outcome == pb.ACTIVATION_OUTCOME_ACTIVATED
    assert result.citation.node_revision == 2
    assert [item.outcome for item in again.results] == [pb.ACTIVATION_OUTCOME_ALREADY_ACTIVE]
    assert again.results[0].citation == result.citation
    assert again.change_token == answer.change_token


async def test_without_a_decision_nothing_is_activated_and_the_accepted_kinds_are_named(stubs):
    (proposed,) = (await propose(stubs, proposal())).results
    token = await change_token(stubs)

    async with refused(Reason.EVIDENCE_REQUIRED, accepted_kinds="MANUAL,VERIFICATION"):
        await stubs.candidates.ActivateCandidates(
            pb.ActivateCandidatesRequest(**call(items=[ref(proposed.citation)], evidence=[turn(9)]))
        )
    assert await change_token(stubs) == token


async def test_each_item_of_a_decision_has_its_own_outcome(stubs):
    good, moved = (await propose(stubs, proposal("tea", node_id="a"), proposal("milk", node_id="b"))).results
    await propose(stubs, proposal("milk", number=2))
    active = await remember(stubs, "sugar", node_id="c")

    answer = await activate(stubs, ref(good.citation), ref(moved.citation), {"node_id": "d", "revision": 1})

    assert [item.outcome for item in answer.results] == [
        pb.ACTIVATION_OUTCOME_ACTIVATED,
        pb.ACTIVATION_OUTCOME_REFUSED,
        pb.ACTIVATION_OUTCOME_REFUSED,
    ]
    _, conflict, missing = (item.error for item in answer.results)
    assert conflict.reason == error_reason_pb2.ERROR_REASON_REVISION_CONFLICT
    assert dict(conflict.metadata) == {"node_id": "b", "expected": "1", "actual": "2"}
    assert missing.reason == error_reason_pb2.ERROR_REASON_NODE_NOT_FOUND
    retired = await stubs.memories.RetireMemory(memory_pb.RetireMemoryRequest(**call(citation=active)))
    (archived,) = (await activate(stubs, ref(retired.citation))).results
    assert archived.error.reason == error_reason_pb2.ERROR_REASON_INVALID_TRANSITION
    assert dict(archived.error.metadata) == {"node_id": "c", "from": "ARCHIVED", "to": "ACTIVE"}


async def test_what_was_rejected_stays_rejected_until_it_is_proposed_on_purpose(stubs):
    (proposed,) = (await propose(stubs, proposal())).results

    rejected = await reject(stubs, ref(proposed.citation))
    again = await reject(stubs, ref(proposed.citation))
    repeated = await propose(stubs, proposal(number=2))
    insisted = await propose(stubs, proposal(number=3), repropose=True)

    assert [item.outcome for item in rejected.results] == [pb.REJECTION_OUTCOME_REJECTED]
    assert [item.outcome for item in again.results] == [pb.REJECTION_OUTCOME_ALREADY_REJECTED]
    assert again.results[0].citation == rejected.results[0].citation
    assert [item.outcome for item in repeated.results] == [pb.PROPOSAL_OUTCOME_PREVIOUSLY_REJECTED]
    assert repeated.results[0].citation == rejected.results[0].citation
    assert [item.outcome for item in insisted.results] == [pb.PROPOSAL_OUTCOME_CREATED]


async def test_an_active_memory_cannot_be_rejected_as_a_candidate(stubs):
    active = await remember(stubs)

    (result,) = (await reject(stubs, ref(active))).results

    assert result.outcome == pb.REJECTION_OUTCOME_REFUSED
    assert result.error.reason == error_reason_pb2.ERROR_REASON_INVALID_TRANSITION


async def test_candidates_are_listed_by_kind_and_label_in_pages_of_one_revision(stubs):
    async def add(number, **fields):
        labels = {"parity": "odd" if number % 2 else "even"}
        memory = draft(f"fact {number}", evidence=[turn(number)], labels=labels, **fields)
        await propose(stubs, pb.CandidateProposal(node_id=f"node-{number}", memory=memory))

    for number in range(5):
        await add(number)
    await add(6, kind=node_pb2.NODE_KIND_EPISODIC)
    request = pb.ListCandidatesRequest(
        namespace=namespace(), kinds=[node_pb2.NODE_KIND_SEMANTIC], labels={"parity": "even"}, page_size=2
    )

    first = await stubs.candidates.ListCandidates(request)
    await add(8)
    request.page_token = first.next_page_token
    second = await stubs.candidates.ListCandidates(request)

    assert [node.id for node in first.candidates] == ["node-0", "node-2"]
    assert [node.id for node in second.candidates] == ["node-4"]
    assert second.next_page_token == ""
    assert second.change_token == first.change_token


@pytest.mark.parametrize(
    ("change", "reason", "field"),
    [
        (lambda request: request.ClearField("proposals"), Reason.INVALID_FIELD, "proposals"),
        (lambda request: request.proposals.extend([proposal()] * 128), Reason.LIMIT_EXCEEDED, "proposals"),
        (lambda request: request.proposals[0].ClearField("memory"), Reason.INVALID_FIELD, "proposals[0].memory"),
        (
            lambda request: request.proposals[0].memory.ClearField("evidence"),
            Reason.INVALID_FIELD,
            "proposals[0].memory.evidence",
        ),
        (
            lambda request: request.proposals[0].memory.evidence[0].occurred_at.FromSeconds(32_503_680_000),
            Reason.INVALID_FIELD,
            "proposals[0].memory.evidence[0].occurred_at",
        ),
        (
            lambda request: request.proposals.add(node_id="", memory=draft("x", evidence=[turn()])),
            Reason.INVALID_FIELD,
            "proposals[1].node_id",
        ),
    ],
)
async def test_a_proposal_out_of_form_is_refused_by_its_field(stubs, change, reason, field):
    request = pb.ProposeCandidatesRequest(**call(proposals=[proposal()]))
    change(request)

    async with refused(reason, field=field):
        await stubs.candidates.ProposeCandidates(request)


async def test_a_node_that_is_decided_on_twice_in_one_call_is_refused(stubs):
    (proposed,) = (await propose(stubs, proposal())).results

    async with refused(Reason.INVALID_FIELD, field="items[1].node_id"):
        await activate(stubs, ref(proposed.citation), ref(proposed.citation))
    async with refused(Reason.INVALID_FIELD, field="items"):
        await activate(stubs)
    async with refused(Reason.INVALID_FIELD, field="items[0].revision"):
        await activate(stubs, {"node_id": "a"})
    async with refused(Reason.INVALID_FIELD, field="decision.kind"):
        await activate(stubs, ref(proposed.citation), decision=decision_pb2.Decision(note="looks right"))
