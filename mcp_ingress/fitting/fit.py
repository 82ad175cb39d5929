"""Makes an answer fit: no more than 6,000 tokens of four characters, and no row that fills it alone.

Long texts become passages, rows with too much in them lose what is deepest inside, and lists lose their last rows.
Nothing is left out silently: a row says `truncated` and where the whole is, an answer `more` and how to ask on.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import orjson

from mcp_ingress.fitting.passage import Span, best_passage, boundary
from mcp_ingress.fitting.truncation import NO_TEXTS, NOTHING_LONG, Texts, Truncation, names_of, uri_of

MAX_CHARACTERS = 24_000
"""Of an answer as JSON text: 6,000 tokens."""
MARGIN = 1_000
"""For what is added later: freshness, notes of a read, a toolset's pulse."""
MAX_TEXT = 1_200
"""Characters of a text in a row."""
MAX_ROW = 4_000
MAX_OBJECT_TEXT, MAX_OBJECTS = 8_000, 14_000
"""Characters of a text in an object that is answered alone, and of all that is not a list of rows."""
ESCAPED = 2
"""A text may take this many times its characters as JSON: quotes and line ends take two, control characters six."""
LEVELS = ((MAX_TEXT, 50), (400, 20), (120, 5), (120, 1))
"""Characters of a text and entries of a list, in what has too much in it: the first that suffices."""
MIN_FIELDS = 20
"""Fields of an object inside a row that stay in any case."""
KEPT = frozenset({"freshness"})
ELLIPSIS = "…"

Near = Callable[[str], Span | None]
"""Of an address the part of its text that is nearest to the query in meaning, where that is known."""


def size_of(value: Any) -> int:
    """Characters of a value as JSON."""
    return len(orjson.dumps(value).decode())


def fit(
    body: Mapping[str, Any],
    truncation: Truncation | None,
    arguments: Mapping[str, Any],
    near: Near = lambda uri: None,
) -> dict[str, Any]:
    """The answer, cut to what fits. Without `truncation` its handler makes pages; only what is too large is cut."""
    most = MAX_CHARACTERS - MARGIN
    if truncation is None and size_of(body) <= most:
        return dict(body)
    truncation = truncation or NOTHING_LONG
    query = arguments.get(truncation.query) if truncation.query else None
    rows = {name: part for name, part in body.items() if _is_rows(part)}
    rest = _rest({name: part for name, part in body.items() if name not in rows}, truncation, query, near)
    sized = {name: [_row(row, truncation.of(name), query, near) for row in some] for name, some in rows.items()}
    lists = {name: [row for row, _ in some] for name, some in sized.items()}
    if any(isinstance(some[0], list) and some != lists[name] for name, some in rows.items()):
        rest["truncated"] = True
    sizes = {name: [size + 1 for _, size in some] for name, some in sized.items()}
    kept = _within(lists, sizes, most - size_of(rest))
    fitting = {name: kept[name] if name in kept else rest[name] for name in body} | rest | kept
    count, offset = sum(map(len, kept.values())), arguments.get("offset")
    if count == sum(map(len, rows.values())):
        return fitting
    places = {"shown": count, "next": (offset if isinstance(offset, int) else 0) + count}
    return {**fitting, "more": True, "next": truncation.onward.format_map(places)}


def long_texts(body: Mapping[str, Any], truncation: Truncation) -> Iterator[str]:
    """The addresses of the texts that are shown in part."""
    for name, texts in truncation.texts.items():
        part = body.get(name)
        rows = part if isinstance(part, list) else [part]
        for row in (each for each in rows if isinstance(each, Mapping)):
            for text, template in texts.items():
                if _is_long(row.get(text)) and (uri := uri_of(template, row)) is not None:
                    yield uri


def _is_rows(part: Any) -> bool:
    return isinstance(part, list) and bool(part) and isinstance(part[0], Mapping | list)


def _is_long(value: Any) -> bool:
    return isinstance(value, str) and len(value) > MAX_TEXT


def _row(row: Any, texts: Texts, query: str | None, near: Near) -> tuple[Any, int]:
    """A row with passages in place of its long texts, of at most about MAX_ROW characters; and its size."""
    size = size_of(row)
    if size <= MAX_TEXT:  # then no text in it is longer
        return row, size
    if isinstance(row, Mapping):
        fitting = _squeezed(_with_passages(row, texts, MAX_TEXT, query, near), texts)
    else:
        fitting = _squeezed(row)
    return fitting, size_of(fitting)


