"""Answers a client's hook with what its model should know.

A brief at a session's start, a few facts with a prompt.
What is given is an event on the log, so that SQL and `thalweg why` can say what a session was told.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mcp_ingress.fitting.passage import best_passage
from processors.embedding.query import encoded_query
from processors.injection.read.brief import read_brief
from processors.injection.read.facts import HITS, GivenFact, read_facts
from processors.injection.rules.notes import MAX_NOTE, Context, Note, Section, against, context_of
from storage.search.query import Query
from storage.search.records.filter import Filter
from streams.event_types.injection import CONTEXT_INJECTED
from streams.events import Event
from streams.ids import derived_id
from streams.topics import TELEMETRY

if TYPE_CHECKING:
    from thalweg.process.running import Running

BRIEF_TOKENS = 800
FACTS_TOKENS = 700
MAX_PROMPT = 2000
"""This many characters of a prompt are searched for: its beginning."""
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

    What is given goes onto the log, or into the spool, before it is answered.
    """
    asked = Asked(hook, hook_event.data["session_id"], hook_event.namespace, hook_event.data.get("payload") or {})
    try:
        async with asyncio.timeout(timeout_s):
            context = await _context(running, asked)
            if context is not None:
                await running.accept(_injected(hook_event, asked, context), TELEMETRY.name)
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
        query = Query(text, encoded.vector, Filter(asked.namespace), HITS, encoded.tokens, encoded.space)
        facts = await running.store.reader.run(
            lambda cursor: read_facts(cursor, running.store.indexes, query, asked.session_id)
        )
        return facts_context(facts, text)
    return None


def facts_context(facts: Sequence[GivenFact], prompt: str) -> Context | None:
    """The text of facts with their confidence; None where there are none."""
    notes = [_note(fact, prompt) for fact in facts]
    return context_of([Section("What may bear on this prompt", notes)], FACTS_TOKENS)


def _note(fact: GivenFact, prompt: str) -> Note:
    """The passage of the record that fits the prompt best."""
    hit = fact.hit
    near = None if hit.passage is None else (hit.passage.start, hit.passage.end)
    most = MAX_NOTE if fact.against is None else MAX_NOTE // 2
    start, end = best_passage(hit.text, most, prompt, near)
    kind = f"{fact.role} said" if fact.role else hit.kind
    text = hit.text[start:end] if fact.against is None else against(hit.text[start:end], fact.against)
    return Note(hit.record_id, text, hit.created_at, kind, round(fact.confidence, 3))


def _injected(hook_event: Event, asked: Asked, context: Context) -> Event:
    records = {note.record_id: note.score for note in context.notes if note.record_id}
    digest = hashlib.blake2b(asked.prompt.encode("utf-8", "replace"), digest_size=8).hexdigest()
    data = {
        "session_id": asked.session_id,
        "hook": asked.hook,
        "prompt_digest": digest if asked.hook == PROMPTED else None,
        "records": [{"record_id": record_id, "score": score} for record_id, score in records.items()],
        "tokens": context.tokens,
    }
    identity = derived_id(CONTEXT_INJECTED, hook_event.id)
    return Event(identity, hook_event.source, CONTEXT_INJECTED, asked.namespace, hook_event.time, data)
