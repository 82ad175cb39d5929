"""The bundled example: one session of a coding agent in Claude Code's format, which `thalweg demo` imports."""

from pathlib import Path


def session_path() -> Path:
    """The file of the example session; its last line is cut off on purpose, as after a crash."""
    return Path(__file__).with_name("session.jsonl")
