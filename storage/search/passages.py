"""Long texts as overlapping passages: cut by a pure function of the text, the same on every side of the search.

The size is an estimate of word pieces that keeps a passage inside a 256-token window for ordinary prose; where the
estimate is short (code, rare scripts), the encoder cuts once more, so that nothing is left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from streams.ids import record_label

WINDOW = 235
STRIDE = 175
"""In estimated word pieces: neighbouring passages share a quarter."""
MIN_LONG_CHARS = WINDOW
"""No shorter text has more pieces than fit: a piece has a character at least."""
_WORD = re.compile(r"[^\W_]+|[^\w\s]|_")
_PIECE_CHARS = 7


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a text: `number` from 0, characters `start` (inclusive) to `end` (exclusive)."""

    number: int
    start: int
    end: int


def split_passages(text: str) -> list[Passage]:
    """The passages of a text that is longer than a window, in order; nothing for a text that is one window.

    They cover every word, each is at most WINDOW estimated pieces (one longer word aside), and neighbours overlap.
    """
    if len(text) <= MIN_LONG_CHARS:
        return []
    words = [(match.start(), match.end()) for match in _WORD.finditer(text)]
    costs = [_pieces(text, start, end) for start, end in words]
    if sum(costs) <= WINDOW:
        return []
    passages: list[Passage] = []
    first = 0
    while True:
        last, cost = first, costs[first]
        while last + 1 < len(words) and cost + costs[last + 1] <= WINDOW:
            last += 1
            cost += costs[last]
        passages.append(Passage(len(passages), words[first][0], words[last][1]))
        if last + 1 == len(words):
            return passages
        spent = 0
        start = first
        while start < last and spent + costs[start] <= STRIDE:
            spent += costs[start]
            start += 1
        first = max(start, first + 1)


def _pieces(text: str, start: int, end: int) -> int:
    """How many word pieces a word is likely to be: long ones are cut, other scripts have no long pieces."""
    length = end - start
    if length > 1 and not text[start:end].isascii():
        return length
    return 1 + (length - 1) // _PIECE_CHARS


def passage_label(label: int, number: int) -> int:
    """The number of a passage in every index; `label` is its document's."""
    return record_label(f"{label}\0passage\0{number}")
