"""What all readers of transcripts share: parsing a line safely, and taking plain values from it.

A reader never skips: a line becomes events, or an `Unreadable` with the reason. Texts come out fit for the codec:

- secrets of a known form are replaced by a mark (`streams.redaction`);
- a lone surrogate, a NUL character or a byte that is not UTF-8 becomes U+FFFD, the replacement character;
- `NaN` and infinities become null, integers past 64 bits become floating-point numbers;
- the bytes of large images become `{"omitted_bytes": n}`.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

import orjson

from streams.clock import parse_time
from streams.events import Event
from streams.redaction import redact_json

MAX_GOAL = 200
MAX_TEXT = 100_000
"""Characters of a line's text that go into `text`; the payload has all of it."""
MIN_OMITTED = 1024
MAX_IDENTIFIER = 512
MAX_COUNT = 2**53
_UNFIT = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A line, or a part of a document, that cannot become an event: its bytes as they were, and why."""

    line_number: int
    raw: bytes
    reason: str


Mapped = Event | Unreadable


class Mapper(Protocol):
    """Reads one file. Built anew for each; holds no more of it than its identity rules need."""

    def line(self, number: int, raw: bytes) -> Sequence[Mapped]:
        """What this line gives, and earlier lines that waited for it. `raw` is without line end, `number` from 1."""
        ...

    def end(self) -> Sequence[Mapped]:
        """What still waited when the file ended."""
        ...


def read_json(number: int, raw: bytes) -> Any:
    """The value of a line, cleaned as the module says, or an `Unreadable`."""
    cleaned = redact_json(raw)
    try:
        value = orjson.loads(cleaned)
        if b"\\u0000" in cleaned:
            value = fit(value)
    except (orjson.JSONDecodeError, RecursionError):
        try:
            value = fit(json.loads(cleaned.decode("utf-8-sig", "replace"), parse_constant=lambda _: None))
            orjson.dumps(value)
        except (ValueError, TypeError, RecursionError) as error:
            is_cut = raw.lstrip()[:1] == b"{" and raw.rstrip()[-1:] != b"}"
            return Unreadable(number, raw, f"not JSON{', the line is cut off' if is_cut else ''}: {str(error)[:200]}")
    if len(raw) > MIN_OMITTED and (b"base64" in raw or b'"image' in raw):
        return without_images(value)
    return value


def read_object(number: int, raw: bytes) -> dict[str, Any] | Unreadable:
    """The object on a line, or an `Unreadable` that says what stands there instead."""
    value = read_json(number, raw)
    if isinstance(value, (dict, Unreadable)):
        return value
    return Unreadable(number, raw, f"JSON, but {_KINDS.get(type(value), 'a value')}, not an object")


_KINDS = {str: "a string", int: "a number", float: "a number", bool: "a boolean", list: "an array", type(None): "null"}


def fit(value: Any) -> Any:
    """The same value with nothing in it that the codec refuses."""
    if isinstance(value, str):
        return _UNFIT.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_UNFIT.sub("\ufffd", name): fit(item) for name, item in value.items()}
    if isinstance(value, list):
        return [fit(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return float(value) if abs(value) < 10**300 else None
    return value


def without_images(value: Any) -> Any:
    """The same value, with the bytes of images replaced by how many characters they were."""
    if isinstance(value, dict):
        is_image = value.get("type") in ("base64", "image") or "mimeType" in value or "media_type" in value
        return {name: _omitted(name, item, is_image) for name, item in value.items()}
    if isinstance(value, list):
        return [without_images(item) for item in value]
    if isinstance(value, str) and len(value) > MIN_OMITTED and value.startswith("data:") and ";base64," in value[:100]:
        return {"omitted_bytes": len(value)}
    return value


def _omitted(name: str, item: Any, is_image: bool) -> Any:
    if isinstance(item, str) and len(item) > MIN_OMITTED and (name == "base64" or (is_image and name == "data")):
        return {"omitted_bytes": len(item)}
    return without_images(item)


def fingerprint(raw: bytes) -> str:
    """A name for a line's content, for lines that have no id of their own."""
    return hashlib.blake2b(raw.strip(), digest_size=16).hexdigest()


def moment(value: Any) -> datetime | None:
    """An aware time from RFC 3339 text or from seconds or milliseconds since 1970. None when it is neither."""
    try:
        if isinstance(value, str):
            return parse_time(value)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1000 if value > 1e11 else value, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None


def identifier(value: Any) -> str | None:
    """A text that may be an id: not empty, not longer than an id may be."""
    return value if isinstance(value, str) and 0 < len(value) <= MAX_IDENTIFIER else None


def filled(value: Any) -> str | None:
    """A text that is not empty."""
    return value if isinstance(value, str) and value else None


def count(value: Any) -> int | None:
    """A whole number of something: not negative, and small enough for a column."""
    return value if type(value) is int and 0 <= value < MAX_COUNT else None


def number(value: Any) -> float | None:
    """A finite number that is not negative."""
    return value if type(value) in (int, float) and 0 <= value < 1e15 else None


def milliseconds(start: datetime | None, end: datetime) -> float | None:
    """How long it took; None when the start is not known or lies after the end."""
    if start is None or end < start:
        return None
    return (end - start).total_seconds() * 1000


def joined(parts: Iterable[str]) -> str | None:
    """Texts as one, at most MAX_TEXT characters; None when there is none."""
    text = "\n".join(part for part in parts if part)
    return text[:MAX_TEXT] or None


_NOT_A_GOAL = re.compile(
    r"\s*(?:<(?:command-|local-command-|system-reminder|bash-|ide_|user-prompt-submit-hook|task-notification"
    r"|environment_context|user_instructions|permissions|turn_aborted|INSTRUCTIONS)"
    r"|# AGENTS\.md instructions|Caveat: The messages below"
    r"|\[Request interrupted|This session is being continued from|/[\w:-]+\s*$)"
)


def goal(text: str | None) -> str | None:
    """The first 200 characters of what a person asked, as one line. None for what the program itself put there."""
    if not text or _NOT_A_GOAL.match(text):
        return None
    line = " ".join(text[: 5 * MAX_GOAL].split())
    return line if len(line) <= MAX_GOAL else line[: MAX_GOAL - 1] + "…"
