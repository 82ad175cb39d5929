"""The documents of the topics, AsyncAPI 3.0 and docs/topics.md, generated from topics and event types.

`python -m streams.asyncapi` writes docs/asyncapi.json and docs/topics.md; a test compares them with what is generated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from streams.events import CONNECTION, EventType, event_types
from streams.topics import DERIVED, MEMORY, SOURCES, TELEMETRY, Topic

DOCS = Path(__file__).parents[1] / "docs"
WRITABLE = (MEMORY, TELEMETRY)
"""Topics that other producers may write; the others are the program's own."""

_TEXT = {"type": "string", "minLength": 1, "maxLength": 512}
_KEY = {"type": "string", "minLength": 1, "maxLength": 128, "description": "The namespace. It chooses the partition."}
_CONNECTION = {
    "type": "string",
    "maxLength": 512,
    "description": "What is written over one connection, in no session, belongs together by time; "
    "`documents.connection`.",
}
_OPTIONAL_HEADERS = {
    "ce_time": {
        "type": "string",
        "format": "date-time",
        "description": "When it happened; without it, when it was appended.",
    },
    "ce_subject": {"type": "string", "maxLength": 512},
    f"ce_{CONNECTION}": _CONNECTION,
    "ce_traceparent": {"type": "string", "description": "W3C trace context of the origin; `events.traceparent`."},
    "traceparent": {
        "type": "string",
        "description": "W3C trace context of the hop; that of the origin where there is no other.",
    },
}
_DLQ_HEADERS = {
    "dlq.topic": "topic of the record",
    "dlq.partition": "its partition",
    "dlq.offset": "its offset",
    "dlq.group": "consumer group that read it",
    "dlq.stage": "stage that failed on it",
    "dlq.attempt": "number of attempts",
    "dlq.error.type": "class of the error",
    "dlq.error.message": "what was wrong, at most 2,000 characters",
    "dlq.first_failed_at": "RFC 3339, UTC",
    "dlq.index": "place of the observation in the record's array; it is a dead letter by itself",
}


def asyncapi_document() -> dict[str, Any]:
    """The AsyncAPI 3.0 document of every topic, its messages and their schemas."""
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "thalweg",
            "version": "1.0.0",
            "description": "Agents' memory and telemetry as records of a log: "
            "CloudEvents 1.0.2, Kafka binary mode, key = namespace. Structured mode is read too. "
            "Change within a major version is additive; unknown fields are kept.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "channels": {channel.name: _channel(channel) for topic in SOURCES for channel in (topic, topic.dlq)},
        "operations": dict(_operations()),
        "components": {
            "messages": {kind.type: _message(kind) for kind in event_types().values()}
            | {"dead_letter": _dead_letter()},
            "schemas": {kind.type: dict(kind.schema) for kind in event_types().values()},
        },
    }


def _types_of(topic: Topic) -> list[EventType]:
    return [kind for kind in event_types().values() if kind.topic == topic.name]


def _channel(topic: Topic) -> dict[str, Any]:
    names = [kind.type for kind in _types_of(topic)] or ["dead_letter"]
    return {
        "address": topic.name,
        "description": f"{topic.carries}. Key: {topic.key}. Retention: {topic.retention}.",
        "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in names},
        "bindings": {"kafka": {"topic": topic.name, "partitions": topic.partitions, "bindingVersion": "0.5.0"}},
    }


def _operations() -> Iterator[tuple[str, dict[str, Any]]]:
    """The operations: `receive` for what the program reads, `send` for what it writes."""
    for topic in SOURCES:
        for channel in (topic, topic.dlq):
            for action in ("receive", "send"):
                summary = f"{'Reads' if action == 'receive' else 'Writes'} {channel.name}."
                yield (
                    f"{action}:{channel.name}",
                    {"action": action, "channel": {"$ref": f"#/channels/{channel.name}"}, "summary": summary},
                )


