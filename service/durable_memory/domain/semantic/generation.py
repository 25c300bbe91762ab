"""Semantic generations: one exact way to make and compare vectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from durable_memory.domain.canonical import JsonValue, digest_bytes, digest_json
from durable_memory.domain.namespace import Namespace

EMBEDDED_TEXT_FORM: Final = "nearest-surrounding,author,content/v1"
"""Names how a passage is made of a node (`embedded_text`); another form is another generation."""


class Normalization(StrEnum):
    """What was done to a vector before it is kept. Names equal the contract's."""

    NONE = "NONE"
    L2 = "L2"


class Metric(StrEnum):
    """How vectors are compared. Over L2-normalised vectors both are the dot product. Names equal the contract's."""

    COSINE = "COSINE"
    DOT_PRODUCT = "DOT_PRODUCT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """Who makes the vectors of a partition, and how.

    `revision` names the model's exact weights and everything around them that changes a vector (prefixes, caps).
    `similarity_floor` is the cosine that unrelated texts reach with this model: what the convex fusion takes as 0 where
    fewer hits than its candidate limit are there.
    """

    provider: str
    model: str
    revision: str
    dimension: int
    normalization: Normalization = Normalization.L2
    metric: Metric = Metric.COSINE
    text_form: str = EMBEDDED_TEXT_FORM
    similarity_floor: float = 0.0

    @property
    def model_digest(self) -> str:
        """What cached vectors are keyed by, beside the digest of their text: 64 hexadecimal digits."""
        return digest_json(
            "embedding-model/v1",
            {
                "dimension": self.dimension,
                "model": self.model,
                "normalization": self.normalization.value,
                "provider": self.provider,
                "revision": self.revision,
            },
        )

    @property
    def authority_digest(self) -> str:
        """What sessions bind to and partitions are made for: 64 hexadecimal digits over every field."""
        return digest_json(
            "semantic-generation/v1",
            {
                "metric": self.metric.value,
                "model_digest": self.model_digest,
                "similarity_floor": self.similarity_floor,
                "text_form": self.text_form,
            },
        )

    def with_dimension(self, dimension: int) -> Generation:
        """The same provider and model where the served dimension turned out to be `dimension`."""
        return replace(self, dimension=dimension)


def configuration_digest(provider: str, settings: Mapping[str, JsonValue]) -> str:
    """What stands for a provider's configuration before the provider has answered: 64 hexadecimal digits.

    A version of this program that makes another form of the embedded text has another one, for it makes other vectors.
    """
    return digest_json(
        "embedding-configuration/v1",
        {"provider": provider, "settings": dict(settings), "text_form": EMBEDDED_TEXT_FORM},
    )


@dataclass(frozen=True, slots=True)
class Partition:
    """The vectors of one namespace in one generation.

    `name` is 64 hexadecimal digits over both, each with its length before it.
    """

    namespace: Namespace
    authority_digest: str
    name: str = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        # Once, because a recall asks for it many times.
        name = digest_bytes("partition/v1", self.namespace.key, self.authority_digest.encode()).hex()
        object.__setattr__(self, "name", name)
