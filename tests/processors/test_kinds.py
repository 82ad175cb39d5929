"""What each domain declares about its memories.

Nothing that is written is forgotten, and the SQL says what it promises.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import processors
from processors.memory.kind import Kind, Texts
from processors.memory.registry import CATEGORIES, COUNTED, DECLARED, KINDS, TEXTS, collect, texts_by_event
from processors.talos.rules.ontology import LABELS
from storage.search import index_set
from storage.search.index_set import IndexSet
from storage.search.records.filter import Filter, TagFilter, resolve
from streams.event_types.context_graph import MODALITIES
from streams.events import Event
from tests.schema import fresh_database, tables
from tests.talos.node import SmallNode

ROOT = Path(processors.__file__).parent
OF_DATA = {
    "row['modality']": tuple(MODALITIES),
    "entity['label']": tuple(LABELS),
    "label": ("Persona", "Protocol", "Human"),
}
"""What a kind that is not a constant can be."""


def written_kinds() -> set[tuple[str, str]]:
    """(toolset, kind) of every `rows.document(…)` in the processors."""
    found: set[tuple[str, str]] = set()
    for path in ROOT.rglob("*.py"):
        name = ".".join(("processors", *path.relative_to(ROOT).with_suffix("").parts))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "rows.document":
                module = vars(importlib.import_module(name))
                _, toolset, kind, *_ = map(ast.unparse, node.args)
                toolset = eval(toolset, module)
                found |= {(toolset, each) for each in (OF_DATA[kind] if kind in OF_DATA else (eval(kind, module),))}
    return found


def test_every_kind_that_a_processor_writes_is_declared_by_its_domain() -> None:
    written = written_kinds()
    assert {("talos", "JournalEntry"), ("valence", "Exchange"), ("cognitive_memory", "working_memory")} <= written
    assert written - set(KINDS) == set()


def test_a_kind_or_the_texts_of_an_event_that_are_declared_twice_are_refused() -> None:
    def texts(event: Event) -> list[tuple[str, str]]:
        return []

    note = Kind("notes", ("Note",), None, Texts({"note.written": texts}))
    with pytest.raises(ValueError, match="'Note' of notes is declared twice"):
        collect([note, note])
    with pytest.raises(ValueError, match=r"texts of note\.written are declared by two"):
        texts_by_event([note, Kind("notes", ("Draft",), None, note.texts)])


def fragments() -> Iterator[tuple[str, list[str], str]]:
    """Each SQL fragment: whose, the columns that it promises, the SELECT."""
    for kind in DECLARED:
        place, texts, tags = kind.place, kind.texts, kind.tags
        for field, columns, sql in (
            ("roles", ["role"], place and place.roles),
            ("stored", ["text"], texts and texts.stored),
            ("tags", ["tag"], tags and tags.sql),
            ("private", [], kind.private),
            ("ended", [], kind.ended),
        ):
            if sql:
                yield f"{field} of {kind.toolset} {kind.names}", ["namespace", "record_id", *columns], sql


def test_each_fragment_selects_the_columns_that_it_promises_and_each_counted_table_exists() -> None:
    cursor, promised = fresh_database().cursor(), list(fragments())
    wrong = [about for about, columns, sql in promised if list(cursor.sql(sql).columns) != columns]
    assert len(promised) > 10 and wrong == []
    assert COUNTED and set(COUNTED) <= set(tables())


async def test_the_category_of_an_entry_and_of_what_was_found_in_it_are_tags_of_a_search(tmp_path: Path) -> None:
    node = SmallNode(tmp_path)
    await node.call("journal_write", content="The parser lost a sign.", category="observation", domain="tech")
    await node.call("friction_log", description="The tide gauge sticks", category="tooling")
    cursor = node.store.database.cursor()

    def tagged(*names: str) -> set[str]:
        labels = resolve(cursor, Filter("default", tags=TagFilter(names, CATEGORIES))).tolist()
        rows = cursor.execute("SELECT kind FROM documents WHERE label IN (SELECT unnest(?::BIGINT[]))", [labels])
        return {kind for (kind,) in rows.fetchall()}

    assert tagged("OBSERVATION") == {"JournalEntry"}
    assert tagged("tooling") == {"Friction"}
    assert tagged("Tech") >= {"JournalEntry", "Observation"}
    assert tagged("elsewhere") == set()
    node.close()


async def test_the_goal_of_a_session_is_embedded_and_the_name_of_a_domain_is_not(tmp_path: Path) -> None:
    node = SmallNode(tmp_path)
    await node.call("session_open", session_id="2026-01-05-tides", goal="Mend the tide gauge")
    await node.call("journal_write", content="I believe tide gauges drift.", category="observation", domain="sea")
    texts = {text for event in node.published if event.type in TEXTS for _, text in TEXTS[event.type](event)}
    assert "Mend the tide gauge" in texts and "sea" not in texts
    assert ("Domain", "sea") in node.store.sql("SELECT kind, text FROM documents")
    node.close()


def test_frequent_words_are_cached_once_a_counted_table_is_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_set, "FREQUENT", 3)
    database = fresh_database()
    counted, others = (IndexSet(tmp_path, database.cursor, None, tables) for tables in (("document_tags",), ()))
    for number in range(3):
        assert not counted.are_counted() and not others.are_counted()
        values = [f"w{number}", "default", "t", 0, number, f"e{number}"]
        database.cursor().execute("INSERT INTO document_tags VALUES (?, 'x', ?, ?, ?, ?, ?)", values)
    assert counted.are_counted() and not others.are_counted()
