"""Which vectors this server makes, as far as it is known."""

from __future__ import annotations

from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.semantic.generation import Generation
from durable_memory.domain.session import SemanticGeneration, semantic_not_configured


class CurrentGeneration:
    """The generation that this server makes.

    `value` is what its provider has answered that it makes: `None` until then, and the same ever after. No vector is
    made or searched before. `recorded` is what a provider of this configuration was last found to make, by whichever
    server and before whichever restart: enough to bind sessions, and to say how an index stands. Both are `None` where
    there is no provider, which `has_provider` tells.
    """

    def __init__(self, value: Generation | None = None) -> None:
        self.value = value
        self.recorded: Generation | None = None
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
            raise semantic_not_configured()
        if generation.authority_digest != value.authority_digest:
            raise generation_not_served()
        return value

    def _or_refused(self, generation: Generation | None) -> Generation:
        if generation is None:
            raise _provider_has_not_answered() if self.has_provider else semantic_not_configured()
        return generation


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
