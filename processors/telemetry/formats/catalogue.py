"""The formats that can be imported, each with the files that belong to it and its reader."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from processors.telemetry.formats import agent_analytics, claude_code, cloudevents, codex, otlp, pi
from processors.telemetry.formats.lines import Mapper
from streams.errors import Refused


class MapperFactory(Protocol):
    """Makes the reader of one file; `name` is the file's name without suffix."""

    def __call__(self, *, namespace: str, name: str, fallback_time: datetime) -> Mapper: ...


@dataclass(frozen=True, slots=True)
class Format:
    """A format: its name on the command line, its file patterns, and its reader.

    `documents`: whether a file may be one document.
    """

    kind: str
    patterns: tuple[str, ...]
    mapper: MapperFactory
    documents: bool = False


_LINES = ("*.jsonl", "*.ndjson")
_ALL = (
    Format("claude-code", ("*.jsonl",), claude_code.Mapper),
    Format("codex", ("*.jsonl",), codex.Mapper),
    Format("pi", ("*.jsonl",), pi.Mapper),
    Format("otlp-json", (*_LINES, "*.json"), otlp.Mapper, documents=True),
    Format("cloudevents", (*_LINES, "*.json"), cloudevents.Mapper, documents=True),
    Format("agent-analytics", _LINES, agent_analytics.Mapper),
)
FORMATS: Mapping[str, Format] = {format.kind: format for format in _ALL}


def format_of(kind: str) -> Format:
    """The format of this name. Raises Refused."""
    found = FORMATS.get(kind)
    if found is None:
        raise Refused(f"The kind {kind!r} cannot be imported; choose one of {', '.join(sorted(FORMATS))}.")
    return found
