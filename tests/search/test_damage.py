"""R11: a damaged index is detected before it is loaded, and built again from the tables, with the same content (I7)."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from storage.search import index_set as index_module
from storage.search.files.sealed import MANIFEST, open_sealed, seal
from storage.search.index_set import IndexSet
from storage.search.query import Query
from storage.search.records.filter import Filter
from storage.search.search import search
from storage.search.vectors import vector_index as vector_module
from storage.search.words import backfill as words_module
from storage.search.words.keyword_index import KeywordIndex
from tests.search.store import EMBEDDER, MODEL, Store

pytestmark = pytest.mark.process  # an index is built for each kind of damage

ROWS = 300


@pytest.fixture(scope="module", autouse=True)
def small_limits() -> Iterator[None]:
    """So that a few hundred rows use the graph, and more than fifty missing ones are a rebuild."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector_module, "EXACT_LABELS", 100)
        patch.setattr(vector_module, "EXACT_ROWS", 100)
        patch.setattr(words_module, "CATCH_UP_ROWS", 50)
        patch.setattr(index_module, "CATCH_UP_ROWS", 50)
        patch.setattr(index_module, "SAVE_ROWS", 50)
        yield


@pytest.fixture(scope="module")
def whole(small_limits: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store's file and whole indexes of it, made once; tests have copies."""
    folder = tmp_path_factory.mktemp("whole")
    store = Store()
    for number in range(ROWS):
        store.write(f"r{number}", f"river number{number} bends w{number % 11}")
    indexes = store.open(folder / "indexes")
    assert indexes.wait_ready(60)
    indexes.close()
    store.save(folder / "store.duckdb")
    return folder


@pytest.fixture
def store(whole: Path) -> Store:
    return Store(whole / "store.duckdb", offset=ROWS)


@pytest.fixture
def saved(whole: Path, tmp_path: Path) -> Path:
    """A directory with whole indexes of the store."""
    return Path(shutil.copytree(whole / "indexes", tmp_path / "saved"))


def assert_equal_to_table(indexes: IndexSet, store: Store) -> None:
    expected = np.sort(store.connection.execute("SELECT label FROM documents").fetchnumpy()["label"])
    for labels in indexes.labels():
        assert (labels == expected).all()
    cursor = store.connection.cursor()
    for number in (0, ROWS // 2, ROWS - 1):
        text = f"river number{number} bends w{number % 11}"
        found = search(cursor, indexes, Query(text, EMBEDDER.encode([text])[0], Filter("a"), 5))
        assert found.hits[0].record_id == f"r{number}"
        assert found.hits[0].sides.keys() >= {"vector", "keyword"}


def body_of(folder: Path) -> Path:
    """The largest file of an index: the graph, or a segment."""
    return max((path for path in folder.iterdir() if path.is_file()), key=lambda path: path.stat().st_size)


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def flip(at: float) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        content = bytearray(path.read_bytes())
        content[min(len(content) - 1, int(at * len(content)))] ^= 0x10
        path.unlink()  # not through the hard link: the copy that is in use stays as it was
        path.write_bytes(content)

    return damage


def zero_sector(path: Path) -> None:
    content = bytearray(path.read_bytes())
    start = len(content) // 2
    content[start : start + 512] = bytes(len(content[start : start + 512]))
    path.unlink()
    path.write_bytes(content)


def lengthen(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"\0" * 100)


DAMAGE: dict[str, Callable[[Path], None]] = {
    "truncated": cut,
    "emptied": empty,
    "a bit flipped in the header": flip(0.0),
    "a bit flipped in the body": flip(0.6),
    "a bit flipped in the last byte": flip(1.0),
    "a sector zeroed": zero_sector,
    "bytes appended": lengthen,
    "missing": Path.unlink,
}


@pytest.mark.parametrize("part", ["vectors", "keywords"])
@pytest.mark.parametrize("which", [body_of, lambda folder: folder / MANIFEST], ids=["body", "manifest"])
@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_any_damage_is_detected_and_the_index_is_built_again(
    store: Store, saved: Path, part: str, which: Callable[[Path], Path], damage: Callable[[Path], None]
) -> None:
    damage(which(saved / part))
    assert open_sealed(saved / part) is None
    indexes = store.open(saved)
    assert indexes.wait_ready(60)
    assert_equal_to_table(indexes, store)
    indexes.close()
    assert open_sealed(saved / part) is not None


def test_whole_indexes_are_used_as_they_are(store: Store, saved: Path) -> None:
    indexes = store.open(saved)
    assert indexes.state()["keyword"]["state"] == "ready"
    assert indexes.state()["vector"] == {
        "state": "ready",
        "model": MODEL.model_id,
        "space": MODEL.space,
        "count": ROWS,
        "unlinked": 0,
    }
    assert_equal_to_table(indexes, store)
    indexes.close()


@pytest.mark.parametrize("more", [1, 40, 200])
def test_indexes_older_than_the_table_are_caught_up(store: Store, saved: Path, more: int) -> None:
    for number in range(more):
        store.write(f"new{number}", f"lake number{number}")
    indexes = store.open(saved)
    assert indexes.wait_ready(60)
    assert_equal_to_table(indexes, store)
    indexes.close()


def test_indexes_newer_than_the_table_are_built_again(saved: Path) -> None:
    younger = Store()  # the store was deleted and has replayed a part of the log
    for number in range(ROWS // 2):
        younger.write(f"r{number}", f"river number{number} bends w{number % 11}")
    indexes = younger.open(saved)
    assert indexes.wait_ready(60)
    expected = np.sort(younger.connection.execute("SELECT label FROM documents").fetchnumpy()["label"])
    for labels in indexes.labels():
        assert (labels == expected).all()
    indexes.close()


def test_indexes_of_another_table_with_the_same_positions_are_built_again(saved: Path) -> None:
    other = Store()
    for number in range(ROWS):
        other.write(f"other{number}", f"mountain number{number}")
    indexes = other.open(saved)
    assert indexes.wait_ready(60)
    assert search(other.connection.cursor(), indexes, Query("river", None, Filter("a"), 5)).hits == []
    expected = np.sort(other.connection.execute("SELECT label FROM documents").fetchnumpy()["label"])
    for labels in indexes.labels():
        assert (labels == expected).all()
    indexes.close()


def test_while_it_is_rebuilt_searches_are_answered_from_the_table(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(IndexSet, "_rebuild", lambda self: None)  # a rebuild that has not got anywhere yet
    indexes = store.open(tmp_path)
    assert indexes.state()["keyword"]["state"] == "rebuilding"
    cursor = store.connection.cursor()
    vector = EMBEDDER.encode(["river number17 bends w6"])[0]
    found = search(cursor, indexes, Query("number17 bending", vector, Filter("a"), 5))
    assert found.hits[0].record_id == "r17"
    assert found.hits[0].sides.keys() >= {"vector", "keyword"}
    indexes.close()


def test_what_is_written_during_a_rebuild_is_in_the_index_afterwards(store: Store, tmp_path: Path) -> None:
    indexes = store.open(tmp_path)
    for number in range(60):
        store.write(f"during{number}", f"flood number{number}", to=indexes)
        indexes.maintain()
    assert indexes.wait_ready(60)
    indexes.maintain()
    assert_equal_to_table(indexes, store)
    indexes.close()


def test_what_a_rebuild_leaves_in_memory_goes_while_no_call_runs(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    released: list[object] = []
    indexes = store.open(tmp_path)
    assert indexes.state()["is_rebuilding"] and indexes.wait_ready(60)
    monkeypatch.setattr("storage.search.index_set.release_buffers", released.append)
    with indexes.serving():
        indexes.maintain()
        assert not released  # the query of the call may fail
    indexes.maintain()
    indexes.maintain()
    assert len(released) == 1
    indexes.close()


CRASHING = """
import sys
from pathlib import Path
from tests.search.store import Store
store = Store()
for number in range(30):
    store.write(f"r{number}", f"river number{number} bends w{number % 11}")
indexes = store.open(Path(sys.argv[1]))
while indexes.unlinked:
    indexes.maintain()
indexes.save()
store.write("r30", "river number30 bends w8", to=indexes)
indexes.maintain()
indexes.save()
"""


@pytest.mark.crash
@pytest.mark.parametrize(
    "failpoint", [f"{name}:{count}:kill" for name in ("mid_index_save", "after_rename") for count in (1, 2, 17)]
)
def test_a_kill_in_the_middle_of_a_save_leaves_either_the_old_or_the_new_index(tmp_path: Path, failpoint: str) -> None:
    environment = {**os.environ, "THALWEG_FAILPOINT": failpoint, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", CRASHING, str(tmp_path)], env=environment, timeout=60, check=False)
    store = Store()
    for number in range(31):
        store.write(f"r{number}", f"river number{number} bends w{number % 11}")
    indexes = store.open(tmp_path)
    assert indexes.wait_ready(60)
    expected = np.sort(store.connection.execute("SELECT label FROM documents").fetchnumpy()["label"])
    for labels in indexes.labels():
        assert (labels == expected).all()
    indexes.close()


def test_a_failed_save_leaves_the_former_content(tmp_path: Path) -> None:
    def full(path: Path) -> None:
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    seal(tmp_path, {"graph": lambda path: path.write_bytes(b"whole") and None}, {"n": 1})
    with pytest.raises(OSError, match="No space"):
        seal(tmp_path, {"graph": full}, {"n": 2})
    sealed = open_sealed(tmp_path)
    assert sealed is not None
    assert sealed.facts == {"n": 1}
    assert sealed.files["graph"].read_bytes() == b"whole"
    seal(tmp_path, {"graph": lambda path: path.write_bytes(b"again") and None}, {"n": 3})
    assert len(list(tmp_path.iterdir())) == 2


def test_a_format_of_another_version_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.search.files.sealed.FORMAT", 999)
    seal(tmp_path, {}, {})
    monkeypatch.undo()
    assert open_sealed(tmp_path) is None


def test_an_unsaved_keyword_index_leaves_nothing_behind_but_its_snapshot(tmp_path: Path) -> None:
    index = KeywordIndex(tmp_path)
    index.add([(1, "a", "river")])
    index.commit()
    index.close()
    assert KeywordIndex.load(tmp_path) is None
