"""How many examples Hypothesis tries.

Few in the quick suite, many when `THALWEG_THOROUGH` is set (`just thorough`, `.ci/run`).
"""

from __future__ import annotations

import os

from hypothesis import settings

IS_THOROUGH = bool(os.environ.get("THALWEG_THOROUGH"))


def examples(quick: int, thorough: int) -> int:
    """The number for this run."""
    return thorough if IS_THOROUGH else quick


def load_profile() -> None:
    """What holds where a test names no number of its own."""
    settings.register_profile("thalweg", max_examples=examples(20, 100), deadline=None)
    settings.load_profile("thalweg")
