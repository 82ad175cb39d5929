"""The store of one marked project: turns as they were said, and what hooks are answered from them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from processors.embedding.model import Embedder, encode_query
from processors.injection.read.brief import read_brief
from processors.injection.read.facts import HITS, read_facts
from processors.injection.reducers import INJECTIONS
from processors.injection.rules.notes import Context, context_of
from processors.telemetry.formats.lines import goal
from processors.telemetry.reducers import SESSIONS
from processors.telemetry.rules.prose import HUMAN
from storage.database import Database
from storage.migrate import migrate
from storage.search.index_set import IndexSet
from storage.search.query import Query
from storage.search.records.filter import Filter
from storage.writer import Changes, Writer
from streams.clock import SystemClock
from streams.ids import document_label
from streams.topics import TELEMETRY
from thalweg.bench.recall import TurnWriter
from thalweg.bench.recall_sets import Turn
from thalweg.bench.scratch import scratch_directory
from thalweg.control.context import BRIEF_TOKENS, MAX_PROMPT, PROMPTED, STARTED, facts_context

TURNS = "turns"


class SessionStore:
    """What was said in one project so far. A turn is found when `write` returns."""

    def __init__(self, database: Database, indexes: IndexSet, embedder: Embedder, namespace: str) -> None:
        self._namespace, self._embedder, self._indexes = namespace, embedder, indexes
        self._writer, self._cursor = Writer(database), database.cursor()
        self._documents = TurnWriter(self._writer, indexes, embedder)
        self._sessions: dict[str, dict[str, Any]] = {}
        self._goals: dict[str, str] = {}
        """Of each session the turn that says its goal."""

    def write(self, turn: Turn) -> None:
        self._documents.write(self._namespace, turn)
        session, moment = str(turn.session), turn.at.replace(tzinfo=None)
        is_new = session not in self._sessions
        row = self._sessions.setdefault(session, self._new_session(session, turn))
        row["ended_at"] = moment
        if turn.role == HUMAN and row["goal"] is None and (asked := goal(turn.text)):
            row["goal"], self._goals[session] = asked, turn.turn_id
        key = self._writer.key_of(SESSIONS, row)
        self._writer.commit(
            Changes(
                appended={TURNS: [self._turn(turn)]},
                state={SESSIONS: {key: dict(row)}},
                fresh={(SESSIONS, key)} if is_new else set(),
            )
        )

    def brief(self, turn: Turn) -> tuple[Context | None, set[str]]:
        """What the session that begins with this turn is told, and the turns that are behind it."""
        session = str(turn.session)
        sections = read_brief(self._cursor, self._namespace, session, self._namespace, "startup")
        context = context_of(sections, BRIEF_TOKENS)
        if context is None:
            return None, set()
        self._keep(turn, STARTED, context)
        told = {note.record_id for note in context.notes if note.record_id}
        return context, {self._goals.get(identity, identity) for identity in told}

    def facts(self, turn: Turn) -> Context | None:
        """What is given with a prompt."""
        self._indexes.maintain()
        text = turn.text[:MAX_PROMPT]
        vector, tokens = encode_query(self._embedder, text)
        query = Query(text, vector, Filter(self._namespace), HITS, tokens)
        given = facts_context(read_facts(self._cursor, self._indexes, query, str(turn.session)), text)
        if given is not None:
            self._keep(turn, PROMPTED, given)
        return given

    def _keep(self, turn: Turn, hook: str, given: Context) -> None:
        """What the session was given, as a node keeps it: it is not given again."""
        notes = [note for note in given.notes if note.record_id]
        row = {
            "session_id": turn.session,
            "hook": hook,
            "record_ids": [note.record_id for note in notes],
            "scores": [note.score for note in notes],
            "tokens": given.tokens,
            "injected_at": turn.at.replace(tzinfo=None),
            **self._origin(f"{hook}-{turn.turn_id}"),
        }
        self._writer.commit(Changes(appended={INJECTIONS: [row]}))

    def _new_session(self, session: str, turn: Turn) -> dict[str, Any]:
        parent, _, agent = session.partition("/")
        return {
            "session_id": session,
            "parent_session_id": parent if agent else None,
            "source": "bench",
            "project": self._namespace,
            "agent": None,
            "model": None,
            "goal": None,
            "summary": None,
            "started_at": turn.at.replace(tzinfo=None),
            **self._origin(session),
        }

    def _turn(self, turn: Turn) -> dict[str, Any]:
        return {
            "label": document_label(self._namespace, turn.turn_id),
            "record_id": turn.turn_id,
            "session_id": turn.session,
            "role": turn.role,
            "source": "bench",
            "text": turn.text,
            "created_at": turn.at.replace(tzinfo=None),
            **self._origin(turn.turn_id),
        }

    def _origin(self, event_id: str) -> dict[str, Any]:
        where = {"topic": TELEMETRY.name, "partition": 0, "offset": 0}
        return {"namespace": self._namespace, **where, "event_id": event_id}


@contextmanager
def session_store(embedder: Embedder, namespace: str) -> Iterator[SessionStore]:
    """An empty store in a directory of its own, which goes with it."""
    with scratch_directory() as scratch:
        database = Database(Path(scratch))
        try:
            migrate(database.cursor(), SystemClock().now())
            indexes = IndexSet(scratch / "indexes", database.cursor, embedder.info)
            indexes.open({})
            yield SessionStore(database, indexes, embedder, namespace)
            indexes.close(save=False)
        finally:
            database.close()
