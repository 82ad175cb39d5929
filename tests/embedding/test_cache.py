"""An embedder that keeps what it said last."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from processors.embedding.cache import MAX_TEXTS, CachingEmbedder, with_cache
from processors.embedding.hashing import HashingEmbedder
from processors.embedding.model import Encoded, ModelInfo, Pieces
from storage.search.vectors.token_vectors import Tokens


class Counting:
    """The hashing embedder, with a token a word; says what it was asked."""

    def __init__(self) -> None:
        self._hashing = HashingEmbedder(16)
        self.asked: list[list[str]] = []

    @property
    def info(self) -> ModelInfo:
        return self._hashing.info

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        return self.encode_tokens(texts).vectors

    def encode_tokens(self, texts: Sequence[str]) -> Encoded:
        self.asked.append(list(texts))
        return Encoded(self._hashing.encode(texts), [_tokens(len(text.split())) for text in texts])

    def piece_starts(self, texts: Sequence[str]) -> list[Pieces]:
        return [Pieces(_tokens(len(text.split())).ids, np.arange(len(text.split()))) for text in texts]


def _tokens(count: int) -> Tokens:
    return Tokens(np.arange(count, dtype=np.uint16), np.ones((count, 1), np.float32), np.ones(count, bool))


def test_a_text_that_was_asked_for_alone_is_read_once_and_comes_with_its_tokens() -> None:
    model = Counting()
    embedder = CachingEmbedder(model)
    [vector] = embedder.encode(["a river bends"])
    both = embedder.encode_tokens(["another", "a river bends", "another"])
    assert model.asked == [["a river bends"], ["another", "another"]]
    assert np.array_equal(
        both.vectors, model._hashing.encode(["another", "a river bends", "another"])
    ) and np.array_equal(both.vectors[1], vector)
    assert [len(tokens.ids) for tokens in both.tokens] == [1, 3, 1]


def test_what_comes_in_batches_is_not_kept_and_what_is_kept_is_bounded() -> None:
    model = Counting()
    embedder = CachingEmbedder(model)
    embedder.encode_tokens(["one", "two"])
    embedder.encode(["one"])
    assert model.asked == [["one", "two"], ["one"]]
    for number in range(MAX_TEXTS + 10):
        embedder.encode([f"text {number}"])
    assert len(embedder._entries) == MAX_TEXTS
    assert embedder.encode_tokens([]).vectors.shape == (0, 16)


class Slow(Counting):
    """Encodes a text alone when it is let go; the first time it fails, if it is to."""

    def __init__(self, *, fails: bool = False) -> None:
        super().__init__()
        self.begun, self.go = threading.Event(), threading.Event()
        self._fails = fails

    def encode_tokens(self, texts: Sequence[str]) -> Encoded:
        is_first = not self.asked
        encoded = super().encode_tokens(texts)
        if is_first:
            self.begun.set()
            assert self.go.wait(5)
            if self._fails:
                raise RuntimeError("no memory")
        return encoded


@pytest.mark.parametrize("texts", [["a river bends"], ["another", "a river bends"]])
def test_a_text_that_another_thread_has_encoded_at_this_moment_is_waited_for(texts: list[str]) -> None:
    model = Slow()
    embedder = CachingEmbedder(model)
    with ThreadPoolExecutor(2) as pool:
        door = pool.submit(embedder.encode, ["a river bends"])
        assert model.begun.wait(5)
        stage = pool.submit(embedder.encode_tokens, texts)
        while len(texts) > 1 and len(model.asked) < 2:  # the other text is encoded meanwhile
            pass
        assert not stage.done()
        model.go.set()
        assert np.array_equal(stage.result(5).vectors[-1], door.result(5)[0])
    assert model.asked == [["a river bends"], *([["another"]] if len(texts) > 1 else [])]


def test_a_text_at_which_another_thread_failed_is_tried_again() -> None:
    model = Slow(fails=True)
    embedder = CachingEmbedder(model)
    with ThreadPoolExecutor(2) as pool:
        door = pool.submit(embedder.encode, ["a river bends"])
        assert model.begun.wait(5)
        stage = pool.submit(embedder.encode, ["a river bends"])
        while not stage.running():
            pass
        model.go.set()
        assert isinstance(door.exception(5), RuntimeError)
        assert np.array_equal(stage.result(5), model._hashing.encode(["a river bends"]))
    assert not embedder._encoding


def test_an_embedder_without_tokens_stays_as_it_is() -> None:
    plain = HashingEmbedder(16)
    assert with_cache(plain) is plain and with_cache(None) is None
    assert isinstance(with_cache(Counting()), CachingEmbedder)
