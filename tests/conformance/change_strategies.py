"""Change sets for hypothesis: ids, texts and sources come from small sets, so that operations meet each other."""

from hypothesis import strategies as st

from durable_memory.domain.change_set import (
    Activate,
    AddRelation,
    Corroborate,
    Create,
    NodeDraft,
    Operation,
    RemoveRelation,
    Revise,
    ReviseMode,
    SetStatus,
)
from durable_memory.domain.evidence import EvidenceInput, EvidenceKind, body_digest
from durable_memory.domain.node import NodeKind, NodeRevision, NodeStatus, Relation, RelationKind
from tests.conformance.samples import decision_evidence

NODE_IDS = ("A", "a", "é", "記")
CONTENTS = ("one", "two", "naïve 记忆")
LABELS = ("topic", "naïve.key")
KINDS_OF_EVIDENCE = (EvidenceKind.USER_STATEMENT, EvidenceKind.MANUAL)

node_ids = st.sampled_from(NODE_IDS)
labels = st.dictionaries(st.sampled_from(LABELS), st.sampled_from(("", "1", "é")), max_size=2)
evidence = st.builds(
    lambda name, body, kind: EvidenceInput(uri=f"test:{name}", digest=body_digest(body.encode()), kind=kind),
    st.sampled_from(("x", "y", "é")),
    st.sampled_from(("1", "2", "3")),
    st.sampled_from(KINDS_OF_EVIDENCE),
)
some_evidence = st.lists(evidence, max_size=2, unique_by=lambda item: item.uri).map(tuple)
relations = st.builds(Relation, st.sampled_from(RelationKind), node_ids)
sometimes_wrong = st.sampled_from((0, 0, 0, 0, 0, 0, -1, 1))
often = st.sampled_from((True, True, True, True, False))


@st.composite
def operations(draw: st.DrawFn, current: dict[str, NodeRevision], fresh: str) -> tuple[Operation, ...]:
    """Operations on one to three nodes, most of which have a chance on the current state.

    `fresh` names evidence that nobody has offered before, as activations need it.
    """
    result: list[Operation] = []
    for node_id in draw(st.lists(node_ids, min_size=1, max_size=3, unique=draw(often))):
        held = current.get(node_id)
        offered = draw(some_evidence)
        if draw(often):
            offered = (*offered, decision_evidence(f"{fresh} {node_id}"))
        if held is None and draw(often):
            result.append(draw(creations(node_id, offered)))
        else:
            expected = (held.revision if held else 0) + draw(sometimes_wrong)
            result.extend(draw(changes(node_id, expected, current, offered)))
    return tuple(result)


@st.composite
def creations(draw: st.DrawFn, node_id: str, offered: tuple[EvidenceInput, ...]) -> Operation:
    draft = NodeDraft(
        kind=draw(st.sampled_from(NodeKind)),
        content=draw(st.sampled_from(CONTENTS)),
        surroundings=draw(st.sampled_from(((), ("before",), ("before", "日本")))),
        author=draw(st.sampled_from(("", "Ünïcode"))),
        evidence=offered,
        labels=draw(labels),
    )
    status = draw(st.sampled_from((NodeStatus.CANDIDATE, NodeStatus.ACTIVE)))
    return Create(node_id=node_id, status=status, draft=draft)


@st.composite
def changes(
    draw: st.DrawFn,
    node_id: str,
    expected: int,
    current: dict[str, NodeRevision],
    offered: tuple[EvidenceInput, ...],
) -> list[Operation]:
    name = draw(st.sampled_from(("corroborate", "revise", "revise", "activate", "relate", "unrelate", "set_status")))
    if name == "activate":
        return [Activate(node_id=node_id, expected_revision=expected, evidence=offered)]
    if name == "corroborate":
        return [Corroborate(node_id=node_id, expected_revision=expected, evidence=offered)]
    if name == "revise":
        return [
            Revise(
                node_id=node_id,
                expected_revision=expected,
                mode=ReviseMode.CORRECTION,
                content=draw(st.none() | st.sampled_from(CONTENTS)),
                set_labels=draw(labels),
                remove_labels=frozenset(draw(labels)),
                evidence=offered,
            )
        ]
    if name == "set_status":
        status = draw(st.sampled_from((NodeStatus.CONFLICTED, NodeStatus.SUPERSEDED, NodeStatus.ARCHIVED)))
        return [SetStatus(node_id=node_id, expected_revision=expected, status=status, evidence=offered)]
    relation = draw(relations)
    other = current[relation.node_id].revision if relation.node_id in current else 1
    inverse = Relation(relation.kind.inverse, node_id)
    operation = AddRelation if name == "relate" else RemoveRelation
    ends: list[Operation] = [
        operation(node_id=node_id, expected_revision=expected, relation=relation),
        operation(node_id=relation.node_id, expected_revision=other, relation=inverse),
    ]
    return ends if draw(often) else ends[:1]
