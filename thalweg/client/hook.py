"""`thalweg hook EVENT`: hands a client's hook input from stdin to the node. Quick: it imports next to nothing.

It never exits with 2, by which a hook would forbid the client what it is about to do, and never blocks a prompt: with
`--answer` it waits a moment for what the model should know and says nothing where none comes.
At the end of a session its transcript is imported, in a process of its own, because the client does not wait for it.
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
ANSWER_S = {"SessionStart": 1.0}
PROMPT_ANSWER_S = 0.4
"""Seconds in all that a client waits for an answer: longer at a session's start, nobody has typed yet."""
ANSWER_SHARE = 0.85
"""How much of that the node may use."""
ENDS = ("SessionEnd", "PreCompact")
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
        if event in ENDS:
            _import(settings.home, body, settings.namespace)
        if is_answered:
            _answer(settings.home, event, body, settings.namespace)
        else:
            _publish(settings.home, event, body, settings.namespace)
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


def _publish(home: Path, event: str, body: bytes, namespace: str) -> None:
    """The event on the log, through the node; it is started when none runs."""
    from thalweg.client.node_process import ensure_node  # a hook that is answered starts no node itself

    ensure_node(home)
    _ask(home, event, body, namespace, TAKEN_S)


def _answer(home: Path, event: str, body: bytes, namespace: str) -> None:
    """Print what the client's model should know, in the client's own form.

    Where no node runs, one is started in the background, and takes the event.
    """
    seconds = ANSWER_S.get(event, PROMPT_ANSWER_S)
    try:
        answer = _ask(home, event, body, namespace, seconds, answer=True, timeout_s=seconds * ANSWER_SHARE)
    except (FileNotFoundError, ConnectionRefusedError):
        make_home(home)
        _start(home, ["hook", event], namespace, body)
        return
    if answer.get("context"):
        output = {"hookEventName": event, "additionalContext": answer["context"]}
        print(json.dumps({"hookSpecificOutput": output}))


def _ask(home: Path, event: str, body: bytes, namespace: str, within_s: float, **more: Any) -> dict[str, Any]:
    """The node's answer, in this many seconds at most. Raises ValueError with its sentence, OSError without a node."""
    from base64 import b64encode

    request = {"command": "hook", "event": event, "namespace": namespace, "input": b64encode(body).decode(), **more}
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            line = _exchange(connection, control_path(home), json.dumps(request).encode() + b"\n", within_s)
        except TimeoutError:
            raise ValueError(f"The node did not answer within {within_s:g} s.") from None
    if not line:
        raise ValueError("The node ended before it had taken the event.")
    answer: dict[str, Any] = json.loads(line)
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


def _import(home: Path, body: bytes, namespace: str) -> None:
    """Leave the import of the session's transcript behind."""
    try:
        given = json.loads(body)
    except ValueError:
        return  # the node says what is wrong with it
    path = given.get("transcript_path") if isinstance(given, dict) else None
    if isinstance(path, str) and Path(path).expanduser().is_file():
        make_home(home)
        _start(home, ["import", "claude-code", str(Path(path).expanduser()), "--json"], namespace, b"")


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
