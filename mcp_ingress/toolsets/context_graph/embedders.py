"""The thirteen views as a model gives them."""

from __future__ import annotations

from mcp_ingress.services import Services
from processors.context_graph.rules.views.catalogue import OwnModel, View, views_with, with_own_models
from processors.embedding.model import Embedder, TokenEmbedder
from storage.search.vectors.view_spaces import ViewSpaces


def views_of(embedder: Embedder | None) -> tuple[View, ...]:
    """E1 to E13; those that need a model are unavailable without one."""
    if embedder is None:
        return views_with(None, None, trained=False, dimension=0, has_tokens=False)
    info = embedder.info
    has_tokens = isinstance(embedder, TokenEmbedder)
    return views_with(info.model_id, info.provider, trained=info.trained, dimension=info.dim, has_tokens=has_tokens)


def views_of_node(services: Services) -> tuple[View, ...]:
    """E1 to E13 as this node gives them, those with a model of their own as that does."""
    embedder = services.embedder
    return with_models(views_of(embedder), services.indexes.views, None if embedder is None else embedder.info.space)


def with_models(views: tuple[View, ...], spaces: ViewSpaces, live_space: str | None) -> tuple[View, ...]:
    """The views, with the models whose spaces serve."""
    infos = {view: space.model.info for view, space in spaces.serving.items()}
    models = {view: OwnModel(info.model_id, info.provider, info.space, info.dim) for view, info in infos.items()}
    return with_own_models(views, models, live_space)


def available_count(services: Services) -> int:
    """How many of the views this node can give."""
    return sum(view.available for view in views_of_node(services))
