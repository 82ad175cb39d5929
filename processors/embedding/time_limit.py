"""An embedder behind a time limit: a model that is slow, fails or hangs does not hold up its callers.

Tools use their embedder through this. While one call hangs, others fail at once, so that threads do not pile up behind
it. Only the beginning of a long text is encoded: comparing a book is not worth the wait.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from processors.embedding.model import Embedder, Encoded, ModelInfo, Pieces, TokenEmbedder
from streams.errors import EmbedderUnavailable

Result = TypeVar("Result")
LIMIT_S = 2.0
S_PER_TEXT = 0.1
"""Added to the limit for each text of a call."""
THREADS = 4
MAX_CHARS = 20_000
"""Characters of a text that are encoded: about what is embedded at once of a stored text."""

logger = logging.getLogger(__name__)


class TimeLimitedEmbedder:
    """An embedder that answers within `limit_s` seconds; every failure of it is EmbedderUnavailable here."""

    def __init__(self, inner: Embedder, limit_s: float = LIMIT_S) -> None:
        self._inner = inner
        self._limit_s = limit_s
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="encode")
        self._late: set[Future[object]] = set()
        self._lock = threading.Lock()

    @property
    def info(self) -> ModelInfo:
        return self._inner.info

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """As the embedder's. Raises EmbedderUnavailable, at the latest when its time is up."""
        return self._in_time(lambda: self._inner.encode(_beginnings(texts)), len(texts))

    def _in_time(self, work: Callable[[], Result], texts: int) -> Result:
        with self._lock:
            self._late = {call for call in self._late if not call.done()}
            if self._late:
                raise EmbedderUnavailable("The embedder has not answered an earlier call yet.")
        running = self._threads.submit(work)
        try:
            return running.result(self._limit_s + S_PER_TEXT * texts)
        except EmbedderUnavailable:
            raise
        except TimeoutError:
            if running.done():
                raise EmbedderUnavailable("The embedder failed (TimeoutError).") from None
            with self._lock:
                self._late.add(running)  # type: ignore[arg-type]
            raise EmbedderUnavailable(f"The embedder did not answer within {self._limit_s:g} s.") from None
        except Exception as error:
            logger.warning("the embedder failed", exc_info=True)
            raise EmbedderUnavailable(f"The embedder failed ({type(error).__name__}).") from error


class TimeLimitedTokenEmbedder(TimeLimitedEmbedder):
    """The same for an embedder that gives its tokens too."""

    def __init__(self, inner: TokenEmbedder, limit_s: float = LIMIT_S) -> None:
        super().__init__(inner, limit_s)
        self._tokens = inner

    def encode_tokens(self, texts: Sequence[str]) -> Encoded:
        """As the embedder's. Raises EmbedderUnavailable, at the latest when its time is up."""
        return self._in_time(lambda: self._tokens.encode_tokens(_beginnings(texts)), len(texts))

    def piece_starts(self, texts: Sequence[str]) -> list[Pieces]:
        """As the embedder's, of the beginnings."""
        return self._tokens.piece_starts(_beginnings(texts))


def _beginnings(texts: Sequence[str]) -> list[str]:
    return [text[:MAX_CHARS] for text in texts]


def with_time_limit(embedder: Embedder | None, limit_s: float = LIMIT_S) -> Embedder | None:
    """The embedder behind its limit of time; None stays None."""
    if embedder is None:
        return None
    return (
        TimeLimitedTokenEmbedder(embedder, limit_s)
        if isinstance(embedder, TokenEmbedder)
        else TimeLimitedEmbedder(embedder, limit_s)
    )
