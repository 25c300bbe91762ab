"""What must hold of recall by meaning, whatever happened to index, provider and servers in between.

A ranking is the node ids of one answer, best first. Questions are named by keys, never by their words.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

Ranking = Sequence[str]


def worse_ranks(before: Mapping[str, Ranking], after: Mapping[str, Ranking], right: Mapping[str, str]) -> list[str]:
    """The right answer of each question has kept its rank: the same vectors give the same order."""
    found = []
    for question, node_id in right.items():
        first, then = rank(before.get(question, ()), node_id), rank(after.get(question, ()), node_id)
        if first != then:
            found.append(f"question {question}: {node_id} was at rank {first}, and is at {then}")
    return found


def misunderstood(answers: Mapping[str, Ranking], right: Mapping[str, str], *, most: int) -> list[str]:
    """All but `most` of the questions have their right answer first: it is a model that understands."""
    missed = [
        f"question {question}: {node_id} is at rank {rank(answers.get(question, ()), node_id)}"
        for question, node_id in right.items()
        if rank(answers.get(question, ()), node_id) != 1
    ]
    return missed if len(missed) > most else []


def rank(answer: Ranking, node_id: str) -> int:
    """From 1; 0 if it is not there."""
    return answer.index(node_id) + 1 if node_id in answer else 0


def several_identities(seen: Mapping[str, Collection[str]]) -> list[str]:
    """Everybody who was asked, whenever, named one generation. `seen`: authority digests by who said so."""
    digests = {digest for said in seen.values() for digest in said}
    if len(digests) == 1 and all(seen.values()):
        return []
    return [f"{who} named {sorted(said) or 'no generation'}" for who, said in sorted(seen.items())]


def outdated(answers: Mapping[str, Ranking], gone: Mapping[str, str], when: str) -> list[str]:
    """No question finds what is not there any more, or says something else now. `gone`: by question."""
    return [
        f"{when}, question {question}: {node_id} is at rank {rank(answers[question], node_id)}"
        for question, node_id in gone.items()
        if rank(answers.get(question, ()), node_id)
    ]


def lost(answers: Mapping[str, Ranking], kept: Mapping[str, str], when: str) -> list[str]:
    """Each question finds what is still there. `kept`: by question."""
    return [
        f"{when}, question {question}: {node_id} is not found"
        for question, node_id in kept.items()
        if not rank(answers.get(question, ()), node_id)
    ]


def paid_twice(steps: Sequence[tuple[str, int, int]]) -> list[str]:
    """The provider was given no other than the new texts. `steps`: what was done, how many were new, how many it got.

    They may be fewer: what a refresh that was cut short had embedded is no more new to the one after it.
    """
    return [f"{what}: {new} texts were new, and {given} were embedded" for what, new, given in steps if given > new]
