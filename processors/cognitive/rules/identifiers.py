"""Ids of Cognitive Memory: integers of 53 bits, and the record ids that search uses for them.

Every JSON reader keeps 53 bits exactly.
"""

from __future__ import annotations

import hashlib
import unicodedata

from streams.events import Event

L0, L2, EPISODE, WORKING = "raw_dialogue", "l2_insight", "episode", "working_memory"
"""Kinds of documents of this toolset."""
TOOLSET = "cognitive_memory"
_PREFIX = {L0: "l0", L2: "l2", EPISODE: "episode", WORKING: "wm"}


def number_of(*parts: str) -> int:
    """1 to 2^53-1: the first 53 bits of a hash of the parts."""
    bits = int.from_bytes(hashlib.blake2b("\x1f".join(parts).encode(), digest_size=8).digest(), "big") >> 11
    return bits or 1


def event_number(event: Event) -> int:
    """The id of the row that an event makes."""
    return number_of(event.namespace, event.source, event.id)


def normalised(content: str) -> str:
    """NFKC, casefolded, white space collapsed and trimmed: what makes two items of working memory one."""
    return " ".join(unicodedata.normalize("NFKC", content).casefold().split())


def item_number(namespace: str, content: str) -> int:
    """The id of an item of working memory: the same content is the same item."""
    return number_of(namespace, "working_memory", normalised(content))


def record_id(kind: str, number: int) -> str:
    """The id under which search and the `memories` view know a row: `l2-123`."""
    return f"{_PREFIX[kind]}-{number}"


def number_in(record: str) -> int:
    """The row's id in a record id."""
    return int(record.rsplit("-", 1)[1])
