"""Long texts as overlapping passages, cut by a pure function of the text.

The passages are the same on every side of the search. The size is an estimate of word pieces that keeps a passage
inside a 256-token window for ordinary prose; where the estimate is short (code, rare scripts), the encoder cuts once
more, so that nothing is left out. A text has vectors up to a number of passages (docs/adr/0011); what lies behind is
cut too, for its words.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, count, islice, pairwise

import numpy as np

from storage.search.entries import VectorEntry
from storage.search.records.matches import DocumentMatches
from streams.ids import record_label

WINDOW = 235
STRIDE = 175
"""In estimated word pieces: neighbouring passages share a quarter."""
MIN_LONG_CHARS = WINDOW
"""No shorter text has more pieces than fit: a piece has a character at least."""
FIRST_PASSAGES = 16
"""Passages that are embedded as a text comes; the others follow in slices, so that no caller waits behind a book."""
EMBEDDED_PASSAGES = 1024
"""This many passages have a vector: some 180,000 words, or characters of Chinese."""
TOKEN_PASSAGES = 128
"""This many passages have token vectors, which are ten times as large: some 22,000 words."""
REST_CHARS, REST_OVERLAP = 1500, 375
"""Behind the last passage that has a vector: no model's window matters there, so nothing is counted."""
_WORD = re.compile(r"[^\W_]+|[^\w\s]|_")
_GAP = re.compile(r"\s")
_GAP_CHARS = 100
_PIECE_CHARS = 7
_LONG_ASCII = re.compile(rf"\s*+(?:(?>[^\W_]{{1,{_PIECE_CHARS}}}+|[^\w\s]|_)\s*+){{{WINDOW + 1}}}")
"""More pieces than a window, where no word is cut."""
_CUT_CHARS = (WINDOW - STRIDE) * _PIECE_CHARS
"""A longer word is cut."""
_CUT_WORD = re.compile(rf"[^\W_]{{{_CUT_CHARS + 1}}}")


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a text: `number` from 0, characters `start` (inclusive) to `end` (exclusive)."""

    number: int
    start: int
    end: int


def is_long(text: str, window: int = WINDOW) -> bool:
    """Whether a text is longer than a window, and so has several passages."""
    if len(text) <= window:  # no shorter text has more pieces than fit: a piece has a character at least
        return False
    is_plain = window == WINDOW and text.isascii()
    if is_plain and (len(text) <= _CUT_CHARS or _CUT_WORD.search(text) is None):  # as below, four times as fast
        return _LONG_ASCII.match(text) is not None
    most = window - _stride(window)
    return any(pieces > window for pieces in accumulate(cost for *_, cost in _words(text, most)))


def split_passages(text: str, window: int = WINDOW) -> list[Passage]:
    """The passages of a text that is longer than a window, in order; none of one that is one window.

    They cover every word and neighbours overlap. The first EMBEDDED_PASSAGES have at most `window` estimated pieces
    each, the others about REST_CHARS characters.
    """
    if not is_long(text, window):
        return []
    stride = _stride(window)
    # a passage takes a stride of pieces at most of those left
    words = list(islice(_words(text, window - stride), EMBEDDED_PASSAGES * stride + window + 1))
    before = [0, *accumulate(pieces for *_, pieces in words)]  # each word, and the end
    passages: list[Passage] = []
    first = 0
    while len(passages) < EMBEDDED_PASSAGES:
        last = bisect_right(before, before[first] + window, first + 2) - 2
        passages.append(Passage(len(passages), words[first][0], words[last][1]))
        if last + 1 == len(words):
            return passages
        first = max(min(bisect_right(before, before[first] + stride, first) - 1, last), first + 1)
    return passages + list(_rest(text, words[first][0]))


def _stride(window: int) -> int:
    return window * STRIDE // WINDOW


def _words(text: str, most: int) -> Iterator[tuple[int, int, int]]:
    """(start, end, estimated pieces) of each word, long ones in parts.

    A word of more than `most` pieces (Chinese has no spaces, data no end) is cut into several, as short as the overlap.
    """
    is_ascii = text.isascii()
    for match in _WORD.finditer(text):
        start, end = match.span()
        if end - start == 1 or (is_ascii and end - start <= _PIECE_CHARS):
            yield start, end, 1
            continue
        pieces = _pieces(text, start, end)
        if pieces <= most:
            yield start, end, pieces
            continue
        step = most * max(1, (end - start) // pieces)
        for at in range(start, end, step):
            yield at, min(at + step, end), _pieces(text, at, min(at + step, end))


def _pieces(text: str, start: int, end: int) -> int:
    """How many word pieces a word is likely to be: long ones are cut, other scripts have no long pieces."""
    length = end - start
    if length > 1 and not text[start:end].isascii():
        return length
    return 1 + (length - 1) // _PIECE_CHARS


def _rest(text: str, start: int) -> Iterator[Passage]:
    """The text from `start` on, cut between words where there are gaps."""
    stop = len(text.rstrip())
    for number in count(EMBEDDED_PASSAGES):
        end = min(_gap(text, start + REST_CHARS), stop)
        yield Passage(number, start, end)
        if end == stop:
            return
        start = _gap(text, end - REST_OVERLAP)


def _gap(text: str, at: int) -> int:
    """The next space from `at` on, or `at` itself where none is near."""
    found = _GAP.search(text, at, at + _GAP_CHARS)
    return found.start() if found else at


def passage_label(label: int, number: int) -> int:
    """The number of a passage in every index; `label` is its document's."""
    return record_label(f"{label}\0passage\0{number}")