def _message(kind: EventType) -> dict[str, Any]:
    ours = {
        "content-type": {"const": "application/json"},
        "ce_specversion": {"const": "1.0"},
        "ce_id": {**_TEXT, "description": "With ce_source the identity under which it is applied once."},
        "ce_source": _TEXT,
        "ce_type": {"const": kind.type},
    }
    if kind.topic == DERIVED.name:
        ours |= {
            "ce_thalwegstage": {**_TEXT, "description": "On a record that carries a progress mark: the stage."},
            "ce_thalwegsource": {
                **_TEXT,
                "description": "topic/partition/next offset, comma-separated: everything below is processed.",
            },
        }
    required = ["ce_id", "ce_source", "ce_type"]
    return {
        "name": kind.type,
        "summary": kind.summary,
        "contentType": "application/json",
        "headers": {
            "type": "object",
            "properties": ours | _OPTIONAL_HEADERS,
            "required": required,
            "additionalProperties": True,
        },
        "payload": {"anyOf": [{"$ref": f"#/components/schemas/{kind.type}"}, _observations(kind)]},
        "bindings": {"kafka": {"key": _KEY, "bindingVersion": "0.5.0"}},
    }


def _observations(kind: EventType) -> dict[str, Any]:
    """The schema of many observations as one record; what one leaves out comes from the record's headers."""
    properties = {
        "id": {**_TEXT, "description": "Without it: the record's id, a slash and the place in the array."},
        "time": {"type": "string", "format": "date-time"},
        "subject": {"type": "string", "maxLength": 512},
        CONNECTION: _CONNECTION,
        "type": {
            "const": kind.type,
            "description": "May be another type of the same topic; `data` is then of that type.",
        },
        "data": {"$ref": f"#/components/schemas/{kind.type}"},
    }
    return {"type": "array", "items": {"type": "object", "properties": properties, "required": ["data"]}}


def _dead_letter() -> dict[str, Any]:
    headers = {name: {"type": "string", "description": meaning} for name, meaning in _DLQ_HEADERS.items()}
    return {
        "name": "dead_letter",
        "summary": "A record that could not be applied: its own key, value and headers, and headers that say why.",
        "contentType": "application/octet-stream",
        "headers": {
            "type": "object",
            "properties": headers,
            "required": [name for name in headers if name != "dlq.index"],
            "additionalProperties": True,
        },
        "payload": {"description": "The original bytes; in text, secrets of a known form are redacted."},
    }


def topics_page() -> str:
    """docs/topics.md: what each topic carries, and the fields of each event type."""
    lines = [
        "# Topics and event types",
        "",
        "Generated from `streams/topics.py` and `streams/event_types/` by `python -m streams.asyncapi`; "
        "[asyncapi.json](asyncapi.json) has the full schemas.",
        "Records are CloudEvents 1.0.2, Kafka binary mode (structured mode is read too); the key is the namespace. "
        "`ce_id` and `ce_source` together identify an event, which is applied once.",
        "The value is the event's data, or an array of observations `{id, time, subject, type, data}`; what an "
        "observation leaves out comes from the record's headers. One that cannot be applied becomes a dead letter by "
        "itself; the others are applied.",
        "",
        "| topic | carries | key | partitions | retention | written by |",
        "|---|---|---|---|---|---|",
    ]
    for topic in SOURCES:
        by = "the program and other producers" if topic in WRITABLE else "the program"
        lines.append(
            f"| `{topic.name}` | {topic.carries} | {topic.key} | {topic.partitions} | {topic.retention} | {by} |"
        )
    dlq = MEMORY.dlq
    carries = dlq.carries.replace(MEMORY.name, "the topic")
    lines.append(f"| `<topic>.dlq` | {carries} | {dlq.key} | as the topic | {dlq.retention} | the program |")
    for topic in SOURCES:
        lines += ["", f"## {topic.name}", "", "| type | what happened | needs | may have |", "|---|---|---|---|"]
        for kind in _types_of(topic):
            required, optional = (" ".join(_fields(kind.schema, needed)) for needed in (True, False))
            lines.append(f"| `{kind.type}` | {kind.summary} | {required} | {optional} |")
    headers = ", ".join(f"`{name}`" for name in _DLQ_HEADERS)
    lines += ["", "## Dead letters", "", "The original key, value and headers, and besides them " + headers + "."]
    return "\n".join(lines) + "\n"


def _fields(schema: Mapping[str, Any], required: bool) -> list[str]:
    needed = schema.get("required", [])
    return [f"`{name}`" for name in schema.get("properties", {}) if (name in needed) is required]


def documents() -> dict[str, bytes]:
    """The contents of the generated documents, by file name."""
    json = orjson.dumps(asyncapi_document(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    return {"asyncapi.json": json, "topics.md": topics_page().encode()}


def main() -> None:
    """Write the documents."""
    for name, content in documents().items():
        (DOCS / name).write_bytes(content)


if __name__ == "__main__":
    main()
