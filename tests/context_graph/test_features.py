"""What is kept of texts for the views: rows that say what the texts would say, to the last bit."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from processors.context_graph.read.fingerprints import FingerprintReader
from processors.context_graph.read.memory_texts import FingerprintCache, MemoryTexts, feature_space
from processors.context_graph.rules.fusion import confidences, trust
from processors.context_graph.rules.memories import TOOLSET
from processors.context_graph.rules.synergy import INITIAL
from processors.context_graph.rules.views.alignment import alignments
from processors.context_graph.rules.views.fingerprint import Fingerprint, text_features
from processors.context_graph.rules.views.lexical import pieces_of
from processors.context_graph.rules.views.pools import pools_of, pools_of_each
from processors.context_graph.rules.views.spans import CAUSE, EFFECT, HEAD, TAIL
from processors.context_graph.rules.views.stored_text import StoredText, pack_text, unpack_text
from processors.context_graph.rules.views.times import Moment
from processors.embedding.loader import load_embedder
from processors.embedding.model import TokenEmbedder, encode_query
from processors.embedding.query import EncodedQuery
from storage.search.vectors.token_vectors import unit
from streams.ids import document_label
from tests.context_graph.conftest import ModelNode
from tests.valence_kb.conftest import Agent
from thalweg.bench.scratch import texts

SENTENCES = texts(30, words=24)
OTHERS = [
    "The build failed because the cache was stale.",
    "Why did the build fail? Because the cache was stale. Anna keeps a quokka.",
    "func ParseConfigFile(path string) error { return nil }",
    'def load_index(path): return {"rows": [1, 2, 3]}',
    "机器学习因为数据多",
    "Der Build schlug fehl, weil der Cache alt war.",
    "?!",
    "🦘",
    "The gulls nest on the north wall of the harbour, and the tide turns. " * 40,
    "See docs/index.md and the screenshot build.png: 3.14, naïve façade.",
]
QUERIES = [" ".join(text.split()[at : at + 5]) for text in [*SENTENCES, *OTHERS] for at in range(8)]
"""320 of them; those behind the end of a text are empty words."""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory, model_cache: Path) -> Iterator[ModelNode]:
    """A node with memories of all kinds, half of them of a session, and the row of each."""
    node = ModelNode(tmp_path_factory.mktemp("features"), load_embedder("minilm", cache_dir=model_cache))
    asyncio.run(_store(node))
    _keep_rows(node)
    yield node
    node.close()


async def _store(node: ModelNode) -> None:
    agent = Agent(node)
    for number, content in enumerate([*SENTENCES, *OTHERS]):
        node.connection.open_session_id = "spring" if number % 2 else None
        await agent.call("store_memory", content=content)


def _keep_rows(node: ModelNode) -> None:
    space = feature_space(node.indexes.space().model.space)  # type: ignore[attr-defined]
    file = node.indexes.features.open(space)
    file.add(made(node).rows_of(labels(node)))
    node.indexes.features.serve(space, file)


def made(node: ModelNode) -> MemoryTexts:
    assert isinstance(node.embedder, TokenEmbedder)
    cursor = node.store.database.cursor()
    return MemoryTexts(cursor, node.indexes, node.embedder, FingerprintCache(), "default")


def labels(node: ModelNode) -> list[int]:
    return [document_label("default", one) for one in ids(node)]


def ids(node: ModelNode) -> list[str]:
    rows = node.store.database.cursor().execute("SELECT memory_id FROM context_memories ORDER BY label").fetchall()
    return [one for (one,) in rows]


def reader(node: ModelNode, namespace: str = "default") -> FingerprintReader:
    cursor = node.store.database.cursor()
    return FingerprintReader(cursor, node.indexes, node.embedder, FingerprintCache(), namespace)


def read(node: ModelNode) -> list[Fingerprint]:
    return [one for one in reader(node).stored(ids(node)) if one is not None]


def without_rows(node: ModelNode) -> list[Fingerprint]:
    serving, node.indexes.features._serving = node.indexes.features._serving, None
    try:
        return read(node)
    finally:
        node.indexes.features._serving = serving


def test_every_query_finds_in_the_rows_what_it_finds_in_the_texts(
    node: ModelNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = without_rows(node)
    monkeypatch.setattr("processors.context_graph.read.memory_texts.text_features", None)  # no text is looked at
    kept = read(node)
    monkeypatch.undo()
    assert len(kept) == len(fresh) == len(SENTENCES) + len(OTHERS) and len(QUERIES) == 320
    of, embedder = reader(node), node.embedder
    assert embedder is not None
    for text in QUERIES:
        encoded = EncodedQuery(*encode_query(embedder, text), embedder.info.space)
        query = of.of_text(of.unencoded(text, node.clock.now(), session_id="spring"), encoded, labels(node))
        assert np.array_equal(alignments(query, kept), alignments(query, fresh), equal_nan=True), text


@pytest.mark.parametrize(("tool", "asked"), [("search_graph", "query"), ("search_teleological", "query_content")])
async def test_a_search_answers_the_same_with_rows_and_without(node: ModelNode, tool: str, asked: str) -> None:
    agent = Agent(node)

    async def answers() -> list[Any]:
        node.services.parts.pop(FingerprintCache, None)
        return [(await agent.call(tool, **{asked: text}))["results"] for text in QUERIES[::16]]

    with_rows = await answers()
    serving, node.indexes.features._serving = node.indexes.features._serving, None
    try:
        assert await answers() == with_rows
    finally:
        node.indexes.features._serving = serving
    assert all(with_rows)


def test_a_sentence_takes_less_than_a_kilobyte(node: ModelNode) -> None:
    sizes = [len(body) for _, _, body in made(node).rows_of(labels(node)[:50])]
    assert max(sorted(sizes)[: len(SENTENCES)]) < 1000


def test_a_row_of_another_number_of_tokens_is_not_believed(node: ModelNode) -> None:
    fresh, texts_of, features = without_rows(node), made(node), node.indexes.features
    space = feature_space(node.indexes.space().model.space)  # type: ignore[attr-defined]
    serving, wrong = features._serving, features.open(space + " wrong")
    rows = {label: unpack_text(body) for label, _, body in texts_of.rows_of(labels(node))}
    other = replace(next(iter(rows.values())), flags=None)  # another text's
    wrong.add([(label, b"", pack_text(replace(other, token_count=one.token_count + 1))) for label, one in rows.items()])
    features._serving = space, wrong
    try:
        found = read(node)
    finally:
        features._serving = serving
    assert np.array_equal(alignments(fresh[0], found), alignments(fresh[0], fresh), equal_nan=True)


def test_another_namespace_reads_none_of_them(node: ModelNode) -> None:
    assert reader(node, "other").stored(ids(node)) == [None] * len(ids(node))
    texts_of = replace(made(node), namespace="other")
    assert texts_of.rows_of(labels(node)) == []


def test_a_memory_that_waits_for_its_vectors_gets_no_row(node: ModelNode) -> None:
    assert made(node).rows_of([document_label("default", "not embedded")]) == []


@pytest.mark.parametrize("text", [*OTHERS, "What led to the outage?", ""])
@pytest.mark.parametrize("session", [None, "", "spring 🦘"])
def test_the_bytes_of_a_text_give_it_back(text: str, session: str | None) -> None:
    features = text_features(text, "code")
    flags = np.arange(4 * 7).reshape(4, 7) % 3 == 0 if features.spans else None
    place = None if session is None else 3
    before = StoredText(Moment(1.5e9 + 1 / 3, session, place, 12), features, 7, flags)
    after = unpack_text(pack_text(before))
    assert (after.moment, after.token_count) == (before.moment, 7)
    assert after.features.spans.asked == features.spans.asked and after.features.terms.length == features.terms.length
    pairs = [
        (after.features.terms.counts.numbers, features.terms.counts.numbers),
        (after.features.terms.counts.weights, features.terms.counts.weights),
        (after.features.code.numbers, features.code.numbers),
        (after.features.code.weights, features.code.weights),
        (after.features.bits, features.bits),
        (after.features.kind, features.kind),
    ]
    assert all(found.dtype == wanted.dtype and np.array_equal(found, wanted) for found, wanted in pairs)
    assert (after.flags is None) == (flags is None) and (flags is None or np.array_equal(after.flags, flags))


def test_where_the_next_memory_would_stand_is_what_the_table_says_as_memories_come(node: ModelNode) -> None:
    cursor, follower = node.store.database.cursor(), FingerprintCache().places
    for content in ("One more memory.", "And another one."):
        position, sessions, _ = follower.view(cursor, "default")
        told = cursor.execute(
            'SELECT max("offset") + 1, count(*) FILTER (session_id = ?) FROM documents '
            "WHERE namespace = 'default' AND toolset = ?",
            ["spring", TOOLSET],
        ).fetchone()
        assert (position, sessions["spring"]) == told
        asyncio.run(_store_one(node, content))
    assert follower.view(cursor, "default").sessions["spring"] == sessions["spring"] + 1
    assert follower.view(cursor, "nobody")[:2] == (0, {})


async def _store_one(node: ModelNode, content: str) -> None:
    node.connection.open_session_id = "spring"
    await Agent(node).call("store_memory", content=content)


def test_the_pools_of_several_texts_are_those_of_each() -> None:
    chance = np.random.default_rng(1)
    marked = []
    for count, asked in ((0, None), (1, None), (30, CAUSE), (200, None), (30, EFFECT), (9, None)):
        flags = chance.random((4, count)) < 0.3 if count != 9 else None
        marked.append((unit(chance.normal(size=(count, 128)).astype(np.float32)), flags, asked))
    for found, one in zip(pools_of_each(marked), marked, strict=True):
        vectors, flags, asked = one
        alone = pools_of(*one)
        assert (found is None) == (alone is None) == (not len(vectors))
        if found is None or alone is None:
            continue
        assert np.array_equal(found.rows, alone.rows) and found.is_causal == alone.is_causal
        whole = unit(vectors.mean(0, keepdims=True))[0]
        for kind in (CAUSE, EFFECT, HEAD, TAIL):
            is_pair = flags is not None and flags[kind].any() and (asked is None or kind in (CAUSE, EFFECT))
            if is_pair and flags is not None and flags[kind ^ 1].any():
                assert np.array_equal(found.rows[kind], unit(vectors[flags[kind]].mean(0, keepdims=True))[0])
            elif flags is None:
                assert np.array_equal(found.rows[kind], whole)


def test_word_pieces_are_counted_whatever_their_numbers_and_order() -> None:
    for ids_of in ([], [65_535], [0, 65_535, 0], [7, 3, 3, 7, 7, 0]):
        found = pieces_of(np.array(ids_of, np.uint16))
        numbers, counts = np.unique(np.array(ids_of, np.int64), return_counts=True)
        assert np.array_equal(found.numbers, numbers)
        assert np.array_equal(found.weights, np.log1p(counts).astype(np.float32))


def test_the_confidence_in_several_is_the_trust_in_each() -> None:
    chance = np.random.default_rng(2)
    aligned = np.where(chance.random((50, 13)) < 0.2, np.nan, chance.uniform(-1, 1, (50, 13)))
    each = [trust(row, INITIAL).value for row in aligned]
    assert confidences(aligned, INITIAL) == pytest.approx(each, abs=1e-12)
    assert len(set(each)) == 50
