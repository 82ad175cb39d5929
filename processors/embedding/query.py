"""Encodes a query, or a text that is to be stored, off the event loop. Without a model that answers it gives None."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import numpy as np

from processors.embedding.model import Embedder, encode_documents, encode_query
from storage.search.vectors.token_vectors import Tokens
from streams.errors import EmbedderUnavailable


class EncodedQuery(NamedTuple):
    """A query's unit vector, its tokens when the model gives them, and their space. None when no model answers."""

    vector: np.ndarray | None = None
    tokens: Tokens | None = None
    space: str | None = None


class EncodedDocument(NamedTuple):
    """The unit vector that a text will have once it is stored, and its space. None when no model answers."""

    vector: np.ndarray | None = None
    space: str | None = None


async def encoded_query(embedder: Embedder | None, text: str) -> EncodedQuery:
    """What a search needs of a query's text; empty without an embedder or while it does not answer."""
    if embedder is None:
        return EncodedQuery()
    try:
        vector, tokens = await asyncio.get_running_loop().run_in_executor(None, encode_query, embedder, text)
    except EmbedderUnavailable:
        return EncodedQuery()
    return EncodedQuery(vector, tokens, embedder.info.space)


async def encoded_document(embedder: Embedder | None, text: str) -> EncodedDocument:
    """The vector of a text that is to be stored; empty without an embedder or while it does not answer."""
    if embedder is None:
        return EncodedDocument()
    try:
        vectors = await asyncio.get_running_loop().run_in_executor(None, encode_documents, embedder, [text])
    except EmbedderUnavailable:
        return EncodedDocument()
    return EncodedDocument(vectors[0], embedder.info.space)
