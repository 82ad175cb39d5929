"""Reads Cognitive Memory's configuration: the threshold of density, and the two judges.

It comes from the node's settings and its environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from processors.cognitive.api_judge import CHAT_FORMS, PER_SECOND, ApiJudge
from processors.cognitive.config import CognitiveConfig
from processors.cognitive.rules.judging import Judge, LexicalJudge, SemanticJudge
from processors.cognitive.rules.text_quality import THRESHOLD
from processors.embedding.api import ApiEmbedder
from processors.embedding.model import Embedder
from processors.embedding.providers import ProviderClient
from streams.errors import SettingsError


def configured(settings: Any, embedder: Embedder | None, environ: Mapping[str, str]) -> CognitiveConfig:
    """What the tools are given. Raises SettingsError for what is not a judge or a threshold."""
    judges = _judge("judge1", settings.judge1, embedder, environ), _judge("judge2", settings.judge2, embedder, environ)
    if settings.judge_stages and not all(isinstance(judge, ApiJudge) for judge in judges):
        raise SettingsError(
            "The setting judge_stages saves calls of providers: judge1 and judge2 must both be models of one."
        )
    missing_key = embedder.missing_key if isinstance(embedder, ApiEmbedder) else None
    return CognitiveConfig(_threshold(environ.get("FIDELITY_THRESHOLD")), judges, settings.judge_stages, missing_key)


def _threshold(text: str | None) -> float:
    try:
        value = THRESHOLD if text is None else float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise SettingsError(f"FIDELITY_THRESHOLD is {text!r}; a number from 0 to 1 is expected.")
    return value


def _judge(setting: str, name: str, embedder: Embedder | None, environ: Mapping[str, str]) -> Judge:
    if name == "lexical":
        return LexicalJudge()
    if name == "semantic":
        return SemanticJudge(embedder)
    provider, _, model = name.partition(":")
    if provider in CHAT_FORMS and model:
        return ApiJudge(provider, model, ProviderClient.configured(provider, PER_SECOND, environ))
    accepted = ", ".join(["lexical", "semantic", *(f"{known}:MODEL" for known in CHAT_FORMS)])
    raise SettingsError(f"The setting {setting} is {name!r}; accepted: {accepted}.")
