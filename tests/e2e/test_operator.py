"""What an operator does and meets.

Start, stop, status, copies, rebuilds, wrong settings, and damaged files (R5, R10, R11, R13, R18).
"""

from __future__ import annotations

import json
import socket
import sqlite3
import time
from pathlib import Path
from typing import Any

import duckdb
import pytest

from streams.log import open_log
from streams.log.base import Outgoing
from streams.topics import DERIVED, DLQ_SUFFIX, MEMORY, TOPICS
from tests.e2e.filling import everything, fill
from tests.e2e.program import Program
from tests.kafka.rig.broker import Broker
from tests.kafka.rig.shared import require_rig
from tests.node_process import Client, NodeProcess
from tests.patience import within

pytestmark = pytest.mark.timeout(400)


# --- up, stop, status


def test_a_node_is_green_while_it_runs_and_red_with_exit_code_1_when_none_does(
    thalweg: Program, node: NodeProcess
) -> None:
    node.settle()
    running = thalweg("status", "--json")
    assert running.code == 0 and running.json()["status"] == "green"
    assert thalweg("stop").code == 0
    assert node.died() == 0
    stopped = thalweg("status")
    assert stopped.code == 1 and "red" in stopped.out and "No node runs" in stopped.out
    assert thalweg("stop").code == 1


def test_without_a_node_the_status_says_how_the_last_one_ended_and_how_far_it_came(
    thalweg: Program, node: NodeProcess
) -> None:
    fill(node)
    status, kafka = node.settle(), node.broker is not None
    node.kill()
    killed = thalweg("status", "--json")
    report = json.loads(killed.out)
    assert killed.code == 1 and report["last"]["ended"] == "killed" and report["last"]["pid"] == node.process.pid
    assert report["last"]["applied"]["thalweg.memory.v1"] == status["topics"]["thalweg.memory.v1"]["applied"]
    assert report["last"]["waiting"] == (None if kafka else {})
    shown = thalweg("status")
    assert "was killed" in shown.out and "thalweg up" in shown.out and "Traceback" not in shown.err
    asked = thalweg("sql", "SELECT count(*) FROM journal")
    assert (asked.code, asked.err) == (0, "")
    assert thalweg("dlq", "list", "--json").json() == {"dead_letters": [], "total": 0, "states": {}}
    assert json.loads(thalweg("status", "--json").out) == report, "who only reads leaves no trace"
    node.start()
    node.settle()
    assert node.stop() == 0
    assert json.loads(thalweg("status", "--json").out)["last"]["ended"] == "cleanly"


async def test_sql_without_a_node_says_what_the_store_does_not_have_yet(
    home: Path, node: NodeProcess, thalweg: Program
) -> None:
    fill(node)
    node.settle()
    assert node.stop() == 0
    log = open_log(node.broker or f"sqlite://{home / 'log.db'}")
    await log.start()
    await log.publish([Outgoing(MEMORY.name, b"default", b"{", ())] * 2, timeout_s=60.0)
    await log.stop()
    asked = thalweg("sql", "--format", "csv", "SELECT count(*) AS entries FROM journal")
    assert asked.code == 0 and asked.out.startswith("entries")
    said = "No node runs, and 2 more records wait on the log: `thalweg up` applies them."
    assert asked.err.strip() == ("" if node.broker else said)  # how far another log reaches is not asked without a node
    waited = thalweg("sql", "SELECT count(*) FROM journal", "--json", "--freshness", "now")
    assert waited.code == 0 and waited.json()["stale"] is True and "The answer is older than it should be" in waited.err


async def test_sql_waits_for_one_write_or_for_all_that_was_accepted(node: NodeProcess, thalweg: Program) -> None:
    client = Client(node.home)
    written = client.insist("journal_write", {"content": "Seen at once.", "category": "insight"}, "seen")
    origin = "SELECT content, tool_name FROM memory_origins JOIN journal ON memory_id = entry_id"
    assert thalweg.sql(origin) == [["Seen at once.", "journal_write"]], (
        "the record of the call that was answered is applied too"
    )
    token = json.dumps(written["freshness"])
    covered = thalweg("sql", "SELECT content FROM journal", "--json", "--freshness", token).json()
    assert covered["rows"] == [["Seen at once."]] and "stale" not in covered
    for nonsense, said in (("later", "neither `now` nor a token"), ("[1]", "The freshness token is not of the form")):
        refused = thalweg("sql", "SELECT 1", "--freshness", nonsense)
        assert refused.code in (1, 2) and said in refused.err


