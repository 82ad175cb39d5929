"""The rows that a store holds of each namespace, and what an answer gives away of another namespace's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import orjson

from tests.security.json_values import strings
from tests.security.side import Question, Side


class Stored:
    """What is in the store of each namespace, and the values in which they differ."""

    def __init__(self, tables: dict[str, dict[str, list[tuple[Any, ...]]]]) -> None:
        self.tables = tables
        self._values = {
            name: {value for rows in found.values() for value in values(rows)} for name, found in tables.items()
        }

    def only_in(self, namespace: str) -> set[Any]:
        """Ids and texts of no other namespace."""
        return self._values[namespace].difference(
            *(values for name, values in self._values.items() if name != namespace)
        )

    def leak(self, question: Question, other: Side) -> list[Any]:
        """What an answer holds of the other, but for what it was asked with."""
        given = tokens_of(question.given)
        text = orjson.dumps(question.answer).decode().lower()
        for value in sorted(map(str, given), key=len, reverse=True):
            text = text.replace(value.lower(), "")
        marked = {other.mark} if other.mark in text else set()
        return sorted((tokens_of(question.answer) & self.only_in(other.namespace)) - given | marked, key=str)


def read_rows(cursor: Any, side: Side) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of a namespace in every table and view that has one, sorted."""
    names = cursor.execute(
        "SELECT DISTINCT table_name FROM duckdb_columns() "
        "WHERE column_name = 'namespace' AND schema_name = 'main' ORDER BY 1"
    ).fetchall()
    return {
        name: sorted(cursor.execute(f"SELECT * FROM {name} WHERE namespace = ?", [side.namespace]).fetchall(), key=repr)
        for (name,) in names
    }


_WORD = re.compile(r"[\w.-]+")


def values(rows: Any) -> Iterator[Any]:
    """What in rows can be recognised: texts, what is in JSON, and numbers so large that they are ids."""
    for row in rows:
        for value in row:
            if isinstance(value, str) and value[:1] in ("{", "["):
                yield from tokens_of(orjson.loads(value))
            elif len(value) > 3 if isinstance(value, str) else isinstance(value, int) and value > 2**31:
                yield value


def tokens_of(answer: Any) -> set[Any]:
    """Every text and number in an answer, and every word of its texts."""
    found: set[Any] = set()
    for value in strings(answer):
        if isinstance(value, str) and len(value) > 3:
            found |= {value, *(word for word in _WORD.findall(value) if len(word) > 3)}
        elif isinstance(value, int) and value > 2**31:
            found.add(value)
    return found
