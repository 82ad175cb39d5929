"""The rows of a recall: as many hits as fit, each as short as its caller wants it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import duckdb
import orjson

from mcp_ingress.fitting.passage import Span, best_passage
from mcp_ingress.toolsets.core.records import LINE, RecordName, one_line, others, read_records
from processors.memory.rules.relevance import FIRST, Calibration, relevance_of
from storage.search.captured import read_turns, turns_among
from storage.search.records.hits import SearchHit
from storage.search.records.records import Records

CHARACTERS = 4
"""Of a token, as answers are measured."""
FRAME = 160
"""Characters around the rows: flags, totals, what is lacking."""
INDEX, TEXT = "index", "text"
DETAILS = {INDEX: 35, TEXT: 60}
"""Tokens that a row takes at least."""
MAX_PASSAGE = 1_200
LEAST_TEXT = 40
"""Characters of a text that are shown however little room there is."""
LESS_NEEDED = ("also", "earlier")
"""Ids that the first row leaves out where there is no room for them."""
PASSAGES = 4
"""A row's passage may take this part of what there is."""
MAX_NAMED = 3
"""This many other records are named in a row, of each sort."""
SIDES = {"keyword": "words", "vector": "meaning", "late": "meaning", "graph": "related", "date": "date"}
NAMES = frozenset({"Domain", "Human", "Persona", "Protocol", "Entity"})
"""Kinds of records that are a name, and say something only where what it names is described."""

ROWS_READ = 24
"""Hits that are read at once, with what their rows show; at least FIRST, by which it is told whether any is right."""
LEAST_READ = 4
"""One hit takes nearly as long as these."""

Row = dict[str, Any]


class Fitted(NamedTuple):
    """The rows that fit. `nothing`: probably none is right. `merged`: how many hits have no row of their own."""

    rows: list[Row]
    nothing: bool
    merged: int


@dataclass(frozen=True)
class Page:
    """What a caller wants to see: `detail` (`index`: a line each, `text`: passages) in at most `tokens`."""

    query: str
    detail: str
    tokens: int

    @property
    def most_rows(self) -> int:
        """This many rows fit at most."""
        return self.tokens // DETAILS[self.detail] + 1

    @property
    def room(self) -> int:
        """Characters that the rows may take."""
        return CHARACTERS * self.tokens - FRAME

    def fitted(
        self,
        cursor: duckdb.DuckDBPyConnection,
        stored: Records,
        namespace: str,
        read: Callable[[int], Sequence[SearchHit]],
        calibration: Calibration,
    ) -> Fitted:
        """The first hits that fit, as rows, best first, each record once.

        Names that say nothing are left out. The first row is cut where it is too large; another one is passed over, and
        with it what it disputes. `read` gives the next hits, until no more fit. `calibration`: of the namespace's
        relevance.
        """
        hits: list[SearchHit] = []
        trusted = relevance_of(hits, calibration)
        sizes: dict[str, int] = {}
        shown: list[Row] = []
        passed: set[str] = set()
        left, most = self.room, max(self.most_rows, FIRST)
        while (wanted := min(_rows_wanted(left, sizes.values()), most - len(hits))) and (some := read(wanted)):
            hits += some
            trusted = relevance_of(hits, calibration)
            relevance = dict(zip((hit.label for hit in hits), trusted.values, strict=True))
            stated = [hit for hit in some if hit.kind not in NAMES or ": " in hit.text]
            for row in self._rows(cursor, stored, namespace, stated, relevance):
                if row["id"] in sizes:
                    continue
                size = sizes[row["id"]] = _size(row)
                if not shown:
                    shown.append(row if size <= left else self._cut(row, left))
                    left -= _size(shown[0])
                elif size <= left and passed.isdisjoint(row.get("disputed_by", ())):
                    shown.append(row)
                    left -= size
                else:
                    passed.add(row["id"])
        return Fitted(shown, trusted.nothing, len(hits) - len(sizes))

    def _cut(self, row: Row, most: int) -> Row:
        """The row in about `most` characters: with less text, and where LEAST_TEXT is too much, fewer ids."""
        text, over = row["text"], _size(row) - most
        if len(text) - over < LEAST_TEXT:
            row = {name: value for name, value in row.items() if name not in LESS_NEEDED}
            over = _size(row) - most
        text = one_line(text, self.query, most=max(LEAST_TEXT, len(text) - over))
        return {**row, "text": text, **({"truncated": True} if self.detail == TEXT else {})}

    def _rows(
        self,
        cursor: duckdb.DuckDBPyConnection,
        stored: Records,
        namespace: str,
        hits: Sequence[SearchHit],
        relevance: Mapping[int, float | None],
    ) -> list[Row]:
        named = [name for hit in hits for name in (*hit.also, *hit.earlier, *hit.disputed_by, *_successor(hit))]
        kinds = {identity: kind for kind, identity in named} | {hit.record_id: hit.kind for hit in hits}
        records = read_records(cursor, stored, namespace, kinds)
        turns = read_turns(cursor, turns_among(hits))
        return [self._row(hit, records, turns.get(hit.label), relevance[hit.label]) for hit in hits]

    def _row(
        self,
        hit: SearchHit,
        records: Mapping[str, RecordName],
        turn: Mapping[str, Any] | None,
        relevance: float | None,
    ) -> Row:
        """A hit as its caller reads it: what it says first, then where it is from and how it stands to others."""
        record = records[hit.record_id]
        changed = {"earlier": hit.earlier, "disputed_by": hit.disputed_by, "superseded_by": _successor(hit)}
        related = {**changed, "also": hit.also}
        named = {name: others(some, records, record.id) for name, some in related.items()}
        return {
            "id": record.id,
            "kind": record.kind,
            **self._text(hit),
            "at": hit.created_at.date().isoformat(),
            "score": round(hit.score, 2),
            **({} if relevance is None else {"relevance": round(relevance, 2)}),
            "why": "+".join(dict.fromkeys(SIDES[side] for side in hit.sides if side in SIDES)) or "related",
            **({"about": hit.domain} if hit.domain not in (None, record.kind) else {}),
            **({"session": hit.session_id, "role": turn["role"]} if turn is not None else {}),
            **{name: ids[:MAX_NAMED] for name, ids in named.items() if ids},
            **({"times": hit.times} if hit.times > 1 else {}),
        }

    def _text(self, hit: SearchHit) -> dict[str, Any]:
        near: Span | None = None if hit.passage is None else (hit.passage.start, hit.passage.end)
        if self.detail == INDEX:
            return {"text": one_line(hit.text, self.query, near)}
        longest = max(LINE, min(MAX_PASSAGE, self.room // PASSAGES))
        if len(hit.text) <= longest:
            return {"text": hit.text}
        start, end = best_passage(hit.text, longest, self.query, near)
        return {"text": hit.text[start:end], "truncated": True}


def _rows_wanted(left: int, sizes: Collection[int]) -> int:
    """How many more hits to read: about as many as fit of the smallest of these sizes, 0 where none does."""
    fit = left // min(sizes) if sizes else ROWS_READ
    return min(max(fit, LEAST_READ), ROWS_READ) if fit else 0


def _size(row: Row) -> int:
    return len(orjson.dumps(row).decode()) + 1


def _successor(hit: SearchHit) -> list[tuple[str, str]]:
    """What holds in the place of a record that has ended."""
    return [] if hit.superseded_by is None else [hit.superseded_by]
