"""Reads what a session is told at its start.

Newest decisions, the last sessions, open goals, open contradictions; after a compaction its own prompts too.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import duckdb

from processors.injection.read.known import read_known, read_private
from processors.injection.rules.notes import Note, Section, against
from processors.memory.registry import PRIVATE

SESSIONS, GOALS, DECISIONS, CONTRADICTIONS, PROMPTS = 3, 3, 8, 3, 3
TENSIONS = 50
"""Of more open ones the most urgent and latest are looked at."""
RESUMED, COMPACTED = "resume", "compact"
"""What `SessionStart` says of a session that knows what it was given, and of one whose context was summarised."""

_LAST_SESSIONS = f"""
SELECT session_id, goal, summary, project, started_at, ended_at FROM sessions
WHERE namespace = $namespace AND parent_session_id IS NULL AND session_id <> $session
  AND (goal IS NOT NULL OR summary IS NOT NULL AND source IN ('talos', 'valence'))
ORDER BY project IS NOT DISTINCT FROM $project DESC, coalesce(ended_at, started_at) DESC, session_id LIMIT {SESSIONS}"""
"""A transcript in which nobody asked anything has a summary at most: the title of another session."""

_LAST_WORDS = """
SELECT record_id, text, created_at FROM turns
WHERE namespace = $namespace AND session_id = $session AND role = 'assistant'
ORDER BY created_at DESC, record_id DESC LIMIT 1"""

_PRIVATE = f"(SELECT record_id FROM ({PRIVATE}) WHERE namespace = $namespace)"

_GOALS = f"""
SELECT arg_max(id, (moment, id)), text, max(moment) AS last FROM (
    SELECT goal_id AS id, description AS text, created_at AS moment FROM goals
    WHERE namespace = $namespace AND status = 'active'
    UNION ALL
    SELECT memory_id, text, created_at FROM memories
    WHERE namespace = $namespace AND is_live AND memory_id NOT IN {_PRIVATE}
      AND memory_id IN (SELECT record_id FROM document_tags WHERE namespace = $namespace AND tag = 'goal'))
GROUP BY text ORDER BY last DESC, 1 LIMIT {GOALS}"""
"""What sessions were opened for, and what was remembered as a goal, each once."""

_CHANGES = """
WITH pairs AS MATERIALIZED (
    SELECT n.memory_id, o.memory_id AS older_id, n.text, o.text AS older_text, c.found_at FROM memory_changes c
    JOIN memories n ON n.namespace = c.namespace AND n.memory_id = c.newer_id AND n.is_live
    JOIN memories o ON o.namespace = c.namespace AND o.memory_id = c.older_id AND o.is_live
    WHERE c.namespace = $namespace),
agreed AS MATERIALIZED (
    SELECT one.text, other.text AS other_text
    FROM (FROM agreements UNION ALL SELECT * REPLACE (other_id AS one_id, one_id AS other_id) FROM agreements) a
    JOIN documents one ON one.namespace = a.namespace AND one.record_id = a.one_id
    JOIN documents other ON other.namespace = a.namespace AND other.record_id = a.other_id
    WHERE a.namespace = $namespace),
stated AS (
    SELECT d.text, greatest(max(d.created_at), max(r.stated_at)) AS last FROM documents d
    LEFT JOIN restatements r ON r.namespace = d.namespace AND r.record_id = d.record_id
    WHERE d.namespace = $namespace AND d.text IN (SELECT text FROM pairs UNION SELECT older_text FROM pairs)
      AND d.record_id NOT IN (SELECT record_id FROM corrections WHERE namespace = $namespace)
    GROUP BY d.text),
timed AS (
    SELECT p.*, older.last > newer.last AS holds_again FROM pairs p
    JOIN stated newer ON newer.text = p.text JOIN stated older ON older.text = p.older_text
    ANTI JOIN agreed g ON g.text = p.text AND g.other_text = p.older_text)
SELECT memory_id, older_id, text, older_text, found_at FROM timed WHERE NOT holds_again
UNION ALL SELECT older_id, memory_id, older_text, text, found_at FROM timed WHERE holds_again"""
"""What memories change, of two statements the one that was stated last first: said again it holds again.

What a resolution keeps beside each other is left out.
"""

_TENSIONS = f"""
SELECT belief_b_id, belief_a_id, belief_b_content, belief_a_content, detected_at,
       CASE severity WHEN 'critical' THEN 2 WHEN 'high' THEN 1 ELSE 0 END AS urgency FROM tensions
