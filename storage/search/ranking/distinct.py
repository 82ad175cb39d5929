"""The nearest clusters to a vector: of the records that state the same, one stands for all."""

from __future__ import annotations

import math

import numpy as np

from storage.search.records.clusters import Clusters
from storage.search.records.filter_cache import AllowList
from storage.search.records.matches import DocumentMatches
from storage.search.vectors.space import Space

WIDER = 4
"""This many times as much is looked at when many of the nearest records state the same."""


def nearest_clusters(
    space: Space, clusters: Clusters, vector: np.ndarray, k: int, allowed: AllowList, *, excerpts: bool = False
) -> DocumentMatches:
    """The k clusters that are nearest to the (dim,) unit vector, of the records that are allowed.

    `excerpts`: they are records like others (`Clusters.representatives`).
    """
    size = math.ceil(k * clusters.copies)
    while True:
        near = space.nearest(vector, size, allowed)
        matches = clusters.distinct(near.matches, allowed.labels, excerpts=excerpts)[:k]
        if len(matches) == k or len(near.matches) < size:
            return DocumentMatches(matches, near.fits)
        size *= WIDER
