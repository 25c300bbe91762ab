"""Which vectors this server makes, as far as it is known."""

from __future__ import annotations

from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.semantic.generation import Generation
from durable_memory.domain.session import NO_PROVIDER, SemanticGeneration, semantic_not_configured
from durable_memory.ports.embedder import EmbeddingError


class CurrentGeneration:
    """The generation that this server makes.

    `value` is what its provider has answered that it makes: `None` until then, and the same ever after. No vector is
    made or searched before. `recorded` is what a provider of this configuration was last found to make, by whichever
    server and before whichever restart: enough to bind sessions, and to say how an index stands. Both are `None` where
    there is no provider, which `has_provider` tells; `problem` is why there is none, in one phrase. `trouble` is how
    the provider failed when it was asked last, before it has answered.
    """

    def __init__(self, value: Generation | None = None, problem: str = NO_PROVIDER) -> None:
        self.value = value
        self.problem = problem
        self.recorded: Generation | None = None
        self.trouble: EmbeddingError | None = None
        self.has_provider = value is not None

    @property
    def known(self) -> Generation | None:
        """What sessions are bound to: `value`, or for as long as the provider has not answered what is on record."""
        return self.recorded if self.value is None else self.value

    def required(self) -> Generation:
        """`known`. Raises: SEMANTIC_UNAVAILABLE; with the cause PROVIDER_FAILED where it is the provider that is waited
        for."""
        return self._or_refused(self.known)

    def answered(self) -> Generation:
        """`value`. Raises: as `required`."""
        return self._or_refused(self.value)

    def bound(self, generation: SemanticGeneration | None) -> Generation:
        """The generation that a session is bound to, if this server makes it.

        Raises: SEMANTIC_UNAVAILABLE, also for a session of another generation: it keeps the one that it is bound to.
        """
        value = self.answered()
        if generation is None:
            raise semantic_not_configured("the session is bound to no generation; RebindSession binds it to one")
        if generation.authority_digest != value.authority_digest:
            raise generation_not_served()
        return value

    def _or_refused(self, generation: Generation | None) -> Generation:
        if generation is not None:
            return generation
        if self.has_provider:
            raise provider_has_not_answered(self.trouble)
        raise semantic_not_configured(self.problem)


def provider_has_not_answered(trouble: EmbeddingError | None) -> DomainError:
    """SEMANTIC_UNAVAILABLE with the cause PROVIDER_FAILED, and what the provider failed with."""
    return DomainError(
        Reason.SEMANTIC_UNAVAILABLE,
        f"the embedding provider has not answered since the server started{f': {trouble.words}' if trouble else ''}",
        cause="PROVIDER_FAILED",
        **({} if trouble is None else trouble.facts),
    )


def generation_not_served() -> DomainError:
    return DomainError(
        Reason.SEMANTIC_UNAVAILABLE,
        "this server does not make the semantic generation that was asked for, or that the session is bound to",
        cause="GENERATION_NOT_SERVED",
    )
