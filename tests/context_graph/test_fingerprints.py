"""Fingerprints read from a store: those of memories, and of a text that was just encoded."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import numpy as np
import orjson
import pytest

from processors.context_graph.read.fingerprints import FingerprintReader
from processors.context_graph.read.memory_texts import FingerprintCache
from processors.context_graph.rules.views.alignment import alignments
from processors.context_graph.rules.views.fingerprint import Fingerprint
from processors.embedding.model import encode_query
from processors.embedding.query import EncodedQuery
from streams.codec import encode
from streams.errors import Refused
from streams.events import Event, LoggedEvent
from streams.ids import document_label
from streams.topics import DERIVED
from tests.context_graph.conftest import ModelNode
from tests.talos.embedding_node import EmbeddingNode
from tests.talos.node import SmallNode
from tests.valence_kb.conftest import Agent
from thalweg.bench.functions import read_functions

pytestmark = pytest.mark.process

CAUSED = "The build failed because the cache was stale."
CAUSING = "The cache was stale because the build failed."
LONG = "The gulls nest on the north wall of the harbour, and the tide turns. " * 60


def reader(node: SmallNode, cache: FingerprintCache | None = None, namespace: str = "default") -> FingerprintReader:
    cursor = node.store.database.cursor()
    return FingerprintReader(cursor, node.indexes, node.embedder, cache or FingerprintCache(), namespace)


def asked(node: SmallNode, text: str, of: FingerprintReader | None = None, **more: str) -> Fingerprint:
    assert node.embedder is not None
    encoded = EncodedQuery(*encode_query(node.embedder, text), node.embedder.info.space)
    of = of or reader(node)
    return of.of_text(of.unencoded(text, node.clock.now(), **more), encoded)


async def stored(node: SmallNode, *contents: str, **more: object) -> list[str]:
    agent = Agent(node)
    return [(await agent.call("store_memory", content=each, **more))["fingerprintId"] for each in contents]


def there(prints: list[Fingerprint | None]) -> list[Fingerprint]:
    assert all(prints)
    return [one for one in prints if one is not None]


async def test_a_stored_memory_is_seen_as_its_text_was_before_it_was_stored(model_node: ModelNode) -> None:
    texts = [CAUSED, CAUSING, "func ParseConfigFile(path string) error { return nil }", "机器学习因为数据多"]
    before = [asked(model_node, text) for text in texts]
    ids = await stored(model_node, *texts)
    memories = there(reader(model_node).stored(ids))
    aligned = [alignments(query, [memory])[0] for query, memory in zip(before, memories, strict=True)]
    for text, row in zip(texts, aligned, strict=True):
        views = np.delete(row, [1, 2, 3, 7])  # time went on, and a query has neighbours
        assert views == pytest.approx(1, abs=2e-3), (text, row)
    assert alignments(before[0], memories)[1, 4] < 0.7, "cause and effect are told apart in what is stored, too"


async def test_ids_come_back_in_their_order_and_an_unknown_one_is_none(model_node: ModelNode) -> None:
    ids = await stored(model_node, CAUSED, "Tides turn twice a day.", CAUSING)
    found = reader(model_node).stored([ids[2], "nothing", ids[0], ids[2]])
    assert [one and one.memory_id for one in found] == [ids[2], None, ids[0], ids[2]]
    assert reader(model_node, namespace="other").stored(ids) == [None] * 3


async def test_the_cache_gives_what_the_store_gives_and_keeps_no_more_than_it_may(model_node: ModelNode) -> None:
    ids = await stored(model_node, CAUSED, "Tides turn twice a day.", CAUSING)
    cache = FingerprintCache(2)
    query, cached = asked(model_node, "stale cache"), reader(model_node, cache)
    first = alignments(query, there(cached.stored(ids)))
    space = model_node.indexes.space().model.space  # type: ignore[attr-defined]
    labels = [document_label("default", one) for one in ids]
    assert set(cache.known(space, labels)) == set(labels[1:])
    again = alignments(query, there(cached.stored(ids)))
    assert np.array_equal(first, again, equal_nan=True)
    assert np.array_equal(alignments(query, there(reader(model_node).stored(ids))), again, equal_nan=True)


async def test_a_memory_without_its_vector_yet_is_seen_by_its_words_and_wholly_once_it_has_it(
    model_node: ModelNode,
) -> None:
    cache = FingerprintCache()
    late: list[LoggedEvent] = []
    embed = model_node.embed.facts

    async def wait(logged: list[LoggedEvent]) -> list[list[Event]]:
        late.extend(logged)
        return []

    model_node.embed.facts = wait  # type: ignore[method-assign,assignment]
    ids = await stored(model_node, CAUSED)
    query = asked(model_node, "stale cache")
    [early] = alignments(query, there(reader(model_node, cache).stored(ids)))
    assert np.flatnonzero(np.isnan(early)).tolist() == [0, 4, 5, 7, 9, 10, 11]
    for facts in await embed(late):
        for fact in facts:
            model_node._apply(model_node.store.record(encode(DERIVED.name, fact)))
    [whole] = alignments(query, there(reader(model_node, cache).stored(ids)))
    assert np.isfinite(whole).all()


async def test_of_a_long_text_the_tokens_of_its_passages_count(model_node: ModelNode) -> None:
    ids = await stored(model_node, LONG + CAUSED + " Anna keeps a quokka. " + LONG, "Tides turn twice a day.")
    long, short = there(reader(model_node).stored(ids))
    assert long.codes is not None and short.codes is not None and len(long.codes) > 500 > len(short.codes)
    row, other = alignments(asked(model_node, "quokka"), [long, short])
    assert row[11] > 0.8 > other[11] + 0.3 and np.isfinite(row[[0, 4, 5, 10]]).all()


async def test_cause_and_effect_are_told_apart_in_each_passage_of_a_long_text(model_node: ModelNode) -> None:
    ids = await stored(model_node, LONG + CAUSED, LONG + CAUSING)
    same, turned = alignments(asked(model_node, CAUSED), there(reader(model_node).stored(ids)))[:, 4]
    assert same > turned + 0.2


async def test_a_query_has_its_neighbours_and_a_memory_that_asks_is_none_of_its_own(model_node: ModelNode) -> None:
    ids = await stored(model_node, CAUSED, "A stale cache broke the build.", "Tides turn twice a day.")
    for number in range(8):  # nearer, but of another toolset
        await Agent(model_node).call("journal_write", content=f"{CAUSED} {number}", category="insight")
    of = reader(model_node)
    [first, *_] = there(of.stored(ids))
    query = of.as_query(first)
    assert first.vector is not None and query.neighbours is not None
    others = [one.vector for one in there(of.stored(ids))[1:]]
    mean = np.mean(others, axis=0)  # type: ignore[arg-type]
    assert query.neighbours == pytest.approx(mean / np.linalg.norm(mean), abs=1e-5)
    assert reader(model_node, namespace="empty").as_query(first).neighbours is None


async def test_a_query_knows_how_rare_its_words_are_in_its_namespace(model_node: ModelNode) -> None:
    ids = await stored(model_node, "the server and the quokka", *(f"the server sleeps {n}" for n in range(9)))
    query = asked(model_node, "server quokka")
    rare, frequent = (
        query.rarity.terms[asked(model_node, word).features.terms.counts.numbers[0]] for word in ("quokka", "server")
    )
    assert rare > 2 * frequent
    both, one = alignments(query, there(reader(model_node).stored(ids[:2])))[:, 12]
    assert both > one + 0.4


async def test_the_place_in_the_session_and_the_log_is_the_memorys(model_node: ModelNode) -> None:
    agent = Agent(model_node)
    ids = await stored(model_node, "one", "two", "three")
    places = [one.moment for one in there(reader(model_node).stored(ids))]
    positions = [moment.position for moment in places]
    assert None not in positions and positions == sorted(set(positions))  # type: ignore[type-var]
    model_node.clock.time += timedelta(hours=1)
    assert asked(model_node, "four").moment.position > positions[-1]  # type: ignore[operator]
    assert asked(model_node, "four").moment.at - places[0].at >= 3600
    assert (await agent.call("search_graph", query="one"))["count"]


async def test_a_model_without_tokens_gives_the_views_that_need_none(node: EmbeddingNode) -> None:
    ids = await stored(node, CAUSED, CAUSING)
    rows = alignments(asked(node, "stale cache"), there(reader(node).stored(ids)))
    assert np.flatnonzero(np.isnan(rows[0])).tolist() == [4, 10, 11]


async def test_a_node_without_a_model_still_has_words_and_times(tmp_path: Path) -> None:
    bare = SmallNode(tmp_path)
    ids = await stored(bare, CAUSED)
    query = reader(bare).of_text(reader(bare).unencoded("stale cache", bare.clock.now()), EncodedQuery())
    [row] = alignments(query, there(reader(bare).stored(ids)))
    assert np.flatnonzero(np.isnan(row)).tolist() == [0, 4, 7, 9, 10, 11]
    bare.close()


def test_the_functions_of_transcripts_are_read_once_each_and_a_torn_line_is_passed_over(tmp_path: Path) -> None:
    code = "func ParseConfigFile(path string) (*Config, error) {\n\treturn readFile(path), checkAll(path), nil\n}"
    line = orjson.dumps({"message": {"content": [{"text": f"see\n{code}\n\nfunc open(a int) {{\n}}"}]}})
    (tmp_path / "a.jsonl").write_bytes(line + b"\n" + line + b'\n{"torn')
    functions = read_functions(tmp_path)
    assert [turn.text for turn in functions.turns] == [code]
    assert [question.text for question in functions.questions] == ["parse config file"]
    (tmp_path / "a.jsonl").unlink()
    with pytest.raises(Refused, match="has no"):
        read_functions(tmp_path)
