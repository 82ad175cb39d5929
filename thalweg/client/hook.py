"""`thalweg hook EVENT`: hands a client's hook input from stdin to the node. Quick: it imports next to nothing.

It never exits with 2, by which a hook would forbid the client what it is about to do: 0, or 1 with a sentence.
At the end of a session its transcript is imported, in a process of its own, because the client does not wait for it.
"""

from __future__ import annotations

import base64
import json
import socket
import subprocess
import sys
from pathlib import Path

from streams.errors import ThalwegError
from thalweg.client.node_process import ensure_node
from thalweg.paths import control_path
from thalweg.settings import load

MAX_INPUT = 8 * 1024 * 1024
ANSWER_S = 10.0
ENDS = ("SessionEnd", "PreCompact")
USAGE = "usage: thalweg hook EVENT [--home DIR] [--namespace NAME], with the hook's JSON on stdin"


def run(arguments: list[str]) -> int:
    """The exit code: 0, or 1 when the event is not on the log."""
    try:
        event, home, namespace = _parse(arguments)
        body = sys.stdin.buffer.read(MAX_INPUT + 1)
        if len(body) > MAX_INPUT:
            raise ValueError(f"The hook's input is longer than {MAX_INPUT} bytes.")
        settings = load({"home": home, "namespace": namespace})
        _publish(settings.home, event, body, settings.namespace)
        if event in ENDS:
            _import(settings.home, body, settings.namespace)
    except (ValueError, ThalwegError, OSError) as error:
        print(f"thalweg: {getattr(error, 'message', None) or error}", file=sys.stderr)
        return 1
    return 0


def _parse(arguments: list[str]) -> tuple[str, Path | None, str | None]:
    names, options = [], {"--home": "", "--namespace": ""}
    rest = iter(arguments)
    for argument in rest:
        option, _, value = argument.partition("=")
        if option in options:
            options[option] = value or next(rest, "")
        else:
            names.append(argument)
    if len(names) != 1 or names[0].startswith("-"):
        raise ValueError(USAGE)
    home = options["--home"]
    return names[0], Path(home).expanduser().absolute() if home else None, options["--namespace"] or None


def _publish(home: Path, event: str, body: bytes, namespace: str) -> None:
    """The event on the log, through the node; it is started when none runs."""
    ensure_node(home)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(ANSWER_S)
        connection.connect(str(control_path(home)))
        request = {"command": "hook", "event": event, "namespace": namespace}
        connection.sendall(json.dumps({**request, "input": base64.b64encode(body).decode()}).encode() + b"\n")
        with connection.makefile("rb") as lines:
            line = lines.readline()
    if not line:
        raise ValueError("The node ended before it had taken the event.")
    answer = json.loads(line)
    if not answer.get("ok"):
        raise ValueError(str(answer.get("error")))


def _import(home: Path, body: bytes, namespace: str) -> None:
    """Leave the import of the session's transcript behind. What it says goes to hook.log in the data directory."""
    path = json.loads(body).get("transcript_path")
    if not isinstance(path, str) or not Path(path).expanduser().is_file():
        return
    command = [sys.executable, "-m", "thalweg", "import", "claude-code", str(Path(path).expanduser()), "--json"]
    with (home / "hook.log").open("ab") as log:
        subprocess.Popen(
            [*command, "--home", str(home), "--namespace", namespace],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