def test_a_second_node_on_one_directory_refuses_and_names_the_first(thalweg: Program, node: NodeProcess) -> None:
    assert node.process is not None
    second = thalweg("up")
    assert second.code == 2 and f"pid {node.process.pid}" in second.sentence
    node.settle()
    assert thalweg("status").code == 0


def test_a_term_ends_the_node_within_bounds_and_cleanly(thalweg: Program, node: NodeProcess) -> None:
    fill(node)

    def ended() -> float:
        if not node.is_alive():
            node.start()
        started = time.monotonic()
        assert node.stop() == 0
        return time.monotonic() - started

    within(10, ended)


# --- what is set wrong


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--broker", "kafka://127.0.0.1:1"], "127.0.0.1:1"),
        (["--broker", "redis://x"], "The setting broker is 'redis://x'"),
        (["--http", "70000"], "The setting http is '70000'"),
        (["--http", "[::1:77"], "The setting http is '[::1:77'"),
        (["--http", "0.0.0.0:7733"], "bearer token"),
        (["--toolsets", "talso"], "talso"),
    ],
)
def test_a_wrong_setting_is_one_sentence_and_exit_code_2(home: Path, arguments: list[str], said: str) -> None:
    refused = Program(home)("up", *arguments)
    assert refused.code == 2 and said in refused.sentence


@pytest.mark.parametrize(
    "command", [["up"], ["status"], ["import", "claude-code", "."], ["sql", "SELECT 1"]], ids=lambda words: words[0]
)
def test_a_data_directory_that_is_a_file_is_one_sentence(home: Path, command: list[str]) -> None:
    home.write_text("no directory")
    refused = Program(home)(*command)
    assert refused.code in (1, 2) and "Traceback" not in refused.err
    assert str(home) in (refused.out if command == ["status"] else refused.sentence)


@pytest.mark.parametrize("name", ["spool", "store.lock"])
def test_what_stands_in_the_way_of_a_file_in_the_data_directory_is_named_with_what_to_do(home: Path, name: str) -> None:
    home.mkdir(mode=0o700)
    (home / name).mkdir(mode=0o700)
    refused = Program(home)("up")
    assert refused.code == 2 and str(home / name) in refused.sentence and "Move it away" in refused.sentence


def test_who_starts_a_node_hears_which_file_of_the_data_directory_cannot_be_used(home: Path) -> None:
    home.mkdir(mode=0o700)
    (home / "node.start").mkdir(mode=0o700)
    refused = Program(home)("import", "pi", str(home))
    assert refused.code == 1 and "node.start" in refused.sentence and "Traceback" not in refused.err


def test_a_log_file_that_is_none_is_named_with_what_to_do(home: Path) -> None:
    home.mkdir(mode=0o700)
    (home / "log.db").write_bytes(b"no database" * 500)
    refused = Program(home)("up")
    assert refused.code == 2 and "log.db" in refused.sentence and "THALWEG_BROKER" in refused.sentence


def test_a_wrong_variable_and_a_wrong_file_are_named(home: Path) -> None:
    refused = Program(home)("status", THALWEG_PARTITIONS="many")
    assert refused.code == 2 and "partitions is 'many'" in refused.sentence
    home.mkdir(mode=0o700)
    (home / "thalweg.toml").write_text('brokre = "x"\n')
    unknown = Program(home)("status")
    assert unknown.code == 2 and "'brokre'" in unknown.sentence


