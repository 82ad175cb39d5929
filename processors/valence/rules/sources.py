"""Where a belief comes from: a document, a conversation, an inference, an observation.

One row for each (type, reference).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from streams.ids import derived_id

_URL = re.compile(r"[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Source:
    """A source as it was named. `ref` is what makes two of one type the same."""

    type: str
    ref: str = ""
    title: str | None = None
    url: str | None = None
    session_id: str | None = None

    def id_in(self, namespace: str) -> str:
        return derived_id("valence.source", namespace, self.type, self.ref)


def session_source(session_id: str) -> Source:
    """The source that a conversation is."""
    return Source("conversation", session_id, f"Session: {session_id}", None, session_id)


def read_source(kind: str | None, ref: str | None, is_session: Callable[[str], bool]) -> Source | None:
    """The source that a call names by type and reference, None when by neither.

    A reference alone tells its type: a URL is a document, a known session a conversation, anything else an observation.
    """
    ref = (ref or "").strip()
    if not ref:
        return Source(kind) if kind else None
    if _URL.fullmatch(ref):
        return Source(kind or "document", ref, url=ref)
    if kind in (None, "conversation") and is_session(ref):
        return session_source(ref)
    return Source(kind or "observation", ref, title=ref)
