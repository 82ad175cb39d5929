"""`thalweg mcp` outlives the node: a client never notices more than a slow answer."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from streams.errors import SettingsError
from streams.topics import INVOCATIONS
from tests.ingress.lines import INITIALIZE, INITIALIZED, WAIT_S, Lines, calling
from tests.ingress.parts import events_on, opened_log
from tests.processes import ended
from thalweg import paths
from thalweg.client.pump import LAST_ANSWERS_S, Pump
from thalweg.paths import socket_path

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
PUMP = (
    "import json, sys, pathlib; from thalweg.client import pump; pump.LAST_ANSWERS_S = float(sys.argv[2]); "
    "sys.exit(pump.run(pathlib.Path(sys.argv[1]), sys.argv[4:], json.loads(sys.argv[3])))"
)


def node_command(home: Path) -> list[str]:
    return [sys.executable, "-m", "tests.ingress.node_program", str(home)]


def pump_command(home: Path, node: list[str] | None = None, last_answers_s: float = WAIT_S, **scope: Any) -> list[str]:
    """A pump that waits this long for the last answers: as long as the tests, unless one is about its own patience."""
    arguments = [str(home), str(last_answers_s), json.dumps(scope), *(node or node_command(home))]
    return [sys.executable, "-c", PUMP, *arguments]


def started(home: Path) -> list[int]:
    """The process ids of the nodes that were started, oldest first."""
    path = home / "started"
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def end_nodes(home: Path, how: signal.Signals = signal.SIGKILL) -> None:
    for pid in started(home):
        try:
            os.kill(pid, how)
        except ProcessLookupError:
            pass  # it has ended already


class PumpProcess(Lines):
    """A pump and its stdio."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None and process.stdin is not None
        super().__init__(process.stdout, process.stdin)
        self.process = process

    async def exit_code(self) -> int:
        return await asyncio.wait_for(self.process.wait(), WAIT_S)

    async def complaint(self) -> str:
        assert self.process.stderr is not None
        return (await asyncio.wait_for(self.process.stderr.read(), WAIT_S)).decode()


