"""One memory for one content: what storing it makes of the rows that are there."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from processors.context_graph.rules.modalities import TEXT, WORDLESS, searched_text
from processors.frame.reducer import DOCUMENT_TAGS, DOCUMENTS, Key, Outcome, Row, Rows, at
from streams.events import Event
from streams.ids import derived_id, document_label

TOOLSET = "context_graph"
MEMORIES, CONTENTS, ENDS = "context_memories", "context_contents", "context_ends"
IMPORTANCE = 0.5
LEARNED = ("entropy", "coherence", "surprise", "emotional_weight", "learning_score")
"""What is known of a memory's learning: fields of the injected event and columns of its row."""


@dataclass(frozen=True, slots=True)
class Kept:
    """The row of a content after the event stored it. `deduplicated`: it was there before."""

    event_id: str
    row: Row
    deduplicated: bool

    @property
    def result(self) -> dict[str, Any]:
        """The outcome of the request; `event_id` tells it from another one under the same request id."""
        return {"memory_id": self.row["memory_id"], "deduplicated": self.deduplicated, "event_id": self.event_id}


def memory_id_of(event: Event) -> str:
    """The id of the memory that an event makes, if its content is new."""
    return derived_id(str(event.key), "context.memory")


def vector_id_of(event: Event) -> str:
    """The id of the vector that an event makes."""
    return derived_id(str(event.key), "context.vector")


def query_vector_id(namespace: str, text: str) -> str:
    """The id under which a query is known: the same words in the same namespace have the same."""
    return derived_id(namespace, "context.query", text)


def hash_of(content: str) -> str:
    """BLAKE2b-256 of the content's UTF-8, as 64 hexadecimal digits."""
    return hashlib.blake2b(content.encode(), digest_size=32).hexdigest()


def clean_tags(tags: Iterable[str] | None) -> list[str]:
    """Tags without outer spaces, blanks and repeats, in their order."""
    return list(dict.fromkeys(tag.strip() for tag in tags or () if tag.strip()))


def united(tags: Iterable[Iterable[str]]) -> list[str]:
    """The tags of several memories, each once, in their order."""
    return list(dict.fromkeys(tag for some in tags for tag in some))


def text_of(event: Event) -> str | None:
    """What of a stored or injected memory becomes a vector; None when it has no words."""
    data = event.data
    if not data["content"].strip():
        return None
    return words_of(data["content"], data.get("modality"), data.get("rationale"), clean_tags(data.get("tags")))


def words_of(content: str, modality: str | None, rationale: str | None, tags: Sequence[str]) -> str | None:
    """As `text_of`, of the parts of a memory."""
    return searched_text(content, modality or TEXT, rationale, tags)


def refusal(event: Event) -> Outcome | None:
    """Why a memory cannot be kept: nothing could find it."""
    if not event.data["content"].strip():
        return Outcome("refused", "invalid_argument", "The argument `content` is blank; it needs some text.")
    if text_of(event) is None:
        return Outcome("refused", "invalid_argument", WORDLESS.format(modality=event.data["modality"]))
    return None


def living_id(rows: Rows, memory_id: str) -> str:
    """The id of the memory that stands for this one: what it was merged into, over any number of merges."""
    while (end := rows.get(ENDS, memory_id)) is not None:
        memory_id = end["merged_into"]
    return memory_id


def keep_reads(event: Event) -> Iterable[tuple[str, Key]]:
    """The rows that `keep` will ask for, as far as the event tells."""
    identity = memory_id_of(event)
    yield CONTENTS, (hash_of(event.data["content"]),)
    yield MEMORIES, (identity,)
    yield DOCUMENTS, (document_label(event.namespace, identity),)
    for tag in clean_tags(event.data.get("tags")):
        yield DOCUMENT_TAGS, (identity, tag)


def keep(event: Event, rows: Rows) -> Kept:
    """Keep the content of an event as a new memory, or count it for the one that has or stands for it.

    `refusal` has let it pass. Of what is there already the tags are united, the importance is the higher one, and what
    it lacks is added: rationale, learning.
    """
    data, moment = event.data, at(event.time)
    tags, given = clean_tags(data.get("tags")), data.get("importance")
    importance = IMPORTANCE if given is None else float(given)
    learned = {name: data.get(name) for name in LEARNED}
    known = rows.get(CONTENTS, hash_of(data["content"]))
    row = None if known is None else rows.get(MEMORIES, living_id(rows, known["memory_id"]))
    if row is None:
        row = _new(event, tags) | learned | {"importance": importance}
        make_searchable(rows, row)
        rows.put(CONTENTS, {"content_hash": row["content_hash"], "memory_id": row["memory_id"]})
        rows.put(MEMORIES, row)
        return Kept(event.id, row, deduplicated=False)
    added = [tag for tag in tags if tag not in row["tags"]]
    lacking = {name: value for name, value in learned.items() if row["learning_score"] is None}
    row = (
        row
        | lacking
        | {
            "tags": [*row["tags"], *added],
            "importance": max(row["importance"], importance),
            "rationale": row["rationale"] or data.get("rationale"),
            "times": row["times"] + 1,
            "last_stored_at": max(row["last_stored_at"], moment),
        }
    )
    for tag in added:
        rows.put(DOCUMENT_TAGS, {"record_id": row["memory_id"], "tag": tag})
    rows.put(MEMORIES, row)
    rows.restate(row["memory_id"], moment)
    return Kept(event.id, row, deduplicated=True)


def _new(event: Event, tags: Sequence[str]) -> Row:
    data, identity, moment = event.data, memory_id_of(event), at(event.time)
    text = text_of(event)
    return {
        "memory_id": identity,
        "label": document_label(event.namespace, identity),
        "content": data["content"],
        "searched": None if text == data["content"] else text,
        "rationale": data.get("rationale"),
        "modality": data.get("modality") or TEXT,
        "tags": list(tags),
        "content_hash": hash_of(data["content"]),
        "session_id": data.get("session_id"),
        "times": 1,
        "created_at": moment,
        "last_stored_at": moment,
        "created_event_id": event.id,
    }


def make_searchable(rows: Rows, row: Row) -> None:
    """The document of a memory: its text, and its tags as words and as a filter."""
    text = row["searched"] or row["content"]
    words = "\n".join([text, ", ".join(row["tags"])]) if row["tags"] else text
    rows.document(
        row["memory_id"],
        TOOLSET,
        row["modality"],
        words,
        created_at=row["created_at"],
        session_id=row["session_id"],
        tags=row["tags"],
    )
