"""What the tools of calibration share: the domain's argument, and how metrics are listed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from processors.context_graph.rules.thresholds import DOMAINS, GENERAL

DOMAIN: Mapping[str, Any] = {
    "type": "string",
    "enum": list(DOMAINS),
    "default": GENERAL,
    "description": "Which domain's thresholds",
}
_MAYBE = {"type": ["number", "null"], "minimum": 0}
METRICS: Mapping[str, Any] = {
    "type": "object",
    "description": "Null before ten results were judged",
    "properties": {
        "ece": {**_MAYBE, "description": "Mean gap between what is said and what is right"},
        "mce": {**_MAYBE, "description": "The worst bin's gap"},
        "brier": {**_MAYBE, "description": "Mean squared error"},
        "sample_count": {"type": "integer", "description": "Judged results that count"},
    },
}
