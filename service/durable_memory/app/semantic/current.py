"""Which vectors this server makes, as far as it is known."""

from __future__ import annotations

from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.semantic.generation import Generation
from durable_memory.domain.session import SemanticGeneration, semantic_not_configured


class CurrentGeneration:
    """The generation that this server makes; `None` until its provider has answered, and where it has none.

    `has_provider` tells the two apart.
    """

    def __init__(self, value: Generation | None = None) -> None:
        self.value = value
        self.has_provider = value is not None

    def required(self) -> Generation:
        """Raises: SEMANTIC_UNAVAILABLE; with the cause PROVIDER_FAILED while it is the provider that is waited for."""
        if self.value is None:
            raise _provider_has_not_answered() if self.has_provider else semantic_not_configured()
        return self.value

    def bound(self, generation: SemanticGeneration | None) -> Generation:
        """The generation that a session is bound to, if this server makes it.

        Raises: SEMANTIC_UNAVAILABLE, also for a session of another generation: it keeps the one that it is bound to.
        """
        value = self.required()
        if generation is None:
            raise semantic_not_configured()
        if generation.authority_digest != value.authority_digest:
            raise generation_not_served()
        return value


def _provider_has_not_answered() -> DomainError:
    return DomainError(
        Reason.SEMANTIC_UNAVAILABLE,
        "the embedding provider has not answered since the server started",
        cause="PROVIDER_FAILED",
    )


def generation_not_served() -> DomainError:
    return DomainError(
        Reason.SEMANTIC_UNAVAILABLE,
        "this server does not make the semantic generation that was asked for",
        cause="GENERATION_NOT_SERVED",
    )
