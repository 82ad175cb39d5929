"""`thalweg hook EVENT`: hands a client's hook input from stdin to the node. Quick: it imports next to nothing.

It never exits with 2, by which a hook would forbid the client what it is about to do, and never blocks a prompt: with
`--answer` it waits a moment for what the model should know and says nothing where none comes.
At the end of a turn or session its transcript is imported, in a process of its own: the client does not wait for it.
"""

from __future__ import annotations

import json
import socket
import sys
import time
from pathlib import Path
from typing import Any

from streams.errors import ThalwegError
from thalweg.paths import control_path, make_home
from thalweg.settings import load

MAX_INPUT = 8 * 1024 * 1024
TAKEN_S = 10.0
START, START_S = "SessionStart", 1.0
"""Seconds that a session's start waits for an answer at least: nobody has typed yet."""
ANSWER_SHARE = 0.85
"""How much of that the node may use."""
CLAUDE_CODE, CODEX = "claude-code", "codex"
CODEX_TRANSCRIPT = "rollout-"
"""How the names of Codex' transcripts begin, by which its hooks are recognised: their inputs are alike."""
ENDS = ("Stop", "SessionEnd", "PreCompact")
"""The events after which a transcript is imported. At the end of each turn, because what is given with the next prompt
depends on what the session has said."""
USAGE = "usage: thalweg hook EVENT [--answer] [--home DIR] [--namespace NAME], with the hook's JSON on stdin"


def run(arguments: list[str]) -> int:
    """The exit code: 0, whatever becomes of the event, or 1 for arguments that cannot be meant."""
    try:
        event, home, namespace, is_answered = _parse(arguments)
        settings = load({"home": home, "namespace": namespace})
    except (ValueError, ThalwegError) as error:
        return _said(error, 1)
    try:
        body = sys.stdin.buffer.read(MAX_INPUT + 1)
        if len(body) > MAX_INPUT:
            raise ValueError(f"The hook's input is longer than {MAX_INPUT} bytes; it is not recorded.")
        client, transcript = _session(body)
        if transcript is not None and event in ENDS:
            _import(settings.home, client, transcript, settings.namespace)
        request = {"event": event, "client": client, "namespace": settings.namespace}
        if is_answered:
            wait_s = settings.context_wait_s
            _answer(settings.home, request, body, max(wait_s, START_S) if event == START else wait_s)
        else:
            _publish(settings.home, request, body)
    except (ValueError, ThalwegError, OSError) as error:
        return _said(error, 0)
    return 0


def _said(error: Exception, code: int) -> int:
    print(f"thalweg: {getattr(error, 'message', None) or error}", file=sys.stderr)
    return code


def _parse(arguments: list[str]) -> tuple[str, Path | None, str | None, bool]:
    names, options = [], {"--home": "", "--namespace": ""}
    is_answered = "--answer" in arguments
    rest = iter([argument for argument in arguments if argument != "--answer"])
    for argument in rest:
        option, _, value = argument.partition("=")
        if option in options:
            options[option] = value or next(rest, "")
        else:
            names.append(argument)
    if len(names) != 1 or names[0].startswith("-"):
        raise ValueError(USAGE)
    home = options["--home"]
    place = Path(home).expanduser().absolute() if home else None
    return names[0], place, options["--namespace"] or None, is_answered


def _publish(home: Path, request: dict[str, Any], body: bytes) -> None:
    """The event on the log, through the node; it is started when none runs."""
    from thalweg.client.node_process import ensure_node  # a hook that is answered starts no node itself

    ensure_node(home)
    _ask(home, request, body, TAKEN_S)


def _answer(home: Path, request: dict[str, Any], body: bytes, seconds: float) -> None:
    """Print what the client's model should know, in the client's own form.

    Where no node runs, one is started in the background, and takes the event.
    """
    event = request["event"]
    try:
        answer = _ask(home, {**request, "answer": True, "timeout_s": seconds * ANSWER_SHARE}, body, seconds)
    except (FileNotFoundError, ConnectionRefusedError):
        make_home(home)
        _start(home, ["hook", event], request["namespace"], body)
        return
    if answer.get("context"):
        output = {"hookEventName": event, "additionalContext": answer["context"]}
        print(json.dumps({"hookSpecificOutput": output}))


def _ask(home: Path, request: dict[str, Any], body: bytes, within_s: float) -> dict[str, Any]:
    """The node's answer, in this many seconds at most. Raises ValueError with its sentence, OSError without a node."""
    from base64 import b64encode

    line = json.dumps({"command": "hook", **request, "input": b64encode(body).decode()}).encode() + b"\n"
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            received = _exchange(connection, control_path(home), line, within_s)
        except TimeoutError:
            raise ValueError(f"The node did not answer within {within_s:g} s.") from None
    if not received:
        raise ValueError("The node ended before it had taken the event.")
    answer: dict[str, Any] = json.loads(received)
    if not answer.get("ok"):
        raise ValueError(str(answer.get("error")))
    return answer


def _exchange(connection: socket.socket, path: Path, line: bytes, within_s: float) -> bytes:
    """Send one line, give the one that comes back; empty when the other side ends. Raises TimeoutError, OSError."""
    deadline = time.monotonic() + within_s
    connection.settimeout(within_s)
    connection.connect(str(path))
    connection.sendall(line)
    answer = b""
    while not answer.endswith(b"\n"):
        connection.settimeout(max(0.001, deadline - time.monotonic()))
        received = connection.recv(65536)
        if not received:
            return b""
        answer += received
    return answer


def _session(body: bytes) -> tuple[str, Path | None]:
    """Whose session the input is of, and its transcript where it has one.

    Codex names none (null) where it is to keep none. What is wrong with the input the node says.
    """
    try:
        given = json.loads(body)
    except ValueError:
        given = None
    path = given.get("transcript_path", "") if isinstance(given, dict) else ""
    if path is None:
        return CODEX, None
    transcript = Path(path).expanduser() if isinstance(path, str) and path else None
    is_codex = transcript is not None and transcript.name.startswith(CODEX_TRANSCRIPT)
    return CODEX if is_codex else CLAUDE_CODE, transcript


def _import(home: Path, client: str, transcript: Path, namespace: str) -> None:
    """Leave the import of the session's transcript behind."""
    if transcript.is_file():
        make_home(home)
        _start(home, ["import", client, str(transcript), "--json"], namespace, b"")


def _start(home: Path, command: list[str], namespace: str, body: bytes) -> None:
    """Leave a command of ours behind, with this input. What it says goes to hook.log in the data directory."""
    import subprocess
    import tempfile

    with tempfile.TemporaryFile() as given, (home / "hook.log").open("ab") as log:
        given.write(body)
        given.seek(0)
        subprocess.Popen(
            [sys.executable, "-m", "thalweg", *command, "--home", str(home), "--namespace", namespace],
            stdin=given,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
