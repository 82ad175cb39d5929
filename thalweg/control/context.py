"""Answers a client's hook with what its model should know.

A brief at a session's start, a few facts with a prompt.
What is given is an event on the log, so that SQL and `thalweg why` can say what a session was told.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mcp_ingress.fitting.passage import best_passage
from processors.embedding.query import EncodedQuery, encoded_query
from processors.injection.read.brief import read_brief
from processors.injection.read.known import read_known
from processors.injection.rules.choice import ScoredHit, chosen
from processors.injection.rules.notes import MAX_NOTE, Context, Note, Section, context_of
from processors.memory.live_search import search_live
from processors.telemetry.formats.hooks import SOURCE
from storage.search.query import Query
from storage.search.records.filter import Filter
from storage.search.records.hits import SearchHit
from streams.event_types.injection import CONTEXT_INJECTED
from streams.events import Event
from streams.ids import derived_id
from streams.topics import TELEMETRY

if TYPE_CHECKING:
    import duckdb

    from thalweg.process.running import Running

BRIEF_TOKENS = 800
FACTS_TOKENS = 700
MAX_PROMPT = 2000
"""This many characters of a prompt are searched for: its beginning."""
HITS = 20
STARTED, PROMPTED = "SessionStart", "UserPromptSubmit"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a hook was given: its event, the session, and its input without secrets."""

    hook: str
    session_id: str
    namespace: str
    input: Mapping[str, Any]

    @property
    def prompt(self) -> str:
        prompt = self.input.get("prompt")
        return prompt.strip() if isinstance(prompt, str) else ""


async def context_for(running: Running, hook_event: Event, hook: str, timeout_s: float) -> str | None:
    """The text for the client's model; None where nothing is worth it, or it was not found in time.

    What is given goes onto the log before it is answered.
    """
    asked = Asked(hook, hook_event.data["session_id"], hook_event.namespace, hook_event.data.get("payload") or {})
    try:
        async with asyncio.timeout(timeout_s):
            context = await _context(running, asked)
            if context is not None:
                await running.publish(_injected(hook_event, asked, context), TELEMETRY.name)
    except TimeoutError:
        return None
    return context.text if context is not None else None


async def _context(running: Running, asked: Asked) -> Context | None:
    if asked.hook == STARTED:
        project, source = asked.input.get("cwd"), asked.input.get("source")
        sections = await running.store.reader.run(
            lambda cursor: read_brief(
                cursor,
                asked.namespace,
                asked.session_id,
                project if isinstance(project, str) else None,
                source if isinstance(source, str) else None,
            )
        )
        return context_of(sections, BRIEF_TOKENS)
    if asked.hook == PROMPTED and asked.prompt:
        text = asked.prompt[:MAX_PROMPT]
        encoded = await encoded_query(running.services.embedder, text)
        embedder = running.embedder
        trained = embedder is not None and embedder.info.trained
        notes = await running.store.reader.run(lambda cursor: _facts(cursor, running, asked, text, encoded, trained))
        return context_of([Section("What may bear on this prompt", notes)], FACTS_TOKENS)
    return None


def _facts(
    cursor: duckdb.DuckDBPyConnection,
    running: Running,
    asked: Asked,
    text: str,
    encoded: EncodedQuery,
    trained: bool,
) -> list[Note]:
    """What is near the prompt, the session does not know yet, and is above the floor."""
    query = Query(text, encoded.vector, Filter(asked.namespace), HITS, encoded.tokens, encoded.space)
    hits = search_live(cursor, running.store.indexes, query).hits
    records = sorted({record for hit in hits for record in _stating(hit)})
    known = read_known(cursor, asked.namespace, asked.session_id, records)
    new = {hit.record_id: hit for hit in hits if known.isdisjoint(_stating(hit))}
    picked = chosen(text, [_scored(hit) for hit in new.values()], trained=trained)
    return [_note(new[one.record_id], text, one.confidence) for one in picked]


def _stating(hit: SearchHit) -> list[str]:
    """The records that state what the hit states, itself first."""
    return [hit.record_id, *(record_id for _, record_id in hit.also)]


def _scored(hit: SearchHit) -> ScoredHit:
    raw = {side: value for side, (_, value) in hit.sides.items()}
    return ScoredHit(hit.record_id, hit.text, raw.get("vector"), raw.get("late"), raw.get("keyword"))


def _note(hit: SearchHit, prompt: str, confidence: float) -> Note:
    near = None if hit.passage is None else (hit.passage.start, hit.passage.end)
    start, end = best_passage(hit.text, MAX_NOTE, prompt, near)
    return Note(hit.record_id, hit.text[start:end], hit.created_at, hit.kind, round(confidence, 3))


def _injected(hook_event: Event, asked: Asked, context: Context) -> Event:
    records = {note.record_id: note.score for note in context.notes}
    digest = hashlib.blake2b(asked.prompt.encode("utf-8", "replace"), digest_size=8).hexdigest()
    data = {
        "session_id": asked.session_id,
        "hook": asked.hook,
        "prompt_digest": digest if asked.hook == PROMPTED else None,
        "records": [{"record_id": record_id, "score": score} for record_id, score in records.items()],
        "tokens": context.tokens,
    }
    identity = derived_id(CONTEXT_INJECTED, hook_event.id)
    return Event(identity, SOURCE, CONTEXT_INJECTED, asked.namespace, hook_event.time, data)