@asynccontextmanager
async def pumping(
    home: Path, node: list[str] | None = None, last_answers_s: float = WAIT_S, **scope: Any
) -> AsyncIterator[PumpProcess]:
    process = await asyncio.create_subprocess_exec(
        *pump_command(home, node, last_answers_s, **scope),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
        cwd=ROOT,
        limit=1 << 26,
    )
    try:
        yield PumpProcess(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        end_nodes(home)


async def kill_node(home: Path) -> int:
    """kill -9 the newest node, and wait until it is gone."""
    pid = started(home)[-1]
    os.kill(pid, signal.SIGKILL)
    async with asyncio.timeout(WAIT_S):
        while not ended(pid):
            await asyncio.sleep(0.01)
    return pid


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_real_client_calls_through_the_pump_which_starts_the_node(tmp_path: Path, mode: Any) -> None:
    command, *arguments = pump_command(tmp_path)
    parameters = StdioServerParameters(command=command, args=arguments, env=dict(ENVIRONMENT), cwd=ROOT)
    try:
        async with Client(parameters, mode=mode) as client:
            for number in range(3):
                result = await client.call_tool("echo", {"text": str(number)})
                assert result.structured_content is not None and result.structured_content["arguments"]["text"] == str(
                    number
                )
            await kill_node(tmp_path)
            assert not (await client.call_tool("echo", {"text": "after"})).is_error
        assert len(started(tmp_path)) == 2
    finally:
        end_nodes(tmp_path)


async def test_when_the_node_is_killed_between_calls_the_next_call_is_answered(tmp_path: Path) -> None:
    async with pumping(tmp_path) as peer:
        await peer.greet()
        first = await peer.result(calling(1, "echo"))
        for number in range(2, 4):
            await kill_node(tmp_path)
            again = await peer.result(calling(number, "echo"))
            assert again["pid"] != first["pid"]
            first = again
        assert len(started(tmp_path)) == 3


async def test_a_client_keeps_its_scope_when_the_node_is_killed(tmp_path: Path) -> None:
    async with (
        pumping(tmp_path, namespace="south", toolsets="demo", read_only="true") as south,
        pumping(tmp_path, namespace="north") as north,
    ):
        for peer in (south, north):
            await peer.greet()
        for number in (1, 2):
            said = [(await peer.result(calling(number, "echo")))["namespace"] for peer in (south, north)]
            assert said == ["south", "north"]
            error = (await south.ask(calling(number + 10, "write_note", content="a")))["error"]
            assert error["message"] == "The tool 'write_note' writes, and this connection only reads."
            await kill_node(tmp_path)


async def test_a_scope_that_the_node_cannot_give_is_the_error_of_initialize_and_a_sentence(tmp_path: Path) -> None:
    async with pumping(tmp_path, namespace="a/b") as peer:
        error = (await peer.ask(INITIALIZE))["error"]
        assert error["message"].startswith("The namespace is 'a/b'; accepted: ")
        assert await peer.exit_code() == 1
        assert error["message"] in await peer.complaint()


async def test_a_node_that_is_not_needed_is_not_started_again(tmp_path: Path) -> None:
    async with pumping(tmp_path) as peer:
        await peer.greet()
        await peer.result(calling(1, "echo"))
        await kill_node(tmp_path)
        peer.writer.close()
        assert await peer.exit_code() == 0
        assert len(started(tmp_path)) == 1


async def test_a_call_during_which_the_node_dies_is_sent_again_under_one_request_id(tmp_path: Path) -> None:
    async with pumping(tmp_path) as peer:
        await peer.greet()
        answer = await peer.result(calling("c", "die", counter=str(tmp_path / "deaths"), times=2))
        assert answer["deaths"] == 2
        assert len(started(tmp_path)) == 3
        given = await peer.result(calling("d", "echo", {"claudecode/toolUseId": "toolu_1"}))
        assert given["request_id"] == "toolu_1"


async def test_a_call_that_always_kills_the_node_is_answered_and_others_work_on(tmp_path: Path) -> None:
    async with pumping(tmp_path) as peer:
        await peer.greet()
        answer = await peer.ask(calling(1, "die", counter=str(tmp_path / "deaths"), times=99))
        assert answer["error"]["code"] == -32603 and "3 times" in answer["error"]["message"]
        assert (await peer.result(calling(2, "echo")))["success"]


async def test_calls_that_are_under_way_when_the_node_dies_are_all_answered_once(tmp_path: Path) -> None:
    async with pumping(tmp_path) as peer:
        await peer.greet()
        await peer.send(*(calling(number, "patient", seconds=0.3) for number in range(20)))
        await kill_node(tmp_path)
        answered = [(await peer.receive())["id"] for _ in range(20)]
        assert sorted(answered) == list(range(20))
        assert (await peer.result(calling("last", "echo")))["success"]


async def test_two_pumps_at_once_start_one_node(tmp_path: Path) -> None:
    async with pumping(tmp_path) as one, pumping(tmp_path) as two, pumping(tmp_path) as three:
        pids = set()
        await asyncio.gather(one.greet(), two.greet(), three.greet())
        for peer in (one, two, three):
            pids.add((await peer.result(calling(1, "echo")))["pid"])
        assert len(pids) == 1 and len(started(tmp_path)) == 1


async def test_what_is_no_json_is_answered_and_the_pump_goes_on(tmp_path: Path) -> None:
    async with pumping(tmp_path) as peer:
        await peer.send(b"{nonsense\n", b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":3}\n')
        assert {(await peer.receive())["error"]["code"] for _ in range(2)} == {-32700, -32600}
    async with pumping(tmp_path) as peer:
        await peer.greet()
        await peer.send(b"\xff\xfe\n")
        assert (await peer.receive())["error"]["code"] == -32700
        assert (await peer.result(calling(2, "echo")))["success"]


async def test_large_messages_pass_both_ways(tmp_path: Path) -> None:
    async with pumping(tmp_path) as peer:
        await peer.greet()
        text = "ä" * 2_000_000
        echo = (await peer.result(calling(1, "echo", text=text)))["arguments"]["text"]
        assert len(echo) > 1_000 and text.startswith(echo.removesuffix("…")), (
            "an answer fits, however long it was asked"
        )
        refused = await peer.ask(calling(2, "echo", text="x" * (17 * 1024 * 1024)))
        assert "at most 16777216 are accepted" in refused["error"]["message"]
        assert (await peer.result(calling(3, "echo")))["success"]


async def test_at_the_end_of_input_the_last_calls_are_answered_and_the_exit_is_clean(tmp_path: Path) -> None:
    async with pumping(tmp_path) as peer:
        await peer.send(INITIALIZE, INITIALIZED, calling(1, "patient", seconds=0.3))
        peer.writer.write_eof()
        assert (await peer.receive())["id"] == "hello"
        assert (await peer.receive())["result"]["structuredContent"]["success"]
        assert await peer.exit_code() == 0


async def test_a_last_line_without_newline_counts(tmp_path: Path) -> None:
    async with pumping(tmp_path) as peer:
        await peer.send(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
        peer.writer.write_eof()
        assert (await peer.receive())["id"] == 1
        assert await peer.exit_code() == 0


async def test_after_the_end_of_input_a_call_that_takes_long_is_not_waited_for(tmp_path: Path) -> None:
    async with pumping(tmp_path, last_answers_s=LAST_ANSWERS_S) as peer:
        await peer.greet()
        await peer.send(calling(1, "patient", seconds=50))
        peer.writer.write_eof()
        assert await peer.exit_code() == 0
        assert await peer.ended(), "without an answer"


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_the_pump_at_once_and_the_node_stays(tmp_path: Path, how: signal.Signals) -> None:
    async with pumping(tmp_path) as peer:
        await peer.greet()
        await peer.send(calling(1, "patient", seconds=50))
        peer.process.send_signal(how)
        assert await peer.exit_code() == -how, "by the signal itself"
        assert await peer.ended(), "without waiting for what was asked"
        assert not ended(started(tmp_path)[0])


async def test_a_node_that_does_not_start_is_an_answer_and_a_sentence_with_the_end_of_its_log(tmp_path: Path) -> None:
    broken = [sys.executable, "-c", "import sys; print('the reason', file=sys.stderr); sys.exit(2)"]
    async with pumping(tmp_path, broken) as peer:
        await peer.send(INITIALIZE)
        answer = await peer.receive()
        assert answer["id"] == "hello" and "the reason" in answer["error"]["message"]
        assert await peer.exit_code() == 1
        complaint = await peer.complaint()
        assert complaint.startswith("thalweg: The node does not start.") and "the reason" in complaint


async def test_a_record_of_every_call_reaches_the_log_through_a_killed_node(tmp_path: Path) -> None:
    async with pumping(tmp_path) as peer:
        await peer.greet()
        await peer.result(calling(1, "echo", {"thalweg/request_id": "r-1"}))
        os.kill(started(tmp_path)[-1], signal.SIGTERM)
        await peer.result(calling(2, "echo", {"thalweg/request_id": "r-2"}))
        end_nodes(tmp_path, signal.SIGTERM)  # the first may be gone already, or still have answered both calls
        async with asyncio.timeout(WAIT_S):
            while not all(ended(pid) for pid in started(tmp_path)):
                await asyncio.sleep(0.01)
    async with opened_log(tmp_path / "log.db") as log:
        assert {event.data["request_id"] for event in await events_on(log, INVOCATIONS.name)} == {"r-1", "r-2"}


def test_the_pump_imports_nothing_heavy() -> None:
    heavy = (
        "{'mcp', 'duckdb', 'faust', 'numpy', 'orjson', 'pydantic', 'asyncio', "
        "'click', 'rich', 'onnxruntime', 'http', 'email'}"
    )
    code = f"import sys, thalweg.client.pump; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], env=ENVIRONMENT, cwd=ROOT, capture_output=True, text=True, timeout=30
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_the_socket_lies_in_the_data_directory_unless_its_path_is_too_long(tmp_path: Path) -> None:
    assert socket_path(tmp_path) == tmp_path / "node.sock"
    deep = tmp_path / ("d" * 120)
    short = socket_path(deep)
    assert len(os.fsencode(short)) <= paths.MAX_SOCKET_PATH
    assert short == socket_path(deep) != socket_path(deep.with_name("e" * 120))


def test_a_link_to_the_data_directory_leads_to_the_same_socket(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert socket_path(tmp_path / "link") == socket_path(tmp_path / "real")


def test_a_runtime_directory_that_others_may_open_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "RUNTIME", str(tmp_path))
    (tmp_path / f"thalweg-{os.getuid()}").mkdir(mode=0o755)
    with pytest.raises(SettingsError, match="must be yours alone"):
        socket_path(tmp_path / ("d" * 120))


class TwoNodes:
    """A launcher of two nodes: the first stops over the call, as the server library does it; the second answers."""

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []

    def connect(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        threading.Thread(target=self._serve, args=(theirs,), daemon=True).start()
        return ours

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as lines:
            request = json.loads(lines.readline())
            self.seen.append(request)
            stopping = len(self.seen) == 1
            body = (
                {"error": {"code": -32000, "message": "Connection closed"}} if stopping else {"result": {"content": []}}
            )
            connection.sendall(
                json.dumps({"jsonrpc": "2.0", "id": request["id"], **body}, separators=(",", ":")).encode() + b"\n"
            )

    def log_tail(self) -> str:
        return ""


class OldNode:
    """A launcher of a node that knows no scopes."""

    def connect(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        threading.Thread(target=self._serve, args=(theirs,), daemon=True).start()
        return ours

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as lines:
            request = json.loads(lines.readline())
            error = {"code": -32601, "message": "Method not found"}
            connection.sendall(json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}).encode() + b"\n")
            lines.readline()

    def log_tail(self) -> str:
        return ""


def test_a_node_of_a_version_without_scopes_is_never_taken_for_one_that_keeps_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (stdin, client), (answers, stdout) = os.pipe(), os.pipe()
    os.write(client, json.dumps(INITIALIZE).encode() + b"\n")
    os.close(client)
    assert Pump(OldNode(), {"namespace": "south"}, stdin, stdout).run() == 1  # type: ignore[arg-type]
    os.close(stdout)
    with os.fdopen(answers, "rb") as lines:
        [answer] = [json.loads(line) for line in lines]
    assert "`thalweg stop`" in answer["error"]["message"] and "older version" in capsys.readouterr().err


def test_a_call_that_a_stopping_node_gives_up_goes_to_the_next_node_under_one_request_id() -> None:
    nodes, (stdin, client), (answers, stdout) = TwoNodes(), os.pipe(), os.pipe()
    os.write(client, b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"note","arguments":{}}}\n')
    os.close(client)
    assert Pump(nodes, stdin=stdin, stdout=stdout).run() == 0  # type: ignore[arg-type]
    os.close(stdout)
    with os.fdopen(answers, "rb") as lines:
        assert [json.loads(line) for line in lines] == [{"jsonrpc": "2.0", "id": 7, "result": {"content": []}}]
    first, second = (seen["params"]["_meta"]["thalweg/request_id"] for seen in nodes.seen)
    assert first == second
