"""Which endpoint, which model, and the bounds of what is sent there."""

from __future__ import annotations

from dataclasses import dataclass, field

from durable_memory.adapters.embedding.inputs import InputForm


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAISettings:
    """`dimensions` asks for shortened vectors; None takes what the model makes. `api_key` None sends none.

    `revision` names what is behind the model's name, where the answers do not: raise it when the weights change.
    `similarity_floor` is the cosine that unrelated texts reach with this model. A call carries at most
    `batch_max_texts` and `batch_max_bytes` and takes at most `call_timeout_seconds`; a question takes at most
    `query_timeout_seconds`, waiting and repetitions included. A call that was rate-limited, failed at the provider
    or lost its connection is made at most `attempts` times, with pauses that start at `first_pause_seconds` and
    double; a provider that asks for more than `longest_pause_seconds` is not waited for.
    """

    base_url: str
    model: str
    api_key: str | None = field(default=None, repr=False)
    dimensions: int | None = None
    revision: str | None = None
    similarity_floor: float = 0.0
    form: InputForm = field(default_factory=InputForm)
    batch_max_texts: int = 64
    batch_max_bytes: int = 128 * 1024
    max_concurrent: int = 4
    call_timeout_seconds: float = 60.0
    query_timeout_seconds: float = 5.0
    attempts: int = 4
    first_pause_seconds: float = 0.5
    longest_pause_seconds: float = 20.0
