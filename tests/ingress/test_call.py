"""`thalweg call`: one call of a tool from a shell, on the real server."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from mcp_ingress.server import build_server
from mcp_ingress.socket import SocketServer
from streams.clock import SystemClock
from streams.topics import TELEMETRY
from tests.ingress.parts import events_on, opened_door, opened_log
from tests.ingress.test_pump import end_nodes, node_command, started
from tests.ingress.tools import strict_tools
from thalweg.client.pump import MAX_LINE, MAX_SENDS
from thalweg.paths import socket_path

ROOT = Path(__file__).parents[2]
ANOTHER_NODE = (
    "import json, sys; from thalweg.client import call; node = json.loads(sys.argv[1]); "
    "call.node_command = lambda home: node; sys.exit(call.run(sys.argv[2:]))"
)


class Said:
    """What a call ended with."""

    def __init__(self, code: int, out: bytes, err: bytes) -> None:
        self.code, self.out, self.err = code, out, err.decode()

    @property
    def answer(self) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self.out)
        return answer

    @property
    def sentence(self) -> str:
        assert "Traceback" not in self.err, self.err
        first, *rest = self.err.splitlines()
        assert first.startswith("thalweg: ") and not rest, self.err
        return first.removeprefix("thalweg: ")


async def said(command: list[str], given: bytes = b"") -> Said:
    own = {name: value for name, value in os.environ.items() if not name.startswith("THALWEG_")}
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**own, "PYTHONPATH": str(ROOT)},
    )
    out, err = await process.communicate(given)
    assert process.returncode is not None
    return Said(process.returncode, out, err)


async def call(home: Path, *arguments: str, given: bytes = b"") -> Said:
    return await said([sys.executable, "-m", "thalweg", "call", *arguments, "--home", str(home)], given)


@asynccontextmanager
async def serving(home: Path) -> AsyncIterator[Path]:
    async with opened_door(home, inventory=strict_tools()) as door:
        server = SocketServer(socket_path(home), build_server(door, "0"), SystemClock(), door)
        await server.start()
        try:
            yield home
        finally:
            await server.stop()


async def test_the_tools_object_is_printed_as_json_with_every_sign_of_its_text(tmp_path: Path) -> None:
    text = 'it\'s "so"\n\tC:\\temp $HOME `id` 你好 é 🙂'
    async with serving(tmp_path) as home:
        shell = await call(home, "echo", json.dumps({"text": text}, ensure_ascii=False))
        assert (shell.code, shell.err, shell.answer["arguments"]["text"]) == (0, "", text)
        assert "你好" in shell.out.decode(), "a reader of the terminal sees words, no escapes"
        half = await call(home, "echo", "-", given=b'{"text": "\\ud83d"}')
        assert half.code != 0 and half.sentence == half.answer["message"], "the node says what is wrong with it"
        bare = await call(home, "echo")
        assert (bare.code, bare.answer["arguments"]) == (0, {"times": 1})


async def test_standard_input_carries_a_text_of_a_mebibyte_for_which_no_argument_has_room(tmp_path: Path) -> None:
    text = "一" * (1 << 20)
    async with serving(tmp_path) as home:
        done = await call(home, "write_note", "-", given=json.dumps({"content": text}).encode())
        assert (done.code, done.err) == (0, "")
        async with opened_log(home / "log.db") as log:
            [note] = await events_on(log, TELEMETRY.name)
        assert note.data["attributes"]["talos.content"] == text
        longer = await call(home, "echo", "-", given=b'{"text": "' + b"a" * MAX_LINE + b'"}')
        assert (longer.code, longer.out) == (2, b"") and "bytes" in longer.sentence


async def test_a_refusal_is_json_on_standard_output_and_a_sentence_on_standard_error(tmp_path: Path) -> None:
    """A tool whose errors are results says what results say; one whose errors are JSON-RPC errors, what those say."""
    async with serving(tmp_path) as home:
        done = await call(home, "fail", '{"how": "refused"}')
        assert (done.code, done.answer["error_code"]) == (1, "already_superseded")
        assert done.sentence == done.answer["message"] == "That belief is superseded."
        strict = await call(home, "strict_fail", '{"how": "refused"}')
        assert (strict.code, strict.answer["code"]) == (1, -32110)
        assert strict.sentence == strict.answer["message"] == "That belief is superseded."
        assert strict.answer["data"]["_cognitive_pulse"] == {"entropy": 0.5}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["ech"], "There is no tool 'ech'. Did you mean 'echo'?"),
        (["set_star"], "Call `strict_fail`"),
        (["echo", "{'text': 1}"], "must be one JSON object: Expecting property name"),
        (["echo", "[1]"], "must be one JSON object, such as {}"),
        (["echo", '{"times": NaN}'], "JSON has no NaN"),
        (["echo", "[" * 100_000], "nested too deeply"),
        (["echo", "-"], "Standard input must be one JSON object"),
        (["echo", "{}", "more"], "Name one tool"),
        (["echo", "--freshness", "soon"], "--freshness needs a token in JSON"),
        (["echo", "--request-id"], "--request-id needs a value"),
        (["echo", "--nonsense"], "'--nonsense' is not understood"),
    ],
)
async def test_a_call_that_cannot_be_meant_is_a_sentence_and_exit_code_2(
    tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    async with serving(tmp_path) as home:
        command = [sys.executable, "-m", "thalweg", "call", "--home", str(home), *arguments]
        done = await said(command)
    assert done.code == 2 and sentence in done.err and "Traceback" not in done.err, done.err
    assert done.err.startswith("thalweg: ")


async def test_request_id_freshness_and_scope_arrive_as_a_clients_do(tmp_path: Path) -> None:
    async with serving(tmp_path) as home:
        named = await call(home, "echo", "{}", "--request-id", "once", "--namespace", "north")
        assert (named.answer["request_id"], named.answer["namespace"]) == ("once", "north")
        written = await call(home, "write_note", '{"content": "a"}')
        token = written.answer["freshness"]
        assert (await call(home, "asked", "--freshness", json.dumps(token))).answer["asked"] == token
        wrong = await call(home, "asked", "--freshness", '{"x": 1}')
        assert wrong.code == 1 and "freshness token" in wrong.sentence
        outside = await call(home, "strict_fail", "{}", "--toolsets", "demo")
        assert outside.code == 2 and "strict" in outside.sentence
        unread = await call(home, "write_note", '{"content": "a"}', "--read-only")
        assert unread.code == 2 and "only reads" in unread.sentence
        nowhere = await call(home, "echo", "--toolsets", "nope")
        assert (nowhere.code, nowhere.out) == (1, b"") and "nope" in nowhere.sentence


async def test_a_reader_that_has_seen_enough_ends_the_call_quietly(tmp_path: Path) -> None:
    async with serving(tmp_path) as home:
        shell = f"{sys.executable} -m thalweg call echo - --home {home} | head -c 1"
        done = await said(["bash", "-c", shell], json.dumps({"text": "a" * (1 << 20)}).encode())
        assert (done.code, done.out, done.err) == (0, b"{", "")


async def test_a_node_that_cannot_start_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file where the directory should be")
    done = await call(tmp_path / "home", "echo")
    assert (done.code, done.out) == (1, b"") and str(tmp_path / "home") in done.sentence


async def with_other_node(home: Path, *arguments: str) -> Said:
    command = [sys.executable, "-c", ANOTHER_NODE, json.dumps(node_command(home)), *arguments, "--home", str(home)]
    return await said(command)


@pytest.mark.process
async def test_a_call_starts_the_node_and_is_sent_again_to_the_next_one_under_one_request_id(tmp_path: Path) -> None:
    arguments = {"counter": str(tmp_path / "deaths"), "times": 1}
    try:
        done = await with_other_node(tmp_path, "die", json.dumps(arguments), "--request-id", "once")
        assert (done.code, done.answer) == (0, {"success": True, "request_id": "once", "deaths": 1})
        assert len(started(tmp_path)) == 2
        deadly = {"counter": str(tmp_path / "more"), "times": 9}
        done = await with_other_node(tmp_path, "die", json.dumps(deadly))
        assert (done.code, done.out) == (1, b"") and f"ended {MAX_SENDS} times" in done.sentence
    finally:
        end_nodes(tmp_path)


def test_a_call_imports_next_to_nothing_because_hooks_wait_for_it() -> None:
    heavy = {"asyncio", "click", "duckdb", "jsonschema_rs", "msgspec", "numpy", "orjson"}
    code = f"import sys, thalweg.__main__, thalweg.client.call; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout.strip() == b"[]"
