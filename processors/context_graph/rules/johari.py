"""The Johari quadrant of an entropy and a coherence, and the action that it suggests."""

from __future__ import annotations

import math
from typing import Literal

Quadrant = Literal["Open", "Blind", "Hidden", "Unknown"]
Action = Literal["direct_recall", "trigger_dream", "get_neighborhood", "epistemic_action"]
QUADRANTS: tuple[Quadrant, ...] = ("Open", "Hidden", "Blind", "Unknown")
ACTIONS: dict[Quadrant, Action] = {
    "Open": "direct_recall",
    "Blind": "trigger_dream",
    "Hidden": "get_neighborhood",
    "Unknown": "epistemic_action",
}
CUT = 0.5
"""At most this much is low."""
FUZZY = 0.1
"""With less confidence than this a quadrant could as well be another."""


def quadrant(entropy: float, coherence: float) -> Quadrant:
    """The quadrant of two numbers in [0, 1]; the cut itself counts as low. Raises ValueError for NaN."""
    if math.isnan(entropy) or math.isnan(coherence):
        raise ValueError("there is no quadrant of NaN")
    if coherence > CUT:
        return "Unknown" if entropy > CUT else "Open"
    return "Blind" if entropy > CUT else "Hidden"


def confidence(entropy: float, coherence: float) -> float:
    """How far both are from the cut, in [0, 1]; below FUZZY the quadrant says little."""
    return abs(entropy - CUT) + abs(coherence - CUT)
