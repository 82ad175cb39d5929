"""An embedder that answers in time or says that it does not: a model that is slow, fails or hangs takes no caller with it.

The door is given its embedder through this. While a call hangs, others are told at once, so that no thread gathers behind it.
Of a long text its beginning is read: nobody waits for a book to be compared.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from processors.embedding.model import Embedder, Encoded, ModelInfo, TokenEmbedder
from streams.errors import EmbedderUnavailable

Result = TypeVar("Result")
LIMIT_S = 2.0
S_PER_TEXT = 0.1
"""What a call may take more for each of its texts."""
THREADS = 4
MAX_CHARS = 20_000
"""About what is embedded of a stored text at once."""

logger = logging.getLogger(__name__)


class TimeLimitedEmbedder:
    """The embedder behind `limit_s` seconds. Whatever it raises is EmbedderUnavailable here."""

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
