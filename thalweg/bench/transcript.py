"""A made-up Claude Code transcript: people's lines, answers with usage, tool calls and their results."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson

from streams.clock import format_time
from thalweg.bench.scratch import texts

LINES_A_SESSION = 500
START = datetime(2026, 3, 1, tzinfo=UTC)


def write_transcript(path: Path, lines: int) -> None:
    """`lines` lines, of about 700 bytes, in sessions of LINES_A_SESSION."""
    with path.open("wb") as file:
        for line in _lines(lines):
            file.write(orjson.dumps(line) + b"\n")


def _lines(count: int) -> Iterator[dict[str, Any]]:
    entries = texts(count)
    for number in range(count):
        session = str(uuid.UUID(int=number // LINES_A_SESSION, version=4))
        yield {
            "parentUuid": str(uuid.UUID(int=2**64 + number - 1, version=4)) if number % LINES_A_SESSION else None,
            "isSidechain": False,
            "userType": "external",
            "cwd": "/home/ana/src/tidewatch",
            "sessionId": session,
            "version": "2.1.12",
            "uuid": str(uuid.UUID(int=2**64 + number, version=4)),
            "timestamp": format_time(START + timedelta(seconds=number)),
            **_turn(number, entries[number]),
        }


def _turn(number: int, text: str) -> dict[str, Any]:
    """In turn: a person, an answer, a tool call, its result."""
    match number % 4:
        case 0:
            return {"type": "user", "message": {"role": "user", "content": text}}
        case 1:
            return _answer(number, {"type": "text", "text": text})
        case 2:
            return _answer(
                number,
                {
                    "type": "tool_use",
                    "id": f"toolu_{number}",
                    "name": "Bash",
                    "input": {"command": f"grep -rn '{text}' src"},
                },
            )
        case _:
            result = {
                "type": "tool_result",
                "tool_use_id": f"toolu_{number - 1}",
                "content": text * 3,
                "is_error": number % 40 == 3,
            }
            return {"type": "user", "message": {"role": "user", "content": [result]}}


def _answer(number: int, block: dict[str, Any]) -> dict[str, Any]:
    usage = {
        "input_tokens": 6,
        "output_tokens": 40 + number % 60,
        "cache_read_input_tokens": 11_873,
        "cache_creation_input_tokens": 210,
    }
    message = {
        "model": "claude-opus-4-1",
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "content": [block],
        "usage": usage,
    }
    return {"type": "assistant", "requestId": f"req_{number}", "message": message}
