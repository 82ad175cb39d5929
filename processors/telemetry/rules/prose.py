"""What people and agents said to each other, of one event of a session.

Left out is what no one said: output and input of tools, thinking, attachments, system prompts and reminders, request
bodies, what hooks report, interruptions, commands, project instructions and environments that a program puts before a
prompt, and base64. A text that repeats what another event says (Codex writes most texts twice) is left out as well.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

HUMAN, MODEL = "user", "assistant"
MAX_PROSE = 100_000
"""Characters of one turn that are searched; the event has all of it."""
_SYNTHETIC = "<synthetic>"


class Prose(NamedTuple):
    """`role`: of the speaker, a person (`user`) or a model (`assistant`). `identity`: of the message, in its agent."""

    role: str
    text: str
    identity: str


def prose_of(event_id: str, data: Mapping[str, Any]) -> Prose | None:
    """What was said in a session event with this id and data; None where nothing was."""
    session, payload = data.get("session"), data.get("payload")
    agent = session.get("agent") if isinstance(session, dict) else None
    identity = None
    if isinstance(agent, str) and agent in _READERS and isinstance(payload, dict):
        said = _READERS[agent](payload)
        identity = _inner(payload).get("uuid") if data.get("event_type") == "progress" else None
    else:
        said = _of_any_agent(data)
    if said is None:
        return None
    role, texts = said
    text = "\n\n".join(cleaned for part in texts if (cleaned := clean(part, role)))[:MAX_PROSE]
    return Prose(role, text, identity if isinstance(identity, str) and identity else event_id) if text else None


# --- what each agent writes

_Said = tuple[str, list[str]]


def _of_claude_code(entry: Mapping[str, Any]) -> _Said | None:
    """Messages, and summaries. What is marked as meta was written by the program."""
    kind = entry.get("type")
    if kind == "summary":
        return MODEL, _texts(entry.get("summary"))
    is_agents = entry.get("isSidechain") is True
    if kind == "progress":
        entry, is_agents = _inner(entry), True
        kind = entry.get("type")
    if kind not in (HUMAN, MODEL) or entry.get("isMeta") or entry.get("isApiErrorMessage"):
        return None
    body = entry.get("message")
    message = body if isinstance(body, dict) else {"content": body}
    if message.get("model") == _SYNTHETIC:
        return None
    # a sub-agent is told what to do by a model, and a compaction is a model's summary
    role = MODEL if kind == MODEL or is_agents or entry.get("isCompactSummary") else HUMAN
    return role, _texts(message.get("content"))


def _inner(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """The message of a sub-agent that a line of its parent's session shows."""
    shown = entry.get("data")
    message = shown.get("message") if isinstance(shown, dict) and shown.get("type") == "agent_progress" else None
    return message if isinstance(message, dict) else {}


def _of_codex(entry: Mapping[str, Any]) -> _Said | None:
    """The items that the model was given or gave; an `event_msg` shows them again."""
    kind, payload = entry.get("type"), entry.get("payload")
    if kind == "compacted":
        return MODEL, _texts(payload.get("message") if isinstance(payload, dict) else entry.get("message"))
    item = payload if kind == "response_item" and isinstance(payload, dict) else entry
    if item.get("type") != "message" or item.get("role") not in (HUMAN, MODEL):
        return None
    return item["role"], _texts(item.get("content"))


def _of_pi(entry: Mapping[str, Any]) -> _Said | None:
    """Messages, and summaries of branches and compactions."""
    body = entry.get("message")
    message: Mapping[str, Any] = body if isinstance(body, dict) else {}
    role = message.get("role")
    if role in (HUMAN, MODEL):
        return role, _texts(message.get("content"))
    return MODEL, _texts(entry.get("summary") or message.get("summary"))


def _of_any_agent(data: Mapping[str, Any]) -> _Said | None:
    """A message of an agent that sends events of its own: its role and text, where it is not a tool's."""
    if data.get("role") not in (HUMAN, MODEL) or data.get("tool_results"):
        return None
    return data["role"], _texts(data.get("text"))


_READERS = {"claude-code": _of_claude_code, "codex": _of_codex, "pi": _of_pi}
_TEXT_BLOCKS = ("text", "input_text", "output_text")


def _texts(content: Any) -> list[str]:
    """The text blocks of a content, which may be one text. Thinking, tools and images are other blocks."""
    if isinstance(content, str):
        return [content]
    found = [
        block.get("text") if isinstance(block, dict) and block.get("type") in _TEXT_BLOCKS else block
        for block in (content if isinstance(content, list) else ())
    ]
    return [text for text in found if isinstance(text, str)]


# --- what a program put into a text

_NAMES = (
    r"system-reminder|command-(?:name|message|contents)|local-command-[\w-]+|bash-(?:input|stdout|stderr)|ide_\w+"
    r"|user-prompt-submit-hook|[\w-]+-hook|task-notification|environment_context|user_instructions"
    r"|permissions(?: instructions)?|collaboration_mode|turn_aborted|INSTRUCTIONS|skill|subagent_notification"
    r"|user_shell_command|apps_instructions|skills_instructions|plugins_instructions|model_switch"
)
_BLOCK = re.compile(rf"<({_NAMES})(?:\s[^<>]*)?>.*?</\1>", re.DOTALL)
_ARGUMENTS = re.compile(r"</?command-args>")
_NOISE = re.compile(
    r"\s*(?:# AGENTS\.md instructions|Caveat: The messages below|\[Request interrupted"
    rf"|API Error: |<(?:{_NAMES})[\s>]|(?:\(no content\)|No response requested\.|Warmup)\s*\Z)"
)
_IDE_CONTEXT = re.compile(r"\A# Context from my IDE setup:.*?^## My request for Codex:\s*", re.DOTALL | re.MULTILINE)
_ENCODED = re.compile(r"(?:data:[\w/+.-]+;base64,)?[A-Za-z0-9+/=_-]{240,}")


def clean(text: str, role: str) -> str:
    """A text without what a program put into it; empty where nothing is left.

    Arguments of a command are a person's words, its name is not.
    """
    if role == HUMAN:
        if "<" in text:
            text = _ARGUMENTS.sub("", _BLOCK.sub("", text))
        text = _IDE_CONTEXT.sub("", text)
    if _NOISE.match(text):
        return ""
    if len(text) >= 240 and max(map(len, text.split()), default=0) >= 240:  # a tenth of the pattern's own time
        text = _ENCODED.sub("", text)
    return text.strip()