WHERE namespace = $namespace AND status IN ('detected', 'investigating')
ORDER BY urgency DESC, detected_at DESC, tension_id LIMIT {TENSIONS}"""
"""What beliefs are in a tension, the later one first."""

_DECISIONS = f"""
SELECT arg_max(memory_id, (created_at, memory_id)), text, max(created_at) AS last FROM memories
WHERE namespace = $namespace AND kind = 'decision' AND is_live
  AND memory_id NOT IN {_PRIVATE} AND text NOT IN (SELECT unnest($changed::VARCHAR[]))
GROUP BY text ORDER BY last DESC, 1 LIMIT {DECISIONS}"""
"""Each once. One that a later memory changes stands among the contradictions, with that one."""

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

    own = _own_session(rows(_OWN_GOAL), rows(_PROMPTS)) if source == COMPACTED else []
    changes, tensions = rows(_CHANGES), rows(_TENSIONS)
    private = read_private(cursor, namespace, [record_id for row in (*changes, *tensions) for record_id in row[:2]])
    contradictions = _contradictions(
        *([row for row in some if private.isdisjoint(row[:2])] for some in (changes, tensions))
    )
    last = [note for row in rows(_LAST_SESSIONS) for note in _session(row, project, rows(_LAST_WORDS, session=row[0]))]
    sections = [
        Section("This session, before it was compacted", own),
        Section("Newest decisions", [Note(*row) for row in rows(_DECISIONS, changed=[row[3] for row in changes])]),
        Section("Last sessions, the newest first", last),
        Section("Open goals", [Note(*row) for row in rows(_GOALS)]),
        Section("Open contradictions, the newer first", contradictions[:CONTRADICTIONS]),
    ]
    return _unknown(cursor, namespace, session_id, sections) if source == RESUMED else sections


def _contradictions(changes: list[tuple[Any, ...]], tensions: list[tuple[Any, ...]]) -> list[Note]:
    """Rows of `_CHANGES` and `_TENSIONS`, each pair of texts once, the urgent and the latest first.

    Of a pair that is both the change says which of the two holds.
    """
    found: dict[tuple[str, str], list[tuple[int, datetime, str]]] = {}
    for memory_id, _, text, older_text, found_at in changes:
        found.setdefault((text, older_text), []).append((0, found_at, memory_id))
    for memory_id, older_id, text, older_text, found_at, urgency in tensions:
        is_back = (older_text, text) in found
        pair = (older_text, text) if is_back else (text, older_text)
        found.setdefault(pair, []).append((urgency, found_at, older_id if is_back else memory_id))
    ordered = sorted(found.items(), key=lambda pair: max(pair[1]), reverse=True)
    return [
        Note(min(each[2] for each in same), against(text, older_text), max(each[1] for each in same))
        for (text, older_text), same in ordered
    ]


def _unknown(
    cursor: duckdb.DuckDBPyConnection, namespace: str, session_id: str, sections: list[Section]
) -> list[Section]:
    """The sections without what the session has said or was given before."""
    ids = [note.record_id for section in sections for note in section.notes if note.record_id]
    known = read_known(cursor, namespace, session_id, ids)
    return [
        Section(section.heading, [note for note in section.notes if note.record_id not in known])
        for section in sections
    ]


def _own_session(goals: list[tuple[Any, ...]], prompts: list[tuple[Any, ...]]) -> list[Note]:
    """What the session was for, and what it was asked last; a prompt that is its goal is not said twice."""
    goal = next((goal for goal, _ in goals if goal), None)
    notes = [Note(None, goal, started_at, "goal") for goal, started_at in goals if goal]
    asked = [(text, time) for text, time in reversed(prompts) if goal is None or not _one_line(text).startswith(goal)]
    return notes + [Note(None, text, time, "asked") for text, time in asked]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _session(row: tuple[Any, ...], project: str | None, words: list[tuple[str, str, datetime]]) -> list[Note]:
    """A session by its goal, and by its summary or else its last words."""
    session_id, goal, summary, its_project, started_at, ended_at = row
    place = f" in {its_project}" if its_project and its_project != project else ""
    notes = [Note(session_id, f"{goal}{place}", started_at, "goal")] if goal else []
    if summary:
        notes.append(Note(session_id, summary, ended_at or started_at, "summary"))
    else:
        notes += [Note(turn_id, text, time, "last words") for turn_id, text, time in words]
    return notes
