"""Prompts of real sessions, with what of earlier sessions helps to answer each, as people read them.

The marks (`data/inject_marks.jsonl`, a session a line) name sessions and events only; the transcripts are not in this
repository (docs/benchmarks.md says where they are from). A mark is

none     nothing of an earlier session: the prompt brings what it needs, or its own session has it
helps    an earlier session is about the same matter, but the answer can do without
needs    a good answer uses what an earlier session found or decided

with the events that say it. An event is named by its uuid, or `line N`, from 0, where the format gives none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path

import orjson

from processors.telemetry.formats.catalogue import format_of
from processors.telemetry.rules.prose import prose_of
from streams.errors import Refused
from streams.events import Event
from thalweg.bench.recall_sets import Turn

NAMED_WITHIN = 50
"""A transcript names its session within this many lines."""
NONE, HELPS, NEEDS = "none", "helps", "needs"
_START = datetime(2025, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class PromptMark:
    """What helps to answer a prompt: `kind` (none, helps, needs), and the events that say it."""

    kind: str
    facts: frozenset[str]


@dataclass(frozen=True, slots=True)
class MarkedSession:
    """One session, or the lines `[first, last)` of a long one that was cut at its pauses."""

    project: str
    part: str
    format: str
    session_id: str
    marks: Mapping[str, PromptMark]
    lines: tuple[int, int] | None = None

    @property
    def name(self) -> str:
        """What the store calls it: each piece of a session is one of its own."""
        return self.session_id if self.lines is None else f"{self.session_id}-{self.lines[0]}"


@dataclass
class MarkedProject:
    """What was said in one project, in order of time, and the marks by turn. `part`: choice or report."""

    name: str
    part: str
    turns: list[Turn] = field(default_factory=list)
    marks: dict[str, PromptMark] = field(default_factory=dict)


def bundled_marks() -> bytes:
    """The marks of this repository."""
    return resources.files("thalweg.bench").joinpath("data/inject_marks.jsonl").read_bytes()


def read_projects(directory: Path, marks: bytes) -> list[MarkedProject]:
    """The marked projects of which the directory holds transcripts, without sessions that it lacks.

    Raises Refused where none is.
    """
    files = _files_by_session(directory)
    projects: dict[str, MarkedProject] = {}
    for session in read_marks(marks):
        if session.session_id in files:
            project = projects.setdefault(session.project, MarkedProject(session.project, session.part))
            project.turns += read_turns(session, files[session.session_id])
            project.marks |= session.marks
    if not projects:
        raise Refused(f"{directory} holds no transcript of a session that is marked; docs/benchmarks.md names them.")
    for project in projects.values():
        project.turns.sort(key=lambda turn: turn.at)
    return list(projects.values())


def read_marks(marks: bytes) -> Iterator[MarkedSession]:
    for line in marks.splitlines():
        row = orjson.loads(line)
        prompts = {event: PromptMark(kind, frozenset(facts)) for event, (kind, *facts) in row["prompts"].items()}
        lines = tuple(row["lines"]) if "lines" in row else None
        yield MarkedSession(row["project"], row["part"], row["format"], row["session"], prompts, lines)


def read_turns(session: MarkedSession, path: Path) -> Iterator[Turn]:
    """What people and agents said, as an import takes it from the file."""
    rows = path.read_bytes().split(b"\n")
    first, last = session.lines or (0, len(rows))
    mapper = format_of(session.format).mapper(namespace=session.project, name=session.name, fallback_time=_START)
    seen: set[str] = set()
    for number in range(first, last):
        events = mapper.line(number, rows[number]) if rows[number] else []
        for event in [event for event in events if isinstance(event, Event)]:
            said = prose_of(event.id, event.data)
            if said is not None and said.identity not in seen:
                seen.add(said.identity)
                name = said.identity if session.lines is None else f"line {number}"
                yield Turn(name, event.data["session_id"], event.time, said.text, said.role)


def _files_by_session(directory: Path) -> dict[str, Path]:
    """Session -> its file; of several the largest, for a resumed session is written again as a whole."""
    found: dict[str, Path] = {}
    for path in sorted(directory.rglob("*.jsonl"), key=lambda path: path.stat().st_size):
        name = _session_of(path)
        if name is not None:
            found[name] = path
    return found


def _session_of(path: Path) -> str | None:
    """The first session that one of the file's lines names."""
    with path.open("rb") as file:
        for _, line in zip(range(NAMED_WITHIN), file, strict=False):
            try:
                row = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue
            if isinstance(row, dict):
                name = row.get("sessionId") or (row.get("id") if row.get("type") == "session" else None)
                if isinstance(name, str):
                    return name
    return None


def shares(counts: Sequence[bool]) -> tuple[float, float, float]:
    """The share in per cent, and the 95 % interval of Wilson around it.

    The interval is 0 to 100 where there is nothing to count.
    """
    n = len(counts)
    if not n:
        return 0.0, 0.0, 100.0
    share, z = sum(counts) / n, 1.96
    middle, spread = share + z * z / (2 * n), z * ((share * (1 - share) + z * z / (4 * n)) / n) ** 0.5
    low, high = ((middle + side * spread) / (1 + z * z / n) for side in (-1, 1))
    return 100 * share, 100 * low, 100 * high
