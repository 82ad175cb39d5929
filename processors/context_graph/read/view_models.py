"""What views with a model of their own read: a query through the models, and the memories' texts."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

import numpy as np

from processors.context_graph.rules.modalities import IMAGE
from processors.context_graph.rules.pictures import Picture, picture_of
from storage.search.vectors.model_vector import ModelVector
from storage.search.vectors.vector_file import text_digest
from storage.search.vectors.view_spaces import ViewSpace
from streams.errors import EmbedderUnavailable

if TYPE_CHECKING:
    import duckdb

logger = logging.getLogger(__name__)
MAX_CONTENT = 1 << 21
"""Characters of a content that are read: more than any has."""
PATH_CHARS = 4096
"""The beginning of a content says whether it is a picture, and has the whole of a path."""
_INPUTS = (
    "SELECT label, coalesce(searched, content), content_hash, "
    f"CASE WHEN modality = '{IMAGE}' THEN left(content, ?) END FROM context_memories "
    "WHERE label IN (SELECT unnest(?::BIGINT[])) ORDER BY label"
)


@dataclass(frozen=True, slots=True)
class ViewInput:
    """What a model is given of a memory: its text as it is embedded, and of an image where its pixels are."""

    label: int
    text: str
    digest: bytes
    """Of the text; of an image another one, so that an image by its words only is tried again."""
    picture: Picture | None = None


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


def read_view_inputs(
    cursor: duckdb.DuckDBPyConnection, labels: Sequence[int], *, pictures: bool = False, whole: bool = True
) -> list[ViewInput]:
    """These memories for a model, which sees `pictures` or reads their words. Not `whole`: enough for the digest."""
    length = MAX_CONTENT if whole else PATH_CHARS
    found = []
    for label, text, content_hash, content in cursor.execute(_INPUTS, [length, list(labels)]).fetchall():
        picture = None if content is None or not pictures else picture_of(content, IMAGE)
        digest = text_digest(text) if picture is None else text_digest(f"image {content_hash}")
        found.append(ViewInput(label, text, digest, picture))
    return found


def nearest_of_views(
    spaces: Mapping[int, ViewSpace], queries: Mapping[int, ModelVector], k: int, allowed: np.ndarray
) -> list[int]:
    """The k nearest of the allowed (sorted) labels in each of these views, best first, each label once."""
    found = [spaces[view].nearest(vector, k, allowed) for view, vector in queries.items() if view in spaces]
    by_place = zip_longest(*found)
    return list(dict.fromkeys(match[0] for some in by_place for match in some if match is not None))
