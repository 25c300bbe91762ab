"""What a packaged model has to say and do."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from numpy.typing import NDArray

from durable_memory.adapters.embedding.inputs import InputForm

_DIGEST_HEX_DIGITS: Final = 16


class LocalModel(Protocol):
    """One model. All methods block, and are called by one thread, the same one always.

    `similarity_floor` is measured: the median cosine of questions and passages that have nothing to do with each
    other, averaged over four sets (LoCoMo questions and turns of another conversation; XQuAD questions and passages of
    another article in English, in Chinese, and Chinese questions against English passages).
    `python -m benchmarks.similarity_floors` measures it again.
    """

    provider: str
    """The package."""
    name: str
    form: InputForm
    similarity_floor: float
    window_bytes: int
    """The most that it is given at once: the mean of the pieces stands for a longer passage, and a question has to wait
    for one piece only."""
    batch_texts: int
    """How many texts one turn takes. More than one only where that is faster: a question has to wait for it."""
    batch_bytes: int

    def load(self) -> str:
        """Load the model; the revision of its package and weights. Raises: ImportError, OSError, RuntimeError."""
        ...

    def passages(self, texts: Sequence[str]) -> NDArray[Any]:
        """One row for each text."""
        ...

    def query(self, text: str) -> NDArray[Any]:
        """One row."""
        ...

    def unload(self) -> None:
        """Give its memory back."""
        ...


def weights_revision(version: str, *files: Path) -> str:
    """The package's version and a digest of the files: the same vectors come only of both."""
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as content:
            digest.update(hashlib.file_digest(content, "sha256").digest())
    return f"{version}+{digest.hexdigest()[:_DIGEST_HEX_DIGITS]}"
