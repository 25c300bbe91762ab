"""Which documents have which terms, and how often: compressed sparse rows, one row for each term."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from durable_memory.app.views.vocabulary import Vocabulary

Counts = NDArray[np.unsignedinteger]
Columns = NDArray[np.unsignedinteger]
_LARGEST_KEY: Final = 2**62
_NO_COUNTS: Final[tuple[Counts, Columns]] = (np.zeros((0, 0), dtype=np.uint8), np.zeros(0, dtype=np.uint8))


@dataclass(frozen=True, slots=True, eq=False)
class Postings:
    """Immutable. The row of term t is `documents[starts[t]:starts[t + 1]]`, ascending.

    Unsigned arrays are of the smallest type that holds their numbers.

    Attributes:
        starts: uint32 [terms + 1].
        documents: int32 [postings], numbers of documents.
        counts: unsigned [fields, columns], the distinct ways in which a term stands in the fields of a document: a
            hundred or so, whatever the number of postings. No rows where only presence matters.
        columns: unsigned [postings], the column of `counts` of each; empty where only presence matters.
        own_frequencies: uint32 [terms], how many documents have the term in their first field; without counts, at all.
    """

    vocabulary: Vocabulary
    starts: NDArray[np.uint32]
    documents: NDArray[np.int32]
    counts: Counts
    columns: Columns
    own_frequencies: NDArray[np.uint32]

    @property
    def is_counted(self) -> bool:
        """Whether it is known how often, not only whether, a document has a term."""
        return len(self.counts) > 0

    def row(self, term: str) -> slice | None:
        """Where the postings of `term` stand, `None` when no document has it."""
        number = self.vocabulary.find(term)
        return None if number < 0 else self.row_of(number)

    def row_of(self, number: int) -> slice:
        """Where the postings of the term of that number stand; there is at least one."""
        return slice(self.starts.item(number), self.starts.item(number + 1))

    def counts_of(self, term: str, document: int) -> tuple[int, ...]:
        """How often `term` stands in each field of one document; without counts, 1 or 0 for its presence."""
        row = self.row(term) or slice(0, 0)
        held = self.documents[row]
        at = int(np.searchsorted(held, document))
        present = at < len(held) and int(held[at]) == document
        if not self.is_counted:
            return (int(present),)
        return tuple(self.counts[:, self.columns[row][at]].tolist()) if present else (0,) * len(self.counts)

    @property
    def nbytes(self) -> int:
        arrays = (self.starts, self.documents, self.counts, self.columns, self.own_frequencies)
        return self.vocabulary.nbytes + sum(array.nbytes for array in arrays)


class PostingsBuilder:
    """Collects the tokens of documents, then counts them all at once."""

    def __init__(self, field_count: int) -> None:
        self._field_count = field_count
        self._numbers: defaultdict[str, int] = defaultdict()
        self._numbers.default_factory = self._numbers.__len__  # a new term gets the next number
        self._tokens = array("I")
        self._texts = array("I")

    def add(self, document: int, field: int, tokens: Iterable[str]) -> None:
        """Take the tokens of one field of one document; a field that was taken before is added to."""
        before = len(self._tokens)
        self._tokens.extend(map(self._numbers.__getitem__, tokens))
        self._texts.extend((document, field, len(self._tokens) - before))

    def build(self, document_count: int, *, counted: bool) -> Postings:
        """The postings of everything added; without counts unless `counted`. Nothing can be added after."""
        self._numbers.default_factory = None  # it refers to the dictionary, which would stay until the collector comes
        terms = sorted(self._numbers)
        rank = np.empty(len(terms), dtype=np.int64)
        rank[[self._numbers[term] for term in terms]] = np.arange(len(terms))
        documents, fields, sizes = np.array(self._texts, dtype=np.int64).reshape(-1, 3).T
        # One number for each token, (term, document, field), sorted in place: this is where memory peaks.
        keys = rank[np.frombuffer(self._tokens, dtype=np.uintc)]
        keys *= document_count * self._field_count
        keys += np.repeat(documents * self._field_count + fields, sizes)
        keys.sort()
        firsts = np.flatnonzero(np.diff(keys, prepend=-1))
        counts = np.diff(firsts, append=len(keys))
        places, key_fields = np.divmod(keys[firsts], self._field_count)
        is_first = np.diff(places, prepend=-1) != 0
        if not counted:
            return _assemble(terms, places[is_first], document_count, *_NO_COUNTS)
        matrix = np.zeros((self._field_count, int(is_first.sum())), dtype=np.int64)
        matrix[key_fields, np.cumsum(is_first) - 1] = counts
        return _assemble(terms, places[is_first], document_count, *_distinct_columns(matrix))


def narrow(numbers: NDArray[np.int64]) -> Counts:
    """The same non-negative numbers in the smallest unsigned type that holds them."""
    return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))


def side_by_side(matrices: Sequence[Counts]) -> Counts:
    """Matrices [fields, columns] as one; fields that one does not have are 0 in its columns."""
    fields = max(len(matrix) for matrix in matrices)
    filled = [
        matrix if len(matrix) == fields else np.pad(matrix, ((0, fields - len(matrix)), (0, 0))) for matrix in matrices
    ]
    return filled[0] if len(filled) == 1 else np.concatenate(filled, axis=1)


def _distinct_columns(matrix: NDArray[np.int64]) -> tuple[Counts, Columns]:
    """The distinct columns of a matrix [fields, n] of numbers from 0 on, and for each column which of them it is."""
    keys = np.zeros(matrix.shape[1], dtype=np.int64)
    span = 1  # all keys are smaller
    for row in matrix:
        base = int(row.max(initial=0)) + 1
        if span * base > _LARGEST_KEY:
            keys = np.searchsorted(np.unique(keys), keys)
            span = len(keys)
        keys *= base
        keys += row
        span *= base
    distinct = np.unique(keys)
    columns = np.searchsorted(distinct, keys)
    places = np.empty(len(distinct), dtype=np.int64)
    places[columns] = np.arange(len(keys))
    return narrow(matrix[:, places]), narrow(columns)


def _assemble(
    terms: Sequence[str], places: NDArray[np.int64], document_count: int, counts: Counts, columns: Columns
) -> Postings:
    """Postings from sorted places, each term number x `document_count` + document; unused terms are dropped."""
    ends = np.searchsorted(places, np.arange(len(terms) + 1) * document_count)
    used = np.flatnonzero(np.diff(ends))
    starts = np.append(ends[used], len(places))
    frequencies = np.diff(starts)
    if len(counts):
        frequencies = np.add.reduceat((counts[0] != 0)[columns], starts[:-1], dtype=np.int64)
    return Postings(
        Vocabulary(terms if len(used) == len(terms) else [terms[number] for number in used.tolist()]),
        starts.astype(np.uint32),
        (places % max(document_count, 1)).astype(np.int32),
        counts,
        columns,
        frequencies.astype(np.uint32),
    )


def _joined_columns(parts: Sequence[Postings], kept: Sequence[NDArray[np.bool_]]) -> tuple[Counts, list[Columns]]:
    """The columns that kept postings of several parts have, and for each part what each of its own is called there."""
    widths = [part.counts.shape[1] for part in parts]
    is_used = np.concatenate(
        [
            np.bincount(part.columns[keep], minlength=width) > 0
            for part, keep, width in zip(parts, kept, widths, strict=True)
        ]
    )
    every = side_by_side([part.counts for part in parts])
    counts, columns = _distinct_columns(every[:, is_used].astype(np.int64))
    names = np.zeros(len(is_used), dtype=columns.dtype)
    names[is_used] = columns
    return counts, np.split(names, np.cumsum(widths[:-1]))


def merge_postings(parts: Sequence[Postings], renumbered: Sequence[NDArray[np.int32]], document_count: int) -> Postings:
    """The postings of several parts as one.

    Args:
        parts: postings over disjoint sets of documents.
        renumbered: for each part, the new number of each of its documents, -1 for one that is left out.
        document_count: how many documents there are after.
    """
    vocabularies = [list(part.vocabulary) for part in parts]
    terms = sorted(set().union(*vocabularies))
    number = {term: rank for rank, term in enumerate(terms)}
    places, kept = [], []
    for part, vocabulary, documents in zip(parts, vocabularies, renumbered, strict=True):
        numbers = np.fromiter((number[term] for term in vocabulary), np.int64, len(vocabulary))
        new = documents[part.documents].astype(np.int64)
        keep = new >= 0
        places.append((np.repeat(numbers, np.diff(part.starts)) * document_count + new)[keep])
        kept.append(keep)
    every = np.concatenate(places)
    del places
    order = np.argsort(every, kind="stable")
    counts, columns = _NO_COUNTS
    if parts[0].is_counted:
        counts, renamed = _joined_columns(parts, kept)
        columns = np.concatenate(
            [names[part.columns[keep]] for part, keep, names in zip(parts, kept, renamed, strict=True)]
        )[order]
    every = every[order]
    del order
    return _assemble(terms, every, document_count, counts, columns)
