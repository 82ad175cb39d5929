"""The text of a memory's surroundings: its own, with what was said just before and after it.

A turn of a conversation is often an answer whose question, or a remark whose matter, stands in the turn beside it. A
dream makes a vector of this text, by which a search finds the turn where its own words do not say what it is about.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from storage.search.records.passages import WINDOW, is_long, split_passages

SURROUNDINGS, REPEATED_QUESTIONS = "context_surroundings", "context_repeated_questions"
OWN_PIECES, BESIDE_PIECES = WINDOW // 2, WINDOW // 3
"""Of a memory's own text and of each one beside it: long ones leave each other room in the window of a model."""


def surroundings_text(own: str, earlier: Sequence[str], later: Sequence[str]) -> str:
    """The texts in their order, a line each, the nearest first as far as they fit into a model's window.

    `earlier` and `later`: what was said before and after, each the nearest first.
    """
    lines = [_beginning(own, OWN_PIECES)]
    for before, after in zip_longest(earlier, later):
        for text, is_before in ((before, True), (after, False)):
            if text is not None:
                line = _beginning(text, BESIDE_PIECES)
                longer = [line, *lines] if is_before else [*lines, line]
                if is_long("\n".join(longer)):
                    return "\n".join(lines)
                lines = longer
    return "\n".join(lines)


def _beginning(text: str, pieces: int) -> str:
    passages = split_passages(text, pieces)
    return text[: passages[0].end] if passages else text
