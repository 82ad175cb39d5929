"""What views with a model of their own read: a query through the models, and the memories' texts."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from storage.search.vectors.model_vector import ModelVector
from storage.search.vectors.view_spaces import ViewSpace
from streams.errors import EmbedderUnavailable

if TYPE_CHECKING:
    import duckdb

logger = logging.getLogger(__name__)
_TEXTS = (
    "SELECT label, coalesce(searched, content) FROM context_memories "
    "WHERE label IN (SELECT unnest(?::BIGINT[])) ORDER BY label"
)


def encode_for_views(spaces: Mapping[int, ViewSpace], text: str) -> dict[int, ModelVector]:
    """What each view's model makes of a query; a view whose model fails is left to its stand-in."""
    found = {}
    for view, space in spaces.items():
        try:
            found[view] = space.model.encode_query(text)
        except EmbedderUnavailable as error:
            logger.warning("E%d: %s", view, error.message)
    return found


def memory_labels(cursor: duckdb.DuckDBPyConnection) -> np.ndarray:
    """The label of each memory of all namespaces, sorted."""
    return np.sort(np.asarray(cursor.execute("SELECT label FROM context_memories").fetchnumpy()["label"], np.int64))


def read_view_texts(cursor: duckdb.DuckDBPyConnection, labels: Sequence[int]) -> list[tuple[int, str]]:
    """(label, text) as each of these memories is embedded."""
    return [(int(label), str(text)) for label, text in cursor.execute(_TEXTS, [list(labels)]).fetchall()]
