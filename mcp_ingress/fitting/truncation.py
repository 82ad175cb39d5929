"""What of an answer may be long: which texts, where each is whole, how to ask for what did not fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

MEMORY_URI = "thalweg://memory"
Texts = Mapping[str, str]
"""Field of a row -> the id of the memory that has the text whole, made of fields of the row: `{id}`, `l2-{id}`.

`{id}?field=summary` is another text than the memory's own. The first field is the row's own text.
"""
NO_TEXTS: Texts = {}
ASK_FOR_LESS = "Only {shown} fit into one answer: ask for fewer, or for something narrower."

_PLACE = {"type": "integer", "minimum": 0}
PASSAGE_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "description": "The characters of the whole text that are shown, from start (inclusive) to end (exclusive)",
    "properties": {"start": _PLACE, "end": _PLACE},
    "required": ["start", "end"],
}
_TRUNCATED = {"type": "boolean", "description": "Something of it is not shown."}
WHOLE_SCHEMA: Mapping[str, Any] = {"type": "string", "description": "The resource that has the whole text."}


@dataclass(frozen=True)
class Truncation:
    """The parts of an answer whose texts have an address, and the sentence for what is left out.

    `texts`: field of the answer (a list of rows, or an object) -> its texts. `query`: the argument by which passages
    are chosen. `onward`: how to ask on; `{shown}` is how many rows the answer has, `{next}` the offset behind them.
    """

    texts: Mapping[str, Texts] = field(default_factory=dict)
    query: str | None = None
    onward: str = ASK_FOR_LESS

    def of(self, part: str) -> Texts:
        """The texts of a field of the answer."""
        return self.texts.get(part, NO_TEXTS)


NOTHING_LONG = Truncation()
"""Of an answer without texts of memories."""


def uri_of(template: str, row: Mapping[str, Any]) -> str | None:
    """The address of the whole text of a row; None while the row has no id."""
    memory, _, rest = template.partition("?")
    try:
        named = memory.format_map(row)
    except KeyError:
        return None
    return f"{MEMORY_URI}/{quote(named, safe='')}{'?' if rest else ''}{rest}"


def names_of(texts: Iterable[str], text: str) -> tuple[str, str]:
    """The fields that hold the place and the address of a text: of a row's own text `passage` and `whole`."""
    return ("passage", "whole") if text == next(iter(texts), None) else (f"{text}_passage", f"{text}_whole")


def with_truncation(schema: Mapping[str, Any], truncation: Truncation | None) -> dict[str, Any]:
    """An output schema with the fields that an answer has where something of it is left out."""
    if truncation is None or not truncation.texts:
        return dict(schema)
    more = {
        "more": {"type": "boolean", "description": "Not all rows fit; `next` says how to ask on."},
        "next": {"type": "string"},
    }
    properties = {
        name: _with_texts(part, truncation.of(name)) if name in truncation.texts else part
        for name, part in schema["properties"].items()
    }
    return {**schema, "properties": {**properties, **more}}


def _with_texts(schema: Mapping[str, Any], texts: Texts) -> dict[str, Any]:
    """The schema of an object, of a list of objects, or of one that may be null."""
    if "items" in schema:
        return {**schema, "items": _with_texts(schema["items"], texts)}
    if "anyOf" in schema:
        return {**schema, "anyOf": [_with_texts(one, texts) for one in schema["anyOf"]]}
    if "properties" not in schema:
        return dict(schema)
    fields: dict[str, Any] = {"truncated": _TRUNCATED}
    for text in texts:
        passage, whole = names_of(texts, text)
        fields |= {passage: PASSAGE_SCHEMA, whole: WHOLE_SCHEMA}
    return {**schema, "properties": {**schema["properties"], **fields}}