def _rest(rest: Mapping[str, Any], truncation: Truncation, query: str | None, near: Near) -> dict[str, Any]:
    """What is not a list of rows: objects that are answered alone, and plain fields."""
    fitting = dict(rest)
    for longest in (MAX_OBJECT_TEXT, MAX_TEXT):
        if size_of(fitting) <= MAX_OBJECTS:
            return fitting
        for name, part in rest.items():
            if isinstance(part, Mapping):
                fitting[name] = _with_passages(part, truncation.of(name), longest, query, near)
    for name, part in fitting.items() if size_of(fitting) > MAX_OBJECTS else ():
        fitting[name] = part if name in KEPT else _squeezed(part, truncation.of(name))
    if any(part != fitting[name] and not isinstance(part, Mapping) for name, part in rest.items()):
        fitting["truncated"] = True
    return fitting


def _with_passages(row: Mapping[str, Any], texts: Texts, longest: int, query: str | None, near: Near) -> dict[str, Any]:
    """The row with a passage, its place and the address of the whole for each text of more than `longest`."""
    changed = dict(row)
    for text, template in texts.items():
        whole = row.get(text)
        if not isinstance(whole, str) or len(whole) <= longest:
            continue
        passage, address = names_of(texts, text)
        uri = uri_of(template, row)
        known = row.get(passage)  # the handler's own search may know better
        nearest = (known["start"], known["end"]) if known else near(uri) if uri else None
        start, end = _fitting(whole, longest, *best_passage(whole, longest, query, nearest))
        changed |= {text: whole[start:end], passage: {"start": start, "end": end}, "truncated": True}
        if uri is not None:
            changed[address] = uri
    return changed


def _fitting(text: str, longest: int, start: int, end: int) -> Span:
    """The passage, shorter where it takes too many characters as JSON."""
    while size_of(text[start:end]) > ESCAPED * longest:
        end = boundary(text, start + (end - start) // 2, start)
    return start, end


def _squeezed(value: Any, texts: Texts = NO_TEXTS) -> Any:
    """The value with shorter texts, lists and objects inside: it takes at most about MAX_ROW characters.

    Texts that have a passage of their own stay, and so do ids, times and names, which are short.
    """
    kept = {*texts, *(name for text in texts for name in names_of(texts, text))}
    cut = _cut(value, MAX_TEXT, sys.maxsize, kept)
    for characters, entries in LEVELS:
        if size_of(cut) <= MAX_ROW:
            break
        cut = _cut(value, characters, entries, kept)
    return {**cut, "truncated": True} if isinstance(cut, dict) and cut != value else cut


def _cut(value: Any, characters: int, entries: int, kept: Collection[str] = ()) -> Any:
    """Texts of at most this many characters, lists and objects of at most this many entries, at any depth."""
    if isinstance(value, str):
        return value if len(value) <= characters else value[: boundary(value, characters)] + ELLIPSIS
    if isinstance(value, list):
        return [_cut(item, characters, entries) for item in value[:entries]]
    if isinstance(value, Mapping):
        return {name: item if name in kept else _inner(item, characters, entries) for name, item in value.items()}
    return value


def _inner(value: Any, characters: int, entries: int) -> Any:
    """As `_cut`, of what lies in an object: no contract names the fields of an object in there."""
    if isinstance(value, Mapping):
        few = list(value.items())[: max(entries, MIN_FIELDS)]
        value = {_cut(name, characters, entries): _inner(item, characters, entries) for name, item in few}
    return _cut(value, characters, entries)


def _within(lists: Mapping[str, list[Any]], sizes: Mapping[str, list[int]], most: int) -> dict[str, list[Any]]:
    """The lists without their last rows, as few as it takes: the largest list gives first, and keeps one.

    `sizes`: of each row, with what stands between two; those of rows that go are taken from it.
    """
    totals = {name: sum(some) for name, some in sizes.items()}
    while sum(totals.values()) > most:
        largest = max(totals, key=lambda name: (len(sizes[name]) > 1, totals[name]))
        if len(sizes[largest]) <= 1:
            break
        totals[largest] -= sizes[largest].pop()
    return {name: rows[: len(sizes[name])] for name, rows in lists.items()}
