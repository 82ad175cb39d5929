"""The thirteen views: what each is for, what it is made of, and whose model it stands in for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

Basis = Literal["model", "tokens", "text", "time"]
"""What a view needs: a model's vector, its token vectors, the text alone, or times."""
COUNT = 13


@dataclass(frozen=True, slots=True)
class View:
    """One view.

    `embedder` 1 to 13; `dimension`, `quantization`, `hertz` and `purpose` are the published ones, `native_dimension` is
    how many numbers there really are. `trained`: a learned model made them. `stands_in_for`: the published model that
    is not used. `derived_from`: the views, or `text` and `time`, that it follows from; views that follow from one are
    not independent opinions. `available` is False where the model in use cannot give it.
    """

    embedder: int
    name: str
    purpose: str
    provider: str
    model: str
    trained: bool
    stands_in_for: str | None
    derived_from: tuple[str, ...]
    dimension: int
    native_dimension: int
    quantization: str
    hertz: float
    basis: Basis
    available: bool = True
    unavailable_because: str | None = None

    @property
    def label(self) -> str:
        """E1 to E13."""
        return f"E{self.embedder}"


_MINILM = "sentence-transformers/all-MiniLM-L6-v2"
_SPARSE_DIMENSION = 30_522


def _of_model(
    embedder: int,
    name: str,
    purpose: str,
    stands_in_for: str,
    dimension: int,
    native: int,
    hertz: float,
    *,
    derived_from: tuple[str, ...],
    quantization: str = "float32",
    basis: Basis = "model",
) -> View:
    return View(
        embedder,
        name,
        purpose,
        "onnxruntime",
        _MINILM,
        True,
        stands_in_for,
        derived_from,
        dimension,
        native,
        quantization,
        hertz,
        basis,
    )


def _computed(
    embedder: int,
    name: str,
    purpose: str,
    model: str,
    stands_in_for: str | None,
    dimension: int,
    native: int,
    hertz: float,
    *,
    quantization: str = "none",
    basis: Basis = "text",
) -> View:
    derived_from = ("time",) if basis == "time" else ("text",)
    return View(
        embedder,
        name,
        purpose,
        "thalweg",
        model,
        False,
        stands_in_for,
        derived_from,
        dimension,
        native,
        quantization,
        hertz,
        basis,
    )


VIEWS: tuple[View, ...] = (
    _of_model(1, "Semantic", "V_meaning", "e5-large-v2", 1024, 384, 40, derived_from=("text",)),
    _computed(2, "Temporal-Recent", "V_freshness", "exponential decay", None, 512, 4, 8, basis="time"),
    _computed(3, "Temporal-Periodic", "V_periodicity", "Fourier", None, 512, 30, 8, basis="time"),
    _computed(4, "Temporal-Positional", "V_ordering", "sinusoidal PE", None, 512, 128, 8, basis="time"),
    _of_model(
        5,
        "Causal",
        "V_causality",
        "Longformer (SCM)",
        768,
        256,
        25,
        derived_from=("E12",),
        quantization="int8",
        basis="tokens",
    ),
    _computed(
        6,
        "Sparse",
        "V_selectivity",
        "word pieces with idf",
        "SPLADE",
        _SPARSE_DIMENSION,
        _SPARSE_DIMENSION,
        4,
        quantization="sparse",
    ),
    _computed(7, "Code", "V_correctness", "split identifiers and kinds of symbols", "Qodo-Embed (AST)", 1536, 1536, 25),
    _of_model(8, "Graph", "V_connectivity", "MiniLM (GNN)", 384, 384, 12, derived_from=("E1",)),
    _computed(9, "HDC", "V_robustness", "trigrams, majority of symbols", None, 1024, 1024, 80, quantization="binary"),
    _of_model(10, "Multimodal", "V_multimodality", "CLIP", 768, 480, 40, derived_from=("E1", "text")),
    _of_model(
        11,
        "Entity",
        "V_factuality",
        "MiniLM (TransE)",
        384,
        256,
        15,
        derived_from=("E12",),
        quantization="int8",
        basis="tokens",
    ),
    _of_model(
        12,
        "Late-Interaction",
        "V_precision",
        "ColBERT",
        128,
        128,
        60,
        derived_from=("text",),
        quantization="int8",
        basis="tokens",
    ),
    _computed(
        13,
        "SPLADE v3",
        "V_keyword_precision",
        "BM25 of stems",
        "SPLADE v3",
        _SPARSE_DIMENSION,
        _SPARSE_DIMENSION,
        4,
        quantization="sparse",
    ),
)
"""E1 to E13 as the default model gives them."""


def views_with(
    model_id: str | None, provider: str | None, *, trained: bool, dimension: int, has_tokens: bool
) -> tuple[View, ...]:
    """The views as another model gives them; `model_id` None: no model at all.

    `dimension`: of the model's vectors. Without token vectors E5, E11 and E12 are unavailable, and E6 counts stems.
    """
    return tuple(_with(view, model_id, provider, trained, dimension, has_tokens) for view in VIEWS)


@dataclass(frozen=True, slots=True)
class OwnModel:
    """The model of its own that a view has. `space`: views of one space are not independent opinions."""

    model: str
    provider: str
    space: str
    dimension: int


def with_own_models(
    views: Sequence[View], models: Mapping[int, OwnModel], live_space: str | None = None
) -> tuple[View, ...]:
    """The views, those with a model of their own as it gives them. `live_space`: of the model that gives E1."""
    first = {} if live_space is None or 1 in models else {live_space: "E1"}
    labels = {f"E{number}" for number in models}
    moved: dict[str, str] = {}
    made = []
    for view in views:
        if (own := models.get(view.embedder)) is None:
            derived_from = tuple(moved.get(one, "text") if one in labels else one for one in view.derived_from)
            moved |= {one: view.label for one in view.derived_from if one in labels and one not in moved}
            made.append(replace(view, derived_from=tuple(dict.fromkeys(derived_from))))
            continue
        made.append(
            replace(
                view,
                provider=own.provider,
                model=own.model,
                trained=True,
                stands_in_for=None,
                derived_from=(first.get(own.space, "text"),),
                native_dimension=own.dimension,
                quantization="sparse" if view.embedder in (6, 13) else "float16",
                available=True,
                unavailable_because=None,
            )
        )
        first.setdefault(own.space, view.label)
    return tuple(made)


def _with(
    view: View, model_id: str | None, provider: str | None, trained: bool, dimension: int, has_tokens: bool
) -> View:
    if view.basis in ("text", "time"):
        return replace(view, model="hashed stems with idf") if view.embedder == 6 and not has_tokens else view
    if model_id is None or provider is None:
        return replace(view, available=False, unavailable_because="no embedder is configured")
    made = replace(view, model=model_id, provider=provider, trained=trained)
    if view.basis == "tokens":
        reason = None if has_tokens else f"{model_id} gives no token vectors"
        return replace(made, available=has_tokens, unavailable_because=reason)
    features = view.native_dimension - 384  # what E10 has beside the model's vector
    return replace(made, native_dimension=dimension + features)