def test_a_port_that_is_taken_is_one_sentence(home: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused = Program(home)("up", "--http", str(port))
    assert refused.code == 2 and str(port) in refused.sentence


def test_a_store_of_a_newer_version_is_refused_and_left_alone(home: Path) -> None:
    node = NodeProcess(home).start()
    node.stop()
    with duckdb.connect(str(home / "thalweg.duckdb")) as store:
        store.execute("INSERT INTO schema_migrations VALUES (9999, 'from_the_future', '2030-01-01')")
    refused = Program(home)("up")
    assert refused.code == 2 and "9999" in refused.sentence
    assert not list(home.glob("*.damaged-*"))


# --- copies and rebuilds


def test_copies_open_elsewhere_with_the_same_rows(thalweg: Program, node: NodeProcess, tmp_path: Path) -> None:
    fill(node)
    assert thalweg("snapshot", str(tmp_path / "copy.duckdb")).code == 0
    with duckdb.connect(str(tmp_path / "copy.duckdb"), read_only=True) as copy:
        assert copy.execute("SELECT count(*) FROM journal").fetchall() == [(3,)]
    rows = thalweg("export", "parquet", str(tmp_path / "out"), "--json").json()
    assert rows["journal"] == 3
    read = (
        duckdb.connect()
        .execute("SELECT count(*) FROM read_parquet(?)", [str(tmp_path / "out" / "journal.parquet")])
        .fetchall()
    )
    assert read == [(3,)]
    assert node.stop() == 0
    assert thalweg("snapshot", str(tmp_path / "later.duckdb")).code == 0


@pytest.mark.parametrize("arguments", [["rebuild"], ["rebuild", "--from-log"]])
def test_a_rebuild_gives_the_same_contents(thalweg: Program, node: NodeProcess, arguments: list[str]) -> None:
    fill(node)
    before = everything(node)
    owned = thalweg(*arguments)
    assert owned.code == 1 and "thalweg stop" in owned.sentence
    assert node.stop() == 0
    assert thalweg(*arguments, "--json").code == 0
    node.start()
    assert everything(node) == before


@pytest.mark.parametrize(
    ("broker", "said"),
    [
        ("sqlite://{}/other.db", "so nothing was deleted. Point at the right log (THALWEG_BROKER)"),
        ("kafka://127.0.0.1:1", "No Kafka broker answers at 127.0.0.1:1"),
    ],
)
def test_a_rebuild_deletes_nothing_unless_the_log_is_there_and_holds_it(
    thalweg: Program, node: NodeProcess, tmp_path: Path, broker: str, said: str
) -> None:
    fill(node)
    before = everything(node)
    assert node.stop() == 0
    refused = thalweg("rebuild", "--from-log", THALWEG_BROKER=broker.format(tmp_path))
    assert refused.code == 1 and said in refused.sentence, refused.sentence
    node.start()
    assert everything(node) == before


# --- damage


@pytest.mark.parametrize("damage", ["truncated", "zeroed header", "no database"])
def test_a_damaged_store_is_moved_aside_and_rebuilt_with_the_same_contents(home: Path, damage: str) -> None:
    node = NodeProcess(home).start()
    fill(node)
    before = everything(node)
    node.stop()
    store = home / "thalweg.duckdb"
    whole = store.read_bytes()
    store.write_bytes(
        {
            "truncated": whole[:20_000],
            "zeroed header": bytes(12_288) + whole[12_288:],
            "no database": b"nonsense" * 4096,
        }[damage]
    )
    node.start()
    assert everything(node) == before
    assert len(list(home.glob("thalweg.duckdb.damaged-*"))) == 1
    assert node.stop() == 0


@pytest.mark.parametrize("damage", ["truncated", "bit flips", "zeroed"])
def test_damaged_indexes_are_noticed_before_they_are_loaded_and_made_anew(home: Path, damage: str) -> None:
    node = NodeProcess(home).start()
    fill(node)
    node.stop()
    for file in [path for path in (home / "indexes").rglob("*") if path.is_file()]:
        whole = bytearray(file.read_bytes())
        if damage == "truncated":
            whole = whole[: len(whole) // 2]
        elif damage == "zeroed":
            whole[:4096] = bytes(min(4096, len(whole)))
        else:
            for place in range(0, len(whole), 97):
                whole[place] ^= 0x10
        file.write_bytes(whole)
    node.start()
    status = node.settle()
    with node.store() as store:
        [(vectors, documents)] = store.execute(
            "SELECT (SELECT count(*) FROM embeddings), (SELECT count(*) FROM documents)"
        ).fetchall()
    assert (status["indexes"]["vector"]["count"], status["indexes"]["keyword"]["count"]) == (vectors, documents)
    found = Client(home).call("journal_query", {"query": "caches lie"})
    assert any("caches lie" in result["content"] for result in found["results"])
    assert node.stop() == 0


async def test_the_whole_log_a_second_time_changes_nothing(node: NodeProcess) -> None:
    fill(node)
    before = everything(node)
    log = open_log(node.broker or f"sqlite://{node.home / 'log.db'}")
    await log.start()
    names = [topic.name for topic in TOPICS if not topic.name.endswith(DLQ_SUFFIX) and topic.name != DERIVED.name]
    ends = {at: end for at, end in (await log.end_offsets(names)).items() if end}
    reader = await log.reader(dict.fromkeys(ends, 0))
    records = []
    while len(records) < sum(ends.values()):
        records += await reader.read(timeout_s=10.0, max_records=1000)
    await reader.close()
    await log.publish([Outgoing(r.topic, r.key, r.value, r.headers, r.partition) for r in records], timeout_s=60.0)
    await log.stop()
    after = everything(node)
    assert {table: rows for table, rows in after.items() if rows != before.get(table)} == {}


# --- the log goes away


def test_a_log_that_is_held_by_another_makes_writes_wait_in_the_spool_and_status_red(home: Path) -> None:
    node = NodeProcess(home).start()
    client = Client(home)
    kept: list[tuple[Any]] = []

    def held() -> float:
        node.settle()
        blocker = sqlite3.connect(home / "log.db", isolation_level=None, timeout=60.0)
        blocker.execute("BEGIN IMMEDIATE")
        said, name = {"content": f"Kept {len(kept)}.", "category": "insight"}, f"held-{len(kept)}"
        started = time.monotonic()
        client.call("journal_write", said, name)
        took = time.monotonic() - started
        answer = client.insist("journal_write", said, name, spooled=True)
        assert answer["degraded"] and answer["entry_id"]
        status = Program(home)("status", "--json")
        assert status.code == 1 and "spool" in status.out
        blocker.execute("ROLLBACK")
        blocker.close()
        kept.append((answer["entry_id"],))
        return took

    within(5.5, held)
    node.settle()
    assert node.sql('SELECT entry_id FROM talos_journal ORDER BY "offset"') == kept
    assert node.stop() == 0


@pytest.mark.kafka
def test_while_kafka_is_away_writes_are_spooled_within_five_seconds_and_land_when_it_is_back(tmp_path: Path) -> None:
    require_rig()
    broker = Broker(tmp_path / "broker")
    broker.start()
    node = NodeProcess(tmp_path / "home", broker.url).start()
    try:
        fill(node)
        client = Client(node.home)
        answers: list[dict[str, Any]] = []

        def away() -> float:
            writes = [
                ("journal_write", {"content": f"Away {n}.", "category": "insight"}, f"away-{n}")
                for n in range(len(answers), len(answers) + 2)
            ]
            broker.kill()
            started = time.monotonic()
            for write in writes:
                client.call(*write)
            took = time.monotonic() - started
            answers.extend(client.insist(*write, spooled=True) for write in writes)
            assert all(answer["degraded"] for answer in answers)
            assert Program(node.home, broker.url)("status").code == 1
            broker.start()
            node.settle()
            return took

        within(10, away, enough=2)  # each try kills the broker and starts it again
        ids = {entry for (entry,) in node.sql("SELECT entry_id FROM talos_journal")}
        assert {answer["entry_id"] for answer in answers} <= ids
        assert node.is_alive() and node.stop() == 0
    finally:
        broker.kill()
