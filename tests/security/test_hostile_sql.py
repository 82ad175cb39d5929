"""Hostile SQL: whatever an analyst's endpoint is sent is refused or killed within its limits, and no file is
touched."""

from __future__ import annotations

import hashlib
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from storage.database import Database
from storage.migrate import migrate
from storage.sql.child import answer, connect
from storage.sql.run import run_sql
from storage.sql.snapshot import Snapshots
from streams.errors import Refused
from tests.patience import SOON_S
from tests.processes import ended
from tests.schema import set_progress
from tests.sql import hostile
from tests.sql.hostile import SECRET

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]  # each query is a process of its own

TIMEOUT_S = 1.0
MOST_CPU_S = 2 * TIMEOUT_S + 1
"""What the kernel lets a query of that limit use, on two threads."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    (folder / "secret.csv").write_text(f"password\n{SECRET}\n")
    return folder


@pytest.fixture(scope="module")
def snapshot(home: Path) -> Iterator[Path]:
    database = Database(home)
    cursor = database.cursor()
    migrate(cursor, datetime(2026, 3, 1, tzinfo=UTC))
    set_progress(cursor, materialise={"t": {"0": 7}})
    yield Snapshots(database).get(max_age_s=0).path
    database.close()


@pytest.fixture(autouse=True)
def nothing_on_disk_changes(home: Path, snapshot: Path) -> Iterator[None]:
    before = files(home)
    yield
    assert files(home) == before


def files(home: Path) -> dict[str, str]:
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(home.rglob("*")) if path.is_file()
    }


STATEMENTS = (
    hostile.WRITING + hostile.NESTED_WRITING + hostile.READING_FILES + hostile.REACHING_OUT + hostile.OVER_THE_NETWORK
)


def named(sql: str) -> str:
    return sql[:70].encode("ascii", "backslashreplace").decode()


@pytest.mark.parametrize("sql", [*STATEMENTS, *hostile.CONTROLLING, *hostile.EVERYWHERE[:3]], ids=named)
def test_what_writes_or_reaches_out_is_refused_with_a_sentence_that_gives_nothing_away(
    sql: str, home: Path, snapshot: Path
) -> None:
    """Asked of the child's own function: what starting a process adds, the statements after these show."""
    request = {"snapshot": str(snapshot), "memory_mb": 256, "threads": 1, "max_rows": 10, "max_bytes": 10_000}
    error = answer({**request, "sql": sql.replace("{home}", str(home))})["error"]
    assert error["code"] == "sql_refused"
    assert SECRET not in error["message"] and "Traceback" not in error["message"]


SOME = [hostile.WRITING[0], hostile.READING_FILES[0], *hostile.REACHING_OUT[:3], *hostile.CONTROLLING[:5]]


@pytest.mark.parametrize(("sql", "code"), [*((sql, "sql_refused") for sql in SOME), *hostile.BROKEN.items()], ids=named)
def test_it_is_refused_with_a_sentence_that_gives_nothing_away(sql: str, code: str, home: Path, snapshot: Path) -> None:
    with pytest.raises(Refused) as refusal:
        run_sql(snapshot, sql.replace("{home}", str(home)), timeout_s=SOON_S)
    assert refusal.value.error_code == code
    assert SECRET not in refusal.value.message and "Traceback" not in refusal.value.message


BOMBS = [
    "SELECT repeat('x', 4000000000)",
    "SELECT length(lpad('x', 2100000000, 'y'))",
    "SELECT levenshtein(lpad('x', 200000, 'ab'), lpad('y', 200000, 'ba'))",
    (
        "SELECT sum(levenshtein(lpad('x', 3000, i::VARCHAR), lpad('y', 3000, (i * 7)::VARCHAR))) "
        "FROM range(100000000) r(i)"
    ),
    "SELECT list(range) FROM range(3000000000)",
    "SELECT range(3000000000)",
    "SELECT len(range(3000000000))",
    "SELECT unnest(range(3000000000)) ORDER BY 1 DESC",
    "SELECT string_agg(range::VARCHAR || lpad('x', 1000, 'y')) FROM range(100000000)",
    "SELECT count(*) FROM range(100000) a, range(100000) b, range(1000) c WHERE hash(a.range, b.range, c.range) = 7",
    "WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x) SELECT max(n) FROM x",
    (
        "SELECT list_reduce(range(30), lambda a, b: a + b), "
        "(SELECT count(DISTINCT md5(range::VARCHAR)) FROM range(1000000000))"
    ),
]


