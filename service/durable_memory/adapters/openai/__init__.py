"""Any endpoint that speaks OpenAI's embeddings protocol, through the official client (extra `openai`)."""

from durable_memory.adapters.openai.embedder import OpenAIEmbedder
from durable_memory.adapters.openai.settings import OpenAISettings

__all__ = ["OpenAIEmbedder", "OpenAISettings"]
