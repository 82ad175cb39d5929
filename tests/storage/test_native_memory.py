"""What a node's libraries may take of the machine's memory, and what goes back to it."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from storage.database import Database

HAS_GLIBC = hasattr(ctypes.CDLL(None), "malloc_info")
needs_glibc = pytest.mark.skipif(not HAS_GLIBC, reason="only glibc has arenas and malloc_trim")

COUNT_ARENAS = """
import ctypes, sys, tempfile, threading
from storage.malloc import tune_malloc
tune_malloc()
libc = ctypes.CDLL(None)
libc.fopen.restype = libc.malloc.restype = ctypes.c_void_p
together = threading.Barrier(13)
def allocate():
    libc.malloc(5000)
    together.wait()
    together.wait()
for _ in range(12):
    threading.Thread(target=allocate).start()
together.wait()
with tempfile.NamedTemporaryFile() as file:
    stream = ctypes.c_void_p(libc.fopen(file.name.encode(), b"w"))
    libc.malloc_info(0, stream)
    libc.fclose(stream)
    print(file.read().count(b"<heap nr"))
together.wait()
"""
TRIM = """
import ctypes
from storage.malloc import trim
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
def resident():
    return int(open("/proc/self/statm").read().split()[1])
blocks = [libc.malloc(2000) for _ in range(50_000)]
for block in blocks:
    ctypes.memset(block, 1, 2000)
full = resident()
for block in blocks[:-1]:  # the last keeps the heap from shrinking by itself
    libc.free(ctypes.c_void_p(block))
before = resident()
trim()
print(before / full > 0.9, resident() / full < 0.5)
"""

LARGE_BLOCKS = """
import ctypes
from storage.malloc import tune_malloc
tune_malloc()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
def used(size):
    block = libc.malloc(size)
    ctypes.memset(block, 1, size)
    return block
libc.free(ctypes.c_void_p(used(30_000_000)))  # glibc would keep blocks as large as this one from now on
before = resident()
blocks = [used(5_000_000) for _ in range(10)]
held, last = resident(), used(2000)
for block in blocks:
    libc.free(ctypes.c_void_p(block))
print(held - before > 45_000_000, resident() - before < 5_000_000)
"""
LONG_BATCH = """
import sys
from pathlib import Path
from processors.embedding.loader import load_embedder
from storage.malloc import trim
def own():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("RssAnon"))
model = load_embedder("minilm", cache_dir=Path(sys.argv[1]))
model.encode(["short"])
trim()
before = own()
model.encode(["word " * 250] * 8)
trim()
print(own() - before < 5_000)
"""

HEAVY_QUERY = """
import threading, time
from storage.database import Database
from storage.malloc import release_free_memory
def own():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("RssAnon"))
database = Database(None)
database.cursor().execute("SELECT 1").fetchall()
before, most = own(), 0
def ask():
    global most
    sql = "SELECT i % 7 AS k, 'longer than twelve letters ' || i AS x FROM range(1000000) r(i) ORDER BY ALL"
    found = database.cursor().execute(sql).fetchnumpy()
    most = own()
asking = threading.Thread(target=ask)
asking.start()
asking.join()
until = time.monotonic() + 10
while own() - before > (most - before) / 4 and time.monotonic() < until:
    time.sleep(0.1)
    release_free_memory()
print(most - before > 100_000, own() - before <= (most - before) / 4)
"""


def output_of(program: str, *arguments: str) -> str:
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_duckdb_takes_a_quarter_of_the_machine_at_most() -> None:
    sql = "SELECT current_setting('memory_limit'), current_setting('threads')"
    by_itself = duckdb.connect(":memory:").execute(sql).fetchone()
    database = Database(None)
    ours = database.cursor().execute(sql).fetchone()
    database.close()
    assert by_itself is not None and ours is not None and ours[1] == 1
    assert in_bytes(ours[0]) / in_bytes(by_itself[0]) == pytest.approx(25 / 80, rel=0.05)


def test_the_keys_of_small_tables_take_a_fraction_of_what_duckdb_gives_them_by_itself(tmp_path: Path) -> None:
    database = Database(tmp_path)
    ours = key_bytes(database.cursor())
    database.close()
    assert 0 < ours < key_bytes(duckdb.connect(str(tmp_path / "by_itself.duckdb"))) / 3


def key_bytes(cursor: duckdb.DuckDBPyConnection) -> int:
    """What the keys of twenty small tables take in memory."""
    for number in range(20):
        cursor.execute(f"CREATE TABLE small{number} (id VARCHAR PRIMARY KEY)")
        cursor.execute(f"INSERT INTO small{number} SELECT 'an id of some length ' || i FROM range(10) r(i)")
    [(size,)] = cursor.execute("SELECT memory_usage_bytes FROM duckdb_memory() WHERE tag = 'ART_INDEX'").fetchall()
    return int(size)


def in_bytes(size: str) -> float:
    number, unit = size.split()
    return float(number) * 1024.0 ** ["bytes", "KiB", "MiB", "GiB", "TiB"].index(unit)


@needs_glibc
@pytest.mark.process
def test_the_threads_of_a_node_share_two_arenas() -> None:
    assert int(output_of(COUNT_ARENAS)) <= 2


@needs_glibc
@pytest.mark.process
def test_a_large_block_goes_back_to_the_system_as_soon_as_it_is_free() -> None:
    assert output_of(LARGE_BLOCKS) == "True True"


@needs_glibc
@pytest.mark.process
def test_trimming_gives_back_what_lies_free_between_blocks_in_use() -> None:
    assert output_of(TRIM) == "True True"


@needs_glibc
@pytest.mark.process
def test_what_a_batch_of_long_texts_took_of_the_model_goes_back_to_the_system(model_cache: Path) -> None:
    assert output_of(LONG_BATCH, str(model_cache)) == "True"


@needs_glibc
@pytest.mark.process
def test_what_a_heavy_query_took_goes_back_to_the_system() -> None:
    assert output_of(HEAVY_QUERY) == "True True"
