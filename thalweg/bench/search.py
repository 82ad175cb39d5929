"""`thalweg bench search`: the engine over generated memories, beside the bare indexes on its rows."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import hnswlib
import numpy as np
import tantivy

from processors.embedding.model import Embedder, encode_query
from storage.database import Database
from storage.migrate import migrate
from storage.search.index_set import IndexSet
from storage.search.query import Query
from storage.search.records.filter import Filter
from storage.search.search import Keywords, prefetch, search
from storage.search.vectors.hnsw_graph import EF_CONSTRUCTION, EF_SEARCH, M
from storage.writer import Writer
from streams.clock import SystemClock
from thalweg.bench.examples import SEARCH_P95
from thalweg.bench.recall import load_for_recall
from thalweg.bench.report import Report, Target
from thalweg.bench.scratch import questions, scratch_directory, texts
from thalweg.bench.search_node import measure_node
from thalweg.bench.search_store import NAMESPACE, fill_store, fill_turns
from thalweg.process.gc_tuning import collect_rarely, freeze_startup_objects

RECALL = Target(0.95, at_least=True)
LIMIT = 10
READY_S = 3600.0
WARM_UP = 5
EPSILON = 1e-6
FILTERS = {
    "all": Filter(NAMESPACE),
    "1pct": Filter(NAMESPACE, domains=("rare",)),
    "50pct": Filter(NAMESPACE, kinds=("insight",)),
    "99pct": Filter(NAMESPACE, domains=("common",)),
}


FILTER_MASKS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "all": lambda numbers: numbers >= 0,
    "1pct": lambda numbers: numbers % 100 == 0,
    "50pct": lambda numbers: numbers % 2 == 1,
    "99pct": lambda numbers: numbers % 100 != 0,
}
"""Which memories, by number, each filter leaves: see `search_store`."""


def measure_search(sizes: Sequence[int], count: int, name: str, *, bare: bool = True, turns: int = 0) -> Report:
    """For each size: write a store, build its indexes, and time `count` queries of each kind.

    `turns`: of captured sessions, which lie beside the memories of each store.

    The queries follow one another. Each is encoded by the embedder `name` in the measured time, while another thread
    searches its words.
    """
    embedder = load_for_recall(name)
    about = {"sizes": list(sizes), "n": count, "embedder": name, "limit": LIMIT}
    report = Report("search", about | ({"turns": turns} if turns else {}))
    for size in sizes:
        with scratch_directory() as directory:
            _measure(report, directory, size, count, embedder, name, bare, turns)
    return report


def _measure(
    report: Report, directory: Path, size: int, count: int, embedder: Embedder, name: str, bare: bool, turns: int
) -> None:
    asked = questions(count)
    database = Database(directory)
    try:
        migrate(database.cursor(), SystemClock().now())
        vectors = fill_store(Writer(database), size, embedder)
        fill_turns(Writer(database), turns, embedder)
        engine = _built(report, directory / "indexes", database, embedder, size)
        cursor = database.cursor()
        queries = np.stack([encode_query(embedder, question)[0] for question in asked])
        report.add_quantiles(f"encode_{size}", _timed_ms(count, lambda number: encode_query(embedder, asked[number])))
        with ThreadPoolExecutor(1, thread_name_prefix="listen") as beside:
            reader = database.cursor()
            for chosen, filter in FILTERS.items():

                def ask(number: int, filter: Filter = filter) -> object:
                    text = asked[number]
                    keywords = beside.submit(prefetch, reader, engine, text, filter)  # as the door does (`Call.search`)
                    vector, tokens = encode_query(embedder, text)
                    return search(
                        cursor, engine, Query(text, vector, filter, LIMIT, tokens), Keywords(keywords.result())
                    )

                _ask(report, f"search_{size}_{chosen}", engine, count, ask)
                report.add(
                    f"recall_{size}_{chosen}",
                    _recall(engine, cursor, vectors, queries, filter, FILTER_MASKS[chosen]),
                    "of 10",
                    RECALL,
                )
        engine.close(save=False)
    finally:
        database.close()
    shutil.rmtree(directory / "indexes")
    measure_node(report, directory, size, count, SEARCH_P95, name, turns)
    if bare:
        measure_bare(report, size, vectors, queries, texts(size), asked, directory / "bare")


def _recall(
    engine: IndexSet,
    cursor: duckdb.DuckDBPyConnection,
    vectors: np.ndarray,
    queries: np.ndarray,
    filter: Filter,
    mask: Callable[[np.ndarray], np.ndarray],
) -> float:
    """The share of the true ten nearest (or others exactly as near) that the index finds under the filter."""
    usable = vectors[mask(np.arange(len(vectors)))]
    k = min(LIMIT, len(usable))
    hits = 0
    for query in queries:
        least = np.sort(usable @ query)[-k]
        allowed = engine.records.allowed(cursor, filter)
        hits += sum(cosine >= least - EPSILON for _, cosine in engine.space().nearest(query, k, allowed).matches)
    return float(hits / (k * len(queries)))


def _built(report: Report, directory: Path, database: Database, embedder: Embedder, size: int) -> IndexSet:
    """The engine over indexes made from the tables alone, as after `thalweg rebuild`."""
    shutil.rmtree(directory, ignore_errors=True)
    engine = IndexSet(directory, database.cursor, embedder.info)
    started = time.perf_counter()
    engine.open({})
    engine.wait_ready(READY_S)
    while engine.unlinked:
        engine.maintain()
    report.add(f"indexes_{size}_s", time.perf_counter() - started, "s")
    engine.save()
    collect_rarely()  # as in a node
    freeze_startup_objects()
    return engine


def _ask(report: Report, name: str, engine: IndexSet, count: int, search: Callable[[int], object]) -> None:
    """Time the queries twice: without writes, and with a write before each query.

    After a write the filter is resolved anew.
    """
    report.add_quantiles(name, _timed_ms(count, search), p95=SEARCH_P95)
    report.add_quantiles(
        f"{name}_after_write", _timed_ms(count, search, before=lambda: engine.apply((), ())), p95=SEARCH_P95
    )


def _timed_ms(count: int, ask: Callable[[int], object], before: Callable[[], None] = lambda: None) -> list[float]:
    for number in range(min(WARM_UP, count)):
        ask(number)
    durations = []
    for number in range(count):
        before()
        started = time.perf_counter()
        ask(number)
        durations.append((time.perf_counter() - started) * 1000)
    return durations


def measure_bare(
    report: Report,
    size: int,
    vectors: np.ndarray,
    queries: np.ndarray,
    entries: Sequence[str],
    questions: Sequence[str],
    directory: Path,
) -> None:
    """hnswlib and tantivy by themselves: same rows, same parameters, no table is read."""
    graph = hnswlib.Index("ip", vectors.shape[1])
    graph.init_index(len(vectors), M, EF_CONSTRUCTION)
    graph.add_items(vectors)
    graph.set_ef(EF_SEARCH)
    k = min(LIMIT, size)
    report.add_quantiles(
        f"bare_hnsw_{size}",
        _timed_ms(len(queries), lambda number: graph.knn_query(queries[number], k, num_threads=1)),
        bare=True,
    )
    index = _tantivy(entries, directory)
    searcher = index.searcher()

    def ask(number: int) -> object:
        return searcher.search(index.parse_query(questions[number], ["text"]), LIMIT)

    report.add_quantiles(f"bare_tantivy_{size}", _timed_ms(len(questions), ask), bare=True)


def _tantivy(entries: Sequence[str], directory: Path) -> tantivy.Index:
    directory.mkdir()
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("text")
    index = tantivy.Index(builder.build(), path=str(directory))
    writer = index.writer(num_threads=1)
    for document in _documents(entries):
        writer.add_document(document)
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    return index


def _documents(entries: Sequence[str]) -> Iterator[tantivy.Document]:
    for text in entries:
        yield tantivy.Document(text=text)
