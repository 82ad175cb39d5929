"""Reads what a session is told at its start.

Newest decisions, the last session, open goals, open contradictions; after a compaction its own prompts too.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import duckdb

from processors.injection.rules.notes import Note, Section
from processors.memory.registry import PRIVATE

GOALS, DECISIONS, CONTRADICTIONS, PROMPTS = 3, 8, 3, 3
COMPACTED = "compact"
"""What `SessionStart` says of a session whose context was summarised: it gets its own notes back, too."""

_LAST_SESSION = """
SELECT session_id, goal, summary, project, started_at, ended_at FROM sessions
WHERE namespace = $namespace AND parent_session_id IS NULL AND session_id <> $session
  AND (goal IS NOT NULL OR summary IS NOT NULL)
ORDER BY project IS NOT DISTINCT FROM $project DESC, coalesce(ended_at, started_at) DESC, session_id LIMIT 1"""

_LAST_WORDS = """
SELECT text, occurred_at FROM session_events
WHERE namespace = $namespace AND session_id = $session AND role = 'assistant' AND trim(text) <> ''
ORDER BY occurred_at DESC, event_id DESC LIMIT 1"""

_GOALS = f"""
SELECT goal_id, description, created_at FROM goals WHERE namespace = $namespace AND status = 'active'
UNION ALL
SELECT memory_id, text, created_at FROM memories WHERE namespace = $namespace AND is_live
  AND memory_id IN (SELECT record_id FROM document_tags WHERE namespace = $namespace AND tag = 'goal')
  AND memory_id NOT IN (SELECT record_id FROM ({PRIVATE}) WHERE namespace = $namespace)
ORDER BY 3 DESC, 1 LIMIT {GOALS}"""
"""What sessions were opened for, and what was remembered as a goal."""

_DECISIONS = f"""
SELECT memory_id, text, created_at FROM memories
WHERE namespace = $namespace AND kind = 'decision' AND is_live
  AND memory_id NOT IN (SELECT record_id FROM ({PRIVATE}) WHERE namespace = $namespace)
ORDER BY created_at DESC, memory_id LIMIT {DECISIONS}"""

_TENSIONS = f"""
SELECT belief_b_id, belief_b_content || ' — against: ' || belief_a_content, detected_at FROM tensions
WHERE namespace = $namespace AND status IN ('detected', 'investigating')
  AND list_has_any([belief_a_id, belief_b_id],
                   (SELECT coalesce(list(record_id), []) FROM ({PRIVATE}) WHERE namespace = $namespace)) IS FALSE
ORDER BY severity = 'critical' DESC, severity = 'high' DESC, detected_at DESC, tension_id LIMIT {CONTRADICTIONS}"""

_CHANGES = f"""
SELECT n.memory_id, n.text || ' — against: ' || o.text, c.found_at FROM memory_changes c
JOIN memories n ON n.namespace = c.namespace AND n.memory_id = c.newer_id AND n.is_live
JOIN memories o ON o.namespace = c.namespace AND o.memory_id = c.older_id AND o.is_live
WHERE c.namespace = $namespace
  AND list_has_any([c.newer_id, c.older_id],
                   (SELECT coalesce(list(record_id), []) FROM ({PRIVATE}) WHERE namespace = $namespace)) IS FALSE
ORDER BY c.found_at DESC, n.memory_id LIMIT {CONTRADICTIONS}"""

_OWN_GOAL = "SELECT goal, started_at FROM sessions WHERE namespace = $namespace AND session_id = $session"

_PROMPTS = f"""
SELECT payload->>'prompt', occurred_at FROM session_events
WHERE namespace = $namespace AND session_id = $session AND event_type = 'hook.UserPromptSubmit'
  AND trim(payload->>'prompt') <> ''
ORDER BY occurred_at DESC, event_id DESC LIMIT {PROMPTS}"""


def read_brief(
    cursor: duckdb.DuckDBPyConnection, namespace: str, session_id: str, project: str | None, source: str | None
) -> list[Section]:
    """What a session of this project is told at its start. `source`: `startup`, `resume`, `clear` or `compact`."""
    known = {"namespace": namespace, "session": session_id, "project": project}

    def rows(sql: str, **more: Any) -> list[tuple[Any, ...]]:
        given = {name: value for name, value in (known | more).items() if f"${name}" in sql}
        return cursor.execute(sql, given).fetchall()

    own = _own_session(rows(_OWN_GOAL), rows(_PROMPTS), session_id) if source == COMPACTED else []
    contradictions = [Note(*row) for row in rows(_TENSIONS)]
    contradictions += [Note(*row) for row in rows(_CHANGES)]
    last = [note for row in rows(_LAST_SESSION) for note in _session(row, project, rows(_LAST_WORDS, session=row[0]))]
    return [
        Section("This session, before it was compacted", own),
        Section("Newest decisions", [Note(*row) for row in rows(_DECISIONS)]),
        Section("Last session", last),
        Section("Open goals", [Note(*row) for row in rows(_GOALS)]),
        Section("Open contradictions, the newer first", contradictions[:CONTRADICTIONS]),
    ]


def _own_session(goal: list[tuple[Any, ...]], prompts: list[tuple[Any, ...]], session_id: str) -> list[Note]:
    notes = [Note(session_id, text, started_at, "goal") for text, started_at in goal if text]
    return notes + [Note(session_id, text, time, "asked") for text, time in reversed(prompts)]


def _session(row: tuple[Any, ...], project: str | None, words: list[tuple[str, datetime]]) -> list[Note]:
    """A session by its goal, and by its summary or else its last words."""
    session_id, goal, summary, its_project, started_at, ended_at = row
    place = f" in {its_project}" if its_project and its_project != project else ""
    notes = [Note(session_id, f"{goal}{place}", started_at, "goal")] if goal else []
    if summary:
        notes.append(Note(session_id, summary, ended_at or started_at, "summary"))
    else:
        notes += [Note(session_id, text, time, "last words") for text, time in words]
    return notes
