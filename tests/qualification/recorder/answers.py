"""What the answers of the public client promise, in the words of a history."""

from __future__ import annotations

from typing import TypeAlias

from durable_memory_client import (
    Activated,
    Admission,
    ChangeSet,
    Citation,
    Proposed,
    Put,
    Reactivated,
    Recall,
    Rejected,
    Remembered,
    Retired,
    Revised,
    Run,
    Superseded,
    UseOutcome,
)
from tests.qualification.recorder.history import Effect, Made, RecalledHit
from tests.qualification.traffic.wording import digest_of

Answer: TypeAlias = (
    ChangeSet
    | Remembered
    | Put
    | Revised
    | Retired
    | Reactivated
    | Superseded
    | Proposed
    | Activated
    | Rejected
    | Recall
    | Admission
    | Run
    | list[UseOutcome]
)

_CHANGED = frozenset({"CREATED", "REVISED", "REACTIVATED", "ACTIVATED", "REJECTED", "CORROBORATED"})


def stands(answer: Answer | None) -> tuple[str, int | None]:
    """Where the namespace stood, as far as the answer says so: history id and revision."""
    match answer:
        case None | list() | Run():
            return "", None
        case ChangeSet():
            return "", answer.namespace_revision
        case _:
            token = answer.change_token
            return ("", None) if token is None else (token.history_id, token.namespace_revision)


def effect_of(answer: Answer) -> Effect:
    """All of an answer that a repetition has to say again: everything but where the namespace stands now."""
    match answer:
        case ChangeSet():
            made = _made(*(change.citation for change in answer.changes))
            return Effect(revision=answer.namespace_revision, answer=repr(answer), made=made)
        case list():
            return Effect(revision=None, answer=repr(answer))
        case Recall():
            return Effect(revision=None, answer=repr((answer.admissions, answer.context_id)))
        case Admission():
            return Effect(revision=None, answer=repr((answer.outcomes, answer.context_id)))
        case Run():
            return Effect(revision=None, answer=answer.incarnation)
        case Superseded():
            said = f"{answer.citation} for {answer.superseded_citation}"
            made = _made(answer.citation, answer.superseded_citation)
            return Effect(revision=answer.citation.namespace_revision, answer=said, made=made)
        case Revised() | Retired():
            cited = answer.citation
            return Effect(revision=cited.namespace_revision, answer=str(cited), made=_made(cited))
        case _:
            cited = answer.citation
            said = f"{answer.outcome} {cited}"
            if answer.outcome not in _CHANGED:
                return Effect(revision=None, answer=said)
            return Effect(revision=cited.namespace_revision, answer=said, made=_made(cited))


def hits_of(recall: Recall) -> tuple[RecalledHit, ...]:
    """The hits, best first."""
    return tuple(
        RecalledHit(
            node_id=hit.citation.node_id,
            revision=hit.citation.node_revision,
            valid_from=hit.citation.namespace_revision,
            content_digest=hit.citation.content_digest,
            text=digest_of(hit.content),
            by_meaning=hit.semantic is not None,
        )
        for hit in recall.hits
    )


def _made(*citations: Citation) -> tuple[Made, ...]:
    return tuple(Made(one.node_id, one.node_revision) for one in citations)