@pytest.mark.parametrize("sql", BOMBS, ids=lambda sql: sql[:70])
def test_a_bomb_is_ended_within_its_limits(sql: str, snapshot: Path) -> None:
    started, used_s = time.monotonic(), cpu_of_children()
    with pytest.raises(Refused) as refusal:
        run_sql(snapshot, sql, timeout_s=TIMEOUT_S, memory_mb=256)
    assert refusal.value.error_code in ("sql_refused", "sql_timeout", "sql_memory")
    assert cpu_of_children() - used_s < MOST_CPU_S + 1
    assert time.monotonic() - started < TIMEOUT_S + SOON_S


def cpu_of_children() -> float:
    """Seconds of the processor that the processes which this one has started and awaited have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_an_endless_answer_is_cut_at_the_number_of_rows_and_of_bytes(snapshot: Path) -> None:
    by_rows = run_sql(snapshot, "FROM range(3000000000)", max_rows=100)
    assert len(by_rows.rows) == 100 and by_rows.truncated
    by_bytes = run_sql(snapshot, "SELECT lpad('x', 1000, 'y') FROM range(3000000000)", max_bytes=50_000)
    assert 40 <= len(by_bytes.rows) <= 50 and by_bytes.truncated
    one_large_value = run_sql(snapshot, "SELECT lpad('x', 1000000, 'y')", max_bytes=50_000)
    assert one_large_value.rows == [] and one_large_value.truncated


def test_the_catalogue_may_be_read(snapshot: Path) -> None:
    assert ["positions"] in run_sql(snapshot, "SELECT table_name FROM information_schema.tables").rows


@pytest.mark.parametrize("sql", [sql for sql in STATEMENTS if sql != "CHECKPOINT"], ids=named)
def test_without_the_guard_the_locked_connection_alone_changes_and_reads_no_file(
    sql: str, home: Path, snapshot: Path
) -> None:
    connection = connect(str(snapshot), 256, 1)
    try:
        connection.execute("BEGIN TRANSACTION READ ONLY")
        shown = str(connection.execute(sql.replace("{home}", str(home))).fetchall())
    except Exception as error:  # which one does not matter here: only that nothing comes out and nothing changes
        shown = str(error)
    finally:
        connection.close()
    assert SECRET not in shown


ASKER = """
import sys
from pathlib import Path
from storage.sql.run import run_sql
run_sql(Path(sys.argv[1]), "SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b", timeout_s=600)
"""


def children_of(parent: int) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


def until(condition, what: str, timeout_s: float = SOON_S):
    deadline = time.monotonic() + timeout_s
    while not (found := condition()):
        assert time.monotonic() < deadline, what
        time.sleep(0.02)
    return found


def burns_time(pid: int) -> bool:
    """Whether the process has used a second: it is past its start and inside the query."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
    return int(user) + int(system) > os.sysconf("SC_CLK_TCK")


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's notice of a parent's death is Linux's")
def test_a_query_ends_with_the_process_that_asked_also_when_that_is_killed(snapshot: Path) -> None:
    asker = subprocess.Popen([sys.executable, "-c", ASKER, str(snapshot)], stderr=subprocess.DEVNULL)
    try:
        [child] = until(lambda: children_of(asker.pid), "the query has no process")
        until(lambda: burns_time(child), "the query does not run")
    finally:
        asker.kill()
        asker.wait(SOON_S)
    until(lambda: ended(child), "the query outlives who asked for it")
