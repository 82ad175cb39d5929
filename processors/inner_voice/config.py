"""Defaults of the retrieval of snippets, from the `SURR_*` variables.

They are checked once, at startup; a call may override them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

MAX_TOP_K = 50
DEFAULT_MIN_FLOOR = 0.15
DEFAULT_CANDIDATES = 150
Warn = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class InnerVoiceConfig:
    """Defaults and bounds of a retrieval. `is_quiet`: nothing about a call is logged but that it was made."""

    is_enabled: bool = False
    mix: float = 0.6
    top_k: int = 10
    floor: float = 0.25
    min_floor: float = DEFAULT_MIN_FLOOR
    max_candidates: int = DEFAULT_CANDIDATES
    is_quiet: bool = False

    def candidates(self, top_k: int) -> int:
        """How many of the most similar rows one fetch may give."""
        return min(3 * top_k, at_least(self.max_candidates, top_k))


def at_least(max_candidates: int, top_k: int) -> int:
    """The most candidates of a source; more than configured when they could not fill `top_k`."""
    return max_candidates if max_candidates >= top_k else max(3 * top_k, DEFAULT_CANDIDATES)


def read_config(environ: Mapping[str, str], warn: Warn) -> InnerVoiceConfig:
    """What the variables say. An invalid value is replaced by the nearest one or the default, with a warning."""

    def number(name: str, default: float, low: float, high: float) -> float:
        text = environ.get(name, "").strip()
        value = _number(text)
        if not text:
            return default
        if value is None:
            warn(f"{name} is {text!r}, which is not a number; {default:g} is used.")
            return default
        if not low <= value <= high:
            warn(f"{name} is {text}; it must be from {low:g} to {high:g}: the nearest is used.")
        return min(max(value, low), high)

    top_k = int(number("SURR_INNER_VOICE_TOPK_DEFAULT", 10, 1, MAX_TOP_K))
    return InnerVoiceConfig(
        is_enabled=environ.get("SURR_ENABLE_INNER_VOICE") == "1",
        mix=number("SURR_INNER_VOICE_MIX", 0.6, 0.0, 1.0),
        top_k=top_k,
        floor=number("SURR_INNER_VOICE_FLOOR", 0.25, 0.0, 1.0),
        min_floor=_min_floor(environ, warn),
        max_candidates=_max_candidates(environ, top_k, warn),
        is_quiet=environ.get("MCP_NO_LOG") == "1",
    )


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _min_floor(environ: Mapping[str, str], warn: Warn) -> float:
    name = "SURR_INNER_VOICE_MIN_FLOOR"
    text = environ.get(name, "").strip()
    value = _number(text)
    if not text or (value is not None and 0 < value < 1):
        return value if value is not None else DEFAULT_MIN_FLOOR
    warn(f"{name} is {text!r}; it must lie between 0 and 1: {DEFAULT_MIN_FLOOR:g} is used.")
    return DEFAULT_MIN_FLOOR


def _max_candidates(environ: Mapping[str, str], top_k: int, warn: Warn) -> int:
    name = "SURR_INNER_VOICE_MAX_CANDIDATES_PER_SOURCE"
    text = environ.get(name, "").strip()
    value = _number(text)
    given = DEFAULT_CANDIDATES if not text else 0 if value is None else int(value)
    used = at_least(given, top_k)
    if used != given:
        warn(f"{name} is {text!r}; it must be at least the default top_k {top_k}: {used} is used.")
    return used
