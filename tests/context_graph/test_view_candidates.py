"""What only a view with a model of its own finds is found: by the view's own index, beside the engine's candidates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import duckdb
import numpy as np
import pytest

from processors.context_graph.read.fingerprints import FingerprintReader
from processors.context_graph.read.goals import Purposes
from processors.context_graph.read.memory_texts import FingerprintCache
from processors.context_graph.read.teleology import OF_A_VIEW, compare, question_of
from processors.context_graph.read.view_models import ViewInput
from processors.context_graph.rules.memories import TOOLSET
from processors.embedding.hashing import HashingEmbedder
from processors.embedding.loader import load_embedder
from processors.embedding.model import encode_query
from processors.embedding.view_model import ViewEncoder
from storage.search.index_set import IndexSet
from storage.search.query import Query
from storage.search.records.filter import Filter
from storage.search.search import search
from storage.search.vectors.model_vector import similarities
from storage.search.vectors.vector_file import text_digest
from storage.writer import Writer
from streams.ids import document_label
from tests.schema import fresh_database
from thalweg.bench.recall import TurnWriter
from thalweg.bench.recall_sets import Turn
from thalweg.views.filling import add_vectors
from thalweg.views.image_folder import ImageFolder

NAME, ASKED, MEANT = "default", "Who is the doctor at the desk?", "A physician treats patients."
LONG = " ".join([*(f"The ferry number {number} leaves at noon." for number in range(80)), "A physician treats them."])
LIMIT = 10
AT = datetime(2026, 1, 1, tzinfo=UTC)
TEXTS = [MEANT, LONG, *(f"Who is it at the desk of the number {number}?" for number in range(28))]
LABELS = {f"t{number}": document_label(NAME, f"t{number}") for number in range(len(TEXTS))}
INPUTS = [ViewInput(LABELS[f"t{number}"], text, text_digest(text)) for number, text in enumerate(TEXTS)]


class Store(NamedTuple):
    """The texts as memories, and a cursor on them."""

    cursor: duckdb.DuckDBPyConnection
    indexes: IndexSet
    embedder: HashingEmbedder


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    database, embedder = fresh_database(), HashingEmbedder(256)
    indexes = IndexSet(tmp_path_factory.mktemp("store"), database.cursor, embedder.info)
    indexes.open({})
    writer = TurnWriter(Writer(database), indexes, embedder, (TOOLSET, "text"))
    for number, text in enumerate(TEXTS):
        writer.write(NAME, Turn(f"t{number}", None, AT, text))
    indexes.maintain()
    yield Store(database.cursor(), indexes, embedder)
    indexes.close(save=False)
    database.close()


@pytest.fixture(scope="module")
def minilm(model_cache: Path) -> ViewEncoder:
    embedder = load_embedder("minilm", cache_dir=model_cache)
    assert embedder is not None
    return ViewEncoder(7, embedder)


def found(store: Store, view: int | None = None) -> list[str]:
    """The ids that are compared with the question, in their order."""
    vector, tokens = encode_query(store.embedder, ASKED)
    query = Query(ASKED, vector, Filter(NAME, toolsets=(TOOLSET,)), LIMIT, tokens, store.embedder.info.space)
    reader = FingerprintReader(store.cursor, store.indexes, store.embedder, FingerprintCache(), NAME)
    return list(compare(reader, question_of(reader, Purposes(), query.text, AT), query, None, view=view).ids)


def test_a_memory_that_neither_words_nor_the_engines_model_find_is_compared_once_a_view_has_a_model(
    store: Store, minilm: ViewEncoder
) -> None:
    before = found(store)
    assert "t0" not in before and len(before) == LIMIT
    views = store.indexes.views
    space = views.open(7, minilm)
    add_vectors(space, minilm, INPUTS, ImageFolder(None))
    assert found(store) == before, "while the space is built the engine's candidates are compared alone"
    views.serve(7, space)
    after = found(store)
    assert after[:LIMIT] == before and "t0" in after and len(after) <= LIMIT + OF_A_VIEW
    alone = found(store, view=7)
    nearest = space.nearest(minilm.encode_query(ASKED), LIMIT, np.array(sorted(LABELS.values()), np.int64))
    assert {label for label, _ in nearest} <= {LABELS[one] for one in alone}, "all that the view ranks first"
    assert len(found(store, view=12)) == LIMIT, "a view without a model adds nothing"


def test_the_end_of_a_long_text_is_found_by_its_passage(minilm: ViewEncoder) -> None:
    [long] = minilm.encode_stored([LONG])
    assert len(long.passages) > 2
    [[whole]] = [similarities(minilm.encode_query("doctor"), [long])]
    short = [similarities(minilm.encode_query("doctor"), [part])[0] for part in long.passages]
    assert whole == max(short) == short[-1] and short[-1] > short[0] + 0.05


def test_a_search_of_the_engine_ranks_what_a_view_found_beside_its_candidates(
    store: Store,
) -> None:
    vector, tokens = encode_query(store.embedder, ASKED)
    query = Query(ASKED, vector, Filter(NAME, toolsets=(TOOLSET,)), 1000, tokens, store.embedder.info.space, pool=5)
    without = [hit.record_id for hit in search(store.cursor, store.indexes, query).hits]
    hits = search(store.cursor, store.indexes, replace(query, candidates=[LABELS["t0"]])).hits
    assert "t0" not in without and sorted([*without, "t0"]) == sorted(hit.record_id for hit in hits)
