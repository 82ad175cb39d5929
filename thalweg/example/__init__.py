"""The example that `thalweg demo` imports: a coding agent's session in Claude Code's format."""

from pathlib import Path


def session_path() -> Path:
    """The file of the example session; its last line is cut off on purpose, as after a crash."""
    return Path(__file__).with_name("session.jsonl")
