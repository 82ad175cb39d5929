"""How much of a record is questions: a question is most like another question, and seldom answers it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

_SENTENCES = re.compile(r"(?<=[.!?。！？؟])[\"'”’)]*\s+|(?<=[。！？])|\n+")
_ASKS = re.compile(r"[?？؟][\"'”’)]*$")


def question_share(text: str) -> float:
    """The share of a text's characters that stand in sentences with a question mark at their end."""
    if not any(mark in text for mark in "?？؟"):
        return 0.0
    sentences = [sentence.strip() for sentence in _SENTENCES.split(text)]
    question_chars = sum(len(sentence) for sentence in sentences if _ASKS.search(sentence))
    return question_chars / max(1, sum(map(len, sentences)))


class QuestionShares:
    """The share by label, of records with a question. One thread adds and removes; any number read."""

    def __init__(self) -> None:
        self._shares: dict[int, float] = {}

    def add(self, texts: Iterable[tuple[int, str]]) -> None:
        for label, text in texts:
            if share := question_share(text):
                self._shares[label] = share

    def remove(self, labels: Sequence[int]) -> None:
        for label in labels:
            self._shares.pop(label, None)

    def shares(self, labels: np.ndarray) -> np.ndarray:
        """(n,) labels -> their shares."""
        shares = self._shares
        return np.array([shares.get(label, 0.0) for label in labels.tolist()], np.float64)
