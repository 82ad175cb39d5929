"""A process that is killed while it rebuilds its indexes, token vectors among them.

The next start is whole and answers alike.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from processors.embedding.loader import MINILM
from storage.database import Database
from storage.migrate import migrate
from storage.search.index_set import IndexSet
from storage.search.query import Query
from storage.search.records.filter import Filter
from storage.search.search import search
from storage.search.vectors.backfill import TOKEN_ROWS
from storage.search.vectors.token_vectors import WIDTH, Tokens, pack
from storage.writer import Changes, Writer
from streams.clock import SystemClock
from tests.search.store import START, unit_rows
from thalweg.bench.scratch import texts
from thalweg.bench.search_store import NAMESPACE, label_of_memory, origin_of_memory

pytestmark = [pytest.mark.crash, pytest.mark.timeout(900)]

COUNT, CAUGHT_UP, AT_ONCE = 4_000, 500, 512
REBUILD = f"""
import sys
from pathlib import Path
from processors.embedding.loader import MINILM
from storage.database import Database
from storage.search import index_set
from storage.search.index_set import IndexSet
from storage.search.words import backfill

backfill.CATCH_UP_ROWS, index_set.CATCH_UP_ROWS, backfill.FETCH_ROWS = {CAUGHT_UP}, {CAUGHT_UP}, {AT_ONCE}
database = Database(Path(sys.argv[1]))
indexes = IndexSet(Path(sys.argv[1]) / "indexes", database.cursor, MINILM)
indexes.open({{}})
indexes.wait_ready(300)
"""


def tokens_of(number: int) -> Tokens:
    """What a model might give: every number other tokens, some of them met again."""
    count = 3 + number % 5
    return Tokens(
        (number * 7 + np.arange(count)).astype(np.uint16), unit_rows(count, WIDTH, seed=number), np.ones(count, bool)
    )


def fill(home: Path) -> None:
    database = Database(home)
    migrate(database.cursor(), SystemClock().now())
    said, vectors = texts(COUNT), unit_rows(COUNT, MINILM.dim)
    about = {"toolset": "talos", "kind": "Insight", "session_id": None, "domain": None}
    model = {
        "space": MINILM.space,
        "model_id": MINILM.model_id,
        "dtype": "float32",
        "dim": MINILM.dim,
        "is_trained": True,
    }
    names = [
        {"label": label_of_memory(number), "record_id": f"memory-{number}", **origin_of_memory(number)}
        for number in range(COUNT)
    ]
    documents = [{**name, **about, "text": text, "created_at": START} for name, text in zip(names, said, strict=True)]
    embeddings = [
        {**name, **model, "vector": vectors[at], "tokens": pack(tokens_of(at))} for at, name in enumerate(names)
    ]
    Writer(database).commit(Changes(appended={"documents": documents, "embeddings": embeddings}))
    database.close()


def answers(home: Path) -> tuple[list[list[tuple[str, float]]], dict[int, bytes], list[int]]:
    """What is found for some questions, the token vectors, and the labels of the keyword index, once all is whole."""
    database = Database(home)
    indexes = IndexSet(home / "indexes", database.cursor, MINILM)
    indexes.open({})
    assert indexes.wait_ready(300)
    assert indexes.spaces.live is not None
    found = []
    for number, text in enumerate(texts(5, seed=11)):
        vector = unit_rows(1, MINILM.dim, seed=number)[0]
        query = Query(text, vector, Filter(NAMESPACE), 10, tokens_of(number))
        result = search(database.cursor(), indexes, query)
        assert result.degraded is None
        found.append([(hit.record_id, round(hit.score, 6)) for hit in result.hits])
    tokens = indexes.spaces.live.tokens
    bodies = {label: tokens.packed_body(label) for label in tokens.labels().tolist()}
    labels = indexes.labels()[0].tolist()
    indexes.close()
    database.close()
    return found, bodies, labels


def test_a_kill_at_any_part_of_a_rebuild_leaves_what_the_next_start_makes_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path)
    monkeypatch.setattr("storage.search.words.backfill.CATCH_UP_ROWS", CAUGHT_UP)
    monkeypatch.setattr("storage.search.index_set.CATCH_UP_ROWS", CAUGHT_UP)
    expected = answers(tmp_path)
    assert len(expected[1]) == len(expected[2]) == COUNT
    of_words, of_tokens = -(-COUNT // AT_ONCE), -(-COUNT // TOKEN_ROWS)
    for nth in (1, of_words, of_words + 1, of_words + of_tokens // 2, of_words + of_tokens):
        for path in sorted((tmp_path / "indexes").rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        environment = {
            **os.environ,
            "THALWEG_FAILPOINT": f"mid_index_rebuild:{nth}:kill",
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        killed = subprocess.run(
            [sys.executable, "-c", REBUILD, str(tmp_path)], env=environment, timeout=300, check=False
        )
        assert killed.returncode == -9, nth
        assert answers(tmp_path) == expected, nth
