"""What the writer hands to the indexes after a commit: one entry a document, one a vector."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

import numpy as np


class DocumentEntry(NamedTuple):
    """A text that can be searched, and its place in time.

    That is in its session, or without one on its connection. Where both or the time are None it stands alone.
    `kind`: its toolset and its kind. `role`: of the speaker that said it. `event_id`: of the event that brought it.
    """

    label: int
    namespace: str
    text: str
    session_id: str | None = None
    created_at: datetime | None = None
    kind: tuple[str, str] | None = None
    connection: str | None = None
    role: str | None = None
    event_id: str | None = None
    record_id: str | None = None
    domain: str | None = None


class PassageOf(NamedTuple):
    """Of which document, and of which of its characters, a vector is."""

    owner: int
    number: int
    start: int
    end: int


class VectorEntry(NamedTuple):
    """A unit vector with its model, and its packed token vectors.

    `space` and `model_id`: None for the live model. `passage`: of which passage it is, when it is not a whole
    document's. `passages`: how many a long document has.
    """

    label: int
    vector: np.ndarray
    space: str | None = None
    model_id: str | None = None
    tokens: str | None = None
    passage: PassageOf | None = None
    passages: int | None = None
