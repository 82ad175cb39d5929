"""Who said a record: by the role of a message, and by the `user:` or the `Ana:` of a text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

USERS = ("user", "human")
"""The roles of the person, in lower case."""
USERS_LABEL = rf"^\s*(?:{'|'.join(USERS)})\s*:\s"
"""How a text begins that says itself that a user said it; case does not count."""
_LABEL = re.compile(USERS_LABEL, re.IGNORECASE)
MAX_LABEL = 80
"""A speaker's name ends within this many characters of a text."""
_WORD = r"[^\W\d_a-z][\w.'’-]{0,24}"
_SPEAKER = re.compile(rf"\s*({_WORD}(?: {_WORD}){{0,2}})\s*(?::\s|：)")
NOBODY = -1
"""The speaker of a text that names none."""


def is_by_user(text: str, role: str | None = None) -> bool:
    """Whether a person said it: the role tells, and without a role how the text begins."""
    return _LABEL.match(text) is not None if role is None else role.strip().lower() in USERS


class UserRecords:
    """The labels of what users said. One thread adds and removes; any number read."""

    def __init__(self) -> None:
        self._labels: set[int] = set()

    def add(self, labels: Iterable[int]) -> None:
        self._labels.update(labels)

    def remove(self, labels: Sequence[int]) -> None:
        self._labels.difference_update(labels)

    def among(self, labels: np.ndarray) -> np.ndarray:
        """(n,) labels -> whether a user said each."""
        known = self._labels
        return np.array([label in known for label in labels.tolist()], bool)


def speaker_of(text: str) -> str | None:
    """The name that a text begins with, in lower case: `ana` of `Ana: I sold it`. None where there is none."""
    match = _SPEAKER.match(text[:MAX_LABEL])
    return None if match is None else match[1].lower()


class Speakers:
    """By label the number of the speaker that a text begins with. One thread adds and removes; any number read."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._speakers: dict[int, int] = {}

    def add(self, texts: Iterable[tuple[int, str]]) -> None:
        """Take in (label, text) of records."""
        for label, text in texts:
            if (name := speaker_of(text)) is not None:
                self._speakers[label] = self._numbers.setdefault(name, len(self._numbers))

    def remove(self, labels: Sequence[int]) -> None:
        for label in labels:
            self._speakers.pop(label, None)

    def among(self, labels: np.ndarray) -> np.ndarray:
        """(n,) labels -> the number of the speaker of each, NOBODY where its text names none."""
        speakers = self._speakers
        return np.array([speakers.get(label, NOBODY) for label in labels.tolist()], np.int64)

    def named(self, text: str) -> list[int]:
        """The numbers of the speakers whose whole name is in a text, of at most three words."""
        words = re.findall(r"\w[\w.’-]*", text.lower().replace("'s", "").replace("’s", ""))
        runs = {" ".join(words[start : start + size]) for size in (1, 2, 3) for start in range(len(words) - size + 1)}
        return sorted(self._numbers[run] for run in runs if run in self._numbers)
