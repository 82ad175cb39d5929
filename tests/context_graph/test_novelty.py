"""How new a memory is depends on the memories before it, and what is told of it on what is usual there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from processors.context_graph.read.novelty import NoveltyMeter, novelty_of
from processors.context_graph.rules.novelty import (
    LEAST,
    NEIGHBOURS,
    REFERENCE,
    USUAL_COHERENCE,
    USUAL_ENTROPY,
    WINDOW,
    calibrated,
    measure,
    surprise,
)
from storage.context_graph.recent_memories import RecentMemories
from storage.search.vectors.space import EmptySpace
from tests.processors.harness import Store, event

DIM = 16
NOTHING = np.empty((0, DIM), np.float32)


def unit(rows: np.ndarray) -> np.ndarray:
    rows = rows.astype(np.float32)
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def around(direction: int, count: int, seed: int = 0) -> np.ndarray:
    """Unit vectors near to one axis."""
    spread = np.random.default_rng(seed).normal(size=(count, DIM)) * 0.15
    spread[:, direction] += 1
    return unit(spread)


def test_without_a_memory_all_is_new() -> None:
    assert measure(around(0, 1)[0], NOTHING) == (1.0, 0.5)
    assert surprise(around(0, 1)[0], NOTHING) == 1.0


def test_the_same_again_is_not_new_and_what_is_unlike_all_is() -> None:
    history = around(0, 60)
    same, near, far = history[-1], around(0, 1, seed=9)[0], around(3, 1)[0]
    assert measure(same, history[-1:]).entropy == pytest.approx(0, abs=1e-6)
    assert measure(same, history).entropy < measure(far, history).entropy - 0.5
    assert surprise(same, history) == 0.0 < surprise(near, history) < surprise(far, history)


def test_coherence_is_how_near_the_neighbours_are_to_each_other() -> None:
    one_matter = around(0, NEIGHBOURS)
    many = unit(np.eye(DIM)[:NEIGHBOURS] + 0.01)
    between = unit(np.ones(DIM))
    assert measure(between, one_matter).coherence > 0.7 > 0.3 > measure(between, many).coherence
    assert measure(one_matter[0], one_matter[:1]).coherence == 0.5, "of one neighbour nothing is known"


def test_values_stay_in_bounds_also_of_opposites() -> None:
    history = around(0, 30)
    assert measure(-history[0], history).entropy == 1.0 and surprise(-history[0], history) == 1.0
    scattered = unit(np.concatenate([np.eye(DIM)[:5], -np.eye(DIM)[:5]]))
    assert measure(scattered[0], scattered).coherence == 0.0


def test_a_memory_of_long_ago_counts_as_further_away_for_surprise() -> None:
    known, others = around(0, 1)[0], around(5, 30)
    assert surprise(known, np.stack([*others, known])) == 0.0
    assert surprise(around(0, 1, seed=3)[0], np.stack([known, *others])) > 0.5


@pytest.mark.parametrize(("usual", "percent"), [(USUAL_ENTROPY, 80), (USUAL_COHERENCE, 20)])
def test_the_usual_percentile_is_published_as_a_half(usual: float, percent: int) -> None:
    references = [number / 1000 for number in range(1000)]
    published = [calibrated(value, references, usual) for value in (-1, percent / 100 - 0.0005, 0.9995, 2)]
    assert published == [0.0, pytest.approx(0.5, abs=1e-3), pytest.approx(1.0, abs=2e-3), 1.0]
    rising = [calibrated(value / 50, references, usual) for value in range(51)]
    assert rising == sorted(rising)
    assert calibrated(0.3, [0.3] * 100, usual) in (0.5 * 0.5 / usual, 0.5 + 0.5 * (0.5 - usual) / (1 - usual))


def test_a_value_among_too_few_is_told_as_it_is() -> None:
    assert calibrated(0.42, [0.1] * (LEAST - 1), USUAL_ENTROPY) == 0.42
    assert calibrated(0.42, [0.1] * LEAST, USUAL_ENTROPY) == 1.0


class VectorsByLabel(EmptySpace):
    """A space of given vectors that counts what it is asked for."""

    def __init__(self) -> None:
        self.known: dict[int, np.ndarray] = {}
        self.asked = 0

    def vectors(self, labels: np.ndarray) -> dict[int, np.ndarray]:
        self.asked += len(labels)
        return {label: self.known[label] for label in labels.tolist() if label in self.known}


class Memories:
    """Memories in a store, each with its vector in a space."""

    def __init__(self) -> None:
        self.store, self.space, self.meter, self.count = Store(), VectorsByLabel(), NoveltyMeter(), 0

    def keep(self, vectors: np.ndarray, namespace: str = "default") -> None:
        texts = {f"m{number}": vector for number, vector in enumerate(vectors, self.count)}
        self.count += len(texts)
        self.store.publish(
            *(event("context.memory.stored", {"content": text}, id=text, namespace=namespace) for text in texts)
        )
        rows = self.store.sql("SELECT content, label FROM context_memories")
        self.space.known |= {label: texts[text] for text, label in rows if text in texts}

    def measure(self, vector: np.ndarray, namespace: str = "default", space: str = "s") -> Sequence[float]:
        found = novelty_of(vector, self.meter.history(self.store.database.cursor(), namespace, self.space, space))
        return found.entropy, found.coherence, found.compared


def test_what_is_usual_is_learned_once_and_then_only_from_new_memories() -> None:
    memories = Memories()
    memories.keep(around(0, 150))
    usual, unlike = around(0, 1, seed=5)[0], around(7, 1)[0]
    first = memories.measure(usual)
    assert first[2] == WINDOW and first[0] < 1.0 and memories.space.asked == 150
    assert memories.measure(unlike)[0] == 1.0
    assert memories.space.asked == 150 + WINDOW
    memories.keep(around(0, 1, seed=6))
    memories.measure(usual)
    assert memories.space.asked == 150 + WINDOW + WINDOW + 1
    assert memories.measure(usual, space="another")[2] == WINDOW


def test_measuring_with_what_was_learned_before_is_measuring_anew() -> None:
    memories = Memories()
    vectors = np.concatenate([around(0, 130), around(4, 60)])
    for start in range(0, len(vectors), 19):
        memories.keep(vectors[start : start + 19])
        memories.measure(vectors[start])
    probe = around(4, 1, seed=8)[0]
    known = memories.measure(probe)
    memories.meter = NoveltyMeter()
    assert memories.measure(probe) == pytest.approx(known)


def test_the_first_memories_are_no_measure_of_what_is_usual() -> None:
    memories = Memories()
    memories.keep(around(0, 2 * LEAST - 1))
    raw = memories.measure(around(7, 1)[0])[0]
    assert 0.5 < raw < 1.0, "told as it is: one reference is lacking"
    memories.keep(around(0, 1, seed=2))
    assert memories.measure(around(7, 1)[0])[0] == 1.0


def test_a_memory_is_measured_against_the_last_hundred_before_it() -> None:
    memories = Memories()
    memories.keep(np.concatenate([around(5, 30), around(0, WINDOW), around(5, 5, seed=3)]))
    memories.measure(around(0, 1)[0])
    raw = memories.meter._raw
    last = [raw["s", label] for (label,) in memories.store.sql('SELECT label FROM context_memories ORDER BY "offset"')]
    assert [one.entropy > 0.5 for one in last[-5:] if one is not None] == [True] * 5


def test_memories_without_a_vector_and_those_of_others_count_for_nothing() -> None:
    memories = Memories()
    memories.keep(around(0, 40))
    memories.keep(around(7, 40), namespace="elsewhere")
    for label in list(memories.space.known)[:10]:
        del memories.space.known[label]
    entropy, _, compared = memories.measure(around(7, 1)[0])
    assert compared == 30 and entropy > 0.8
    assert memories.measure(around(7, 1)[0], namespace="empty") == (1.0, 0.5, 0)


def test_no_more_is_looked_at_than_the_last_memories() -> None:
    memories = Memories()
    memories.keep(np.concatenate([around(7, 60), around(0, REFERENCE + WINDOW)]))
    memories.measure(around(0, 1)[0])
    assert memories.space.asked == REFERENCE + WINDOW


def test_the_last_memories_are_those_of_the_table_also_when_some_are_stored_again() -> None:
    memories, followed = Memories(), RecentMemories(5)
    cursor = memories.store.database.cursor()
    for text in ("a", "b", "c", "a", "d", "b", "e", "f", "f", "g", "a", "c", "h"):
        known = memories.store.sql("SELECT count(*) FROM context_memories")
        memories.count += 1
        memories.store.publish(event("context.memory.stored", {"content": text}, id=f"e{memories.count}"))
        if memories.store.sql("SELECT count(*) FROM context_memories") == known:
            continue
        rows = memories.store.sql('SELECT label, content FROM context_memories ORDER BY "offset" DESC LIMIT 5')
        names = dict(rows)
        assert [names[label] for label in followed.view(cursor, "default").tolist()] == [name for _, name in rows[::-1]]
    assert followed.view(cursor, "elsewhere").tolist() == []
