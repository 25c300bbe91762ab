"""What recall says where the semantic branch cannot answer, and why it cannot."""

from __future__ import annotations

from typing import Final

from durable_memory.app.recall_result import Degradation, DegradationReason
from durable_memory.app.semantic.search import SemanticUnavailableError
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.semantic.generation import Generation
from durable_memory.domain.session import NO_PROVIDER, RecallMode, SemanticGeneration

_CAUSES: Final = {
    DegradationReason.SEMANTIC_NOT_CONFIGURED: NO_PROVIDER,
    DegradationReason.GENERATION_NOT_SERVED: "this server does not make the session's generation",
    DegradationReason.INDEX_UNAVAILABLE: "the vector index cannot be read",
    DegradationReason.INDEX_NOT_BUILT: "nothing was indexed yet",
    DegradationReason.INDEX_REGRESSED: "the vector index lost what was published, and is rebuilt",
    DegradationReason.INDEX_CORRUPTED: "the vector index is damaged, and is rebuilt",
    DegradationReason.PROVIDER_FAILED: "the query could not be embedded",
    DegradationReason.DEADLINE: "the semantic branch took too long",
}


def degradation(reason: DegradationReason, cause: str = "") -> Degradation:
    """For AUTO, which has answered by words. `cause`: where more is known than the reason tells."""
    return Degradation(reason=reason, message=f"{cause or _CAUSES[reason]}; lexical recall only")


def semantic_unavailable(error: SemanticUnavailableError, mode: RecallMode) -> DomainError:
    """SEMANTIC_UNAVAILABLE for an explicit mode, with the cause. Nothing was recalled."""
    return DomainError(
        Reason.SEMANTIC_UNAVAILABLE,
        f"mode {mode.name} is not possible: {error.cause or _CAUSES[error.reason]}",
        cause=error.reason.name,
    )


def no_provider(bound: SemanticGeneration | None, problem: str) -> SemanticUnavailableError:
    """The server makes no vectors at all, because of `problem`."""
    cause = problem if bound is None else f"the session is bound to {bound.model}, but {problem}"
    return SemanticUnavailableError(DegradationReason.SEMANTIC_NOT_CONFIGURED, cause)


def provider_awaited() -> SemanticUnavailableError:
    """The server is to make vectors, and does not know yet of which generation."""
    cause = "the embedding provider has not answered since the server started"
    return SemanticUnavailableError(DegradationReason.PROVIDER_FAILED, cause)


def bound_to_none(served: Generation) -> SemanticUnavailableError:
    """The session is from before the server had a generation."""
    cause = (
        f"the session was bound when the server had no semantic generation; RebindSession binds it to {served.model}, "
        "which it has now"
    )
    return SemanticUnavailableError(DegradationReason.SEMANTIC_NOT_CONFIGURED, cause)


def bound_to_another(bound: SemanticGeneration, served: Generation) -> SemanticUnavailableError:
    """The server's model, or what it is configured with, has changed since."""
    another = "another configuration of it" if served.model == bound.model else served.model
    cause = f"the session is bound to {bound.model}, and this server makes {another}; RebindSession moves it over"
    return SemanticUnavailableError(DegradationReason.GENERATION_NOT_SERVED, cause)