class PassageIndex:
    """Which labels are parts of which document. One thread adds and removes; any number look."""

    def __init__(self) -> None:
        self._of: dict[int, tuple[int, Passage]] = {}
        self._parts: dict[int, tuple[int, ...]] = {}
        self._sorted: tuple[np.ndarray, np.ndarray] | None = None

    def __len__(self) -> int:
        return len(self._of)

    def add(self, owner: int, passages: Iterable[Passage]) -> None:
        """The passages of a document; those that are known stay."""
        new = {label: one for one in passages if (label := passage_label(owner, one.number)) not in self._of}
        if new:
            self._of |= {label: (owner, passage) for label, passage in new.items()}
            labels = (*self._parts.get(owner, ()), *new)
            numbers = [self._of[label][1].number for label in labels]
            in_order = all(one < next for one, next in pairwise(numbers))
            in_text = labels if in_order else tuple(label for _, label in sorted(zip(numbers, labels, strict=True)))
            self._parts[owner] = in_text
            self._sorted = None

    def place(self, entries: Iterable[VectorEntry]) -> None:
        """The passages that vectors are of."""
        for entry in entries:
            if entry.passage is not None:
                owner, *place = entry.passage
                self.add(owner, [Passage(*place)])

    def remove(self, owners: Sequence[int]) -> list[int]:
        """Forget the documents' passages; their labels."""
        labels = [label for owner in owners for label in self._parts.pop(owner, ())]
        for label in labels:
            del self._of[label]
        self._sorted = None
        return labels

    def owner(self, label: int) -> int:
        """The document of a passage; a document's own label is given back."""
        return self._of[label][0] if label in self._of else label

    def passage(self, label: int) -> Passage | None:
        return self._of[label][1] if label in self._of else None

    def parts(self, owner: int) -> tuple[int, ...]:
        """The labels of a document's passages in the order of the text, none for a short one."""
        return self._parts.get(owner, ())

    def split(self, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(n,) documents -> (m,) labels of their passages, of a short one its own; and (m,) whose they are.

        The second are numbers of documents, in rising order.
        """
        if not self._of:
            return labels, np.arange(len(labels))
        known = self._parts
        parts = [known.get(label) or (label,) for label in labels.tolist()]
        counts = np.fromiter(map(len, parts), np.int64, len(parts))
        return np.fromiter(chain.from_iterable(parts), np.int64, int(counts.sum())), np.repeat(
            np.arange(len(labels)), counts
        )

    def labels(self) -> np.ndarray:
        """Every passage's label, sorted, int64."""
        return self._arrays()[0]

    def _arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """(labels, their owners), sorted by label."""
        if self._sorted is None:
            known = dict(self._of)
            labels = np.fromiter(known, np.int64, len(known))
            owners = np.fromiter((owner for owner, _ in known.values()), np.int64, len(known))
            order = np.argsort(labels)
            self._sorted = labels[order], owners[order]
        return self._sorted

    def with_passages(self, allowed: np.ndarray) -> np.ndarray:
        """Sorted labels of documents, and of all their passages with them."""
        if not self._of or not len(allowed):
            return allowed
        labels, owners = self._arrays()
        at = np.minimum(np.searchsorted(allowed, owners), len(allowed) - 1)
        return np.sort(np.concatenate([allowed, labels[allowed[at] == owners]]))

    def documents_of(self, matches: Iterable[tuple[int, float]], k: int) -> DocumentMatches:
        """The k best documents of matches with documents and passages, each with its best score."""
        best: dict[int, tuple[float, int]] = {}
        for label, score in matches:
            best.setdefault(self.owner(label), (score, label))
        found = [(label, score) for label, (score, _) in best.items()][:k]
        return DocumentMatches(found, {label: part for label, (_, part) in best.items()})
