"""A model that is slow, fails or hangs is an embedder that is away, and holds nobody up."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from processors.embedding.hashing import HashingEmbedder
from processors.embedding.model import Encoded, Pieces
from processors.embedding.time_limit import MAX_CHARS, with_time_limit
from streams.errors import EmbedderUnavailable

SHORT_S = 0.05


class Model(HashingEmbedder):
    """Fails with `error`, and answers when it may."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__()
        self.error = error
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.texts: list[str] = []

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        self.texts += texts
        self.may_answer.wait()
        if self.error is not None:
            raise self.error
        return super().encode(texts)


class TokenModel(Model):
    def encode_tokens(self, texts: Sequence[str]) -> Encoded:
        return Encoded(self.encode(texts), [None] * len(texts))

    def piece_starts(self, texts: Sequence[str]) -> list[Pieces]:
        return [Pieces(np.empty(0, np.uint16), np.empty(0, np.int64))] * len(texts)


@pytest.fixture
def model() -> Iterator[TokenModel]:
    model = TokenModel()
    yield model
    model.may_answer.set()  # its thread would outlive the test


def test_no_embedder_stays_none() -> None:
    assert with_time_limit(None) is None


def test_a_model_in_time_is_as_without_the_limit_and_sees_the_beginning_of_a_long_text(model: TokenModel) -> None:
    limited = with_time_limit(model)
    assert limited.info == model.info
    assert np.array_equal(limited.encode(["a tide"]), HashingEmbedder().encode(["a tide"]))
    assert np.array_equal(limited.encode_tokens(["a tide"]).vectors, HashingEmbedder().encode(["a tide"]))
    limited.encode(["t" * (MAX_CHARS + 1)])
    assert model.texts[-1] == "t" * MAX_CHARS


def test_a_model_without_tokens_offers_none() -> None:
    assert not hasattr(with_time_limit(Model()), "encode_tokens")


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (EmbedderUnavailable("The key is wrong."), "The key is wrong."),
        (TimeoutError(), "The embedder failed (TimeoutError)."),
        (ValueError("dim"), "The embedder failed (ValueError)."),
    ],
)
def test_whatever_a_model_fails_with_its_callers_hear_one_kind_of_error(
    model: TokenModel, error: Exception, sentence: str
) -> None:
    model.error = error
    for encode in (with_time_limit(model).encode, with_time_limit(model).encode_tokens):
        with pytest.raises(EmbedderUnavailable) as caught:
            encode(["a"])
        assert caught.value.message == sentence


def test_while_a_call_hangs_others_fail_at_once_and_after_its_end_they_are_answered(model: TokenModel) -> None:
    limited = with_time_limit(model, SHORT_S)
    model.may_answer.clear()
    with pytest.raises(EmbedderUnavailable, match=r"did not answer within 0\.05 s"):
        limited.encode(["a"])
    with pytest.raises(EmbedderUnavailable, match="has not answered an earlier call"):
        limited.encode(["b"])
    assert model.texts == ["a"]
    model.may_answer.set()
    while True:  # its thread ends at once
        try:
            answered = limited.encode(["c"])
            break
        except EmbedderUnavailable as error:
            assert "earlier call" in error.message
    assert np.array_equal(answered, HashingEmbedder().encode(["c"]))
