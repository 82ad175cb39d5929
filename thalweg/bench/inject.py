"""`thalweg bench inject`: how often a prompt is given earlier facts, and whether these help.

Each project is a store of its own. What people and agents said is written in order of time; before a marked prompt is,
it is searched for and judged as a node does for the hook. A prompt that needs an earlier fact, or would be helped by
one, counts where one of the marked events is among what it is given; one that needs nothing, where it is given
anything.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from processors.embedding.model import Embedder, encode_query
from processors.injection.read.facts import HITS, read_facts
from processors.injection.reducers import INJECTIONS
from processors.injection.rules.notes import Context
from storage.database import Database
from storage.migrate import migrate
from storage.search.index_set import IndexSet
from storage.search.query import Query
from storage.search.records.filter import Filter
from storage.writer import Changes, Writer
from streams.clock import SystemClock
from streams.topics import TELEMETRY
from thalweg.bench.inject_marks import HELPS, NEEDS, NONE, MarkedProject, bundled_marks, read_projects, shares
from thalweg.bench.recall import TurnWriter
from thalweg.bench.recall_sets import Turn
from thalweg.bench.report import Report, Target
from thalweg.bench.scratch import scratch_directory
from thalweg.control.context import MAX_PROMPT, PROMPTED, facts_context

if TYPE_CHECKING:
    import duckdb

TARGETS = {NONE: Target(10.0), NEEDS: Target(60.0, at_least=True)}
"""For the projects that are reported, not for those on which the floor was chosen."""


@dataclass(frozen=True, slots=True)
class PromptResult:
    """What one prompt was given: whether that counts (above), how many facts, and their tokens."""

    counts: bool
    facts: int
    tokens: int


def measure_inject(directory: Path, embedder: Embedder, name: str, marks: bytes | None = None) -> Report:
    """Replay the marked sessions that the directory holds. `name`: of the embedder; `marks`: the bundled ones.

    Raises Refused where the directory holds none.
    """
    report = Report("inject", {"directory": directory.name, "embedder": name})
    for project in read_projects(directory, bundled_marks() if marks is None else marks):
        by_kind: dict[str, list[PromptResult]] = defaultdict(list)
        with scratch_directory() as scratch:
            for kind, answer in _replay(project, scratch, embedder):
                by_kind[kind].append(answer)
        _report(report, project, by_kind)
    return report


def _replay(project: MarkedProject, scratch: Path, embedder: Embedder) -> Iterator[tuple[str, PromptResult]]:
    """The kind of each marked prompt, and what it was given, in order of time."""
    database = Database(scratch)
    try:
        migrate(database.cursor(), SystemClock().now())
        indexes = IndexSet(scratch / "indexes", database.cursor, embedder.info)
        indexes.open({})
        writer, cursor = Writer(database), database.cursor()
        store = TurnWriter(writer, indexes, embedder)
        for turn in project.turns:
            mark = project.marks.get(turn.turn_id)
            if mark is not None:
                indexes.maintain()
                given = _given(turn, cursor, indexes, embedder, project.name)
                records = [] if given is None else [note.record_id for note in given.notes]
                counts = bool(records) if mark.kind == NONE else not mark.facts.isdisjoint(records)
                if given is not None:
                    writer.commit(Changes(appended={INJECTIONS: [_row(project.name, turn, given)]}))
                yield mark.kind, PromptResult(counts, len(records), 0 if given is None else given.tokens)
            store.write(project.name, turn)
        indexes.close(save=False)
    finally:
        database.close()


def _given(
    turn: Turn, cursor: duckdb.DuckDBPyConnection, indexes: IndexSet, embedder: Embedder, namespace: str
) -> Context | None:
    """What the prompt is given, read and judged as a node does for a hook."""
    text = turn.text[:MAX_PROMPT]
    vector, tokens = encode_query(embedder, text)
    query = Query(text, vector, Filter(namespace), HITS, tokens)
    return facts_context(read_facts(cursor, indexes, query, turn.session or ""), text)


def _row(namespace: str, turn: Turn, given: Context) -> dict[str, Any]:
    """What the session was given, as a node keeps it: it is not given again."""
    return {
        "session_id": turn.session,
        "hook": PROMPTED,
        "record_ids": [note.record_id for note in given.notes],
        "scores": [note.score for note in given.notes],
        "tokens": given.tokens,
        "injected_at": turn.at.replace(tzinfo=None),
        "namespace": namespace,
        "topic": TELEMETRY.name,
        "partition": 0,
        "offset": 0,
        "event_id": turn.turn_id,
    }


def _report(report: Report, project: MarkedProject, by_kind: dict[str, list[PromptResult]]) -> None:
    for kind in (NONE, HELPS, NEEDS):
        answers = by_kind[kind]
        share, low, high = shares([answer.counts for answer in answers])
        target = TARGETS.get(kind) if answers and project.part == "report" else None
        report.add(f"{project.name}_{kind}", share, "%", target)
        report.add(f"{project.name}_{kind}_low", low, "%", bare=True)
        report.add(f"{project.name}_{kind}_high", high, "%", bare=True)
        report.add(f"{project.name}_{kind}_prompts", len(answers), "", bare=True)
    every = [answer for answers in by_kind.values() for answer in answers]
    report.add(f"{project.name}_facts_per_prompt", sum(answer.facts for answer in every) / max(len(every), 1), "")
    report.add(
        f"{project.name}_tokens_per_prompt", sum(answer.tokens for answer in every) / max(len(every), 1), "tokens"
    )
