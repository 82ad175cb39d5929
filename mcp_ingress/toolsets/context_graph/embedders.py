"""The thirteen views as a model gives them."""

from __future__ import annotations

from mcp_ingress.services import Services
from processors.context_graph.rules.views.catalogue import View, views_with
from processors.embedding.model import Embedder, TokenEmbedder


def views_of(embedder: Embedder | None) -> tuple[View, ...]:
    """E1 to E13; those that need a model are unavailable without one."""
    if embedder is None:
        return views_with(None, None, trained=False, dimension=0, has_tokens=False)
    info = embedder.info
    has_tokens = isinstance(embedder, TokenEmbedder)
    return views_with(info.model_id, info.provider, trained=info.trained, dimension=info.dim, has_tokens=has_tokens)


def available_count(services: Services) -> int:
    """How many of the views this node can give."""
    return sum(view.available for view in views_of(services.embedder))
