"""Which records a user said: by the role of a message, or by the `user:` that a text begins with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

USERS = ("user", "human")
"""The roles of the person, in lower case."""
USERS_LABEL = rf"^\s*(?:{'|'.join(USERS)})\s*:\s"
"""How a text begins that says itself that a user said it; case does not count."""
_LABEL = re.compile(USERS_LABEL, re.IGNORECASE)


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
