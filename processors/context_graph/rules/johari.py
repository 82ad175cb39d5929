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
NOVEL_S = 300
"""After this many seconds of novelty alone a dream is advised, whatever the quadrant."""
INCOHERENT_BELOW = 0.4
REASONS: dict[Action, str] = {
    "direct_recall": "What comes is known and fits what is here: search before you work it out again.",
    "trigger_dream": "What comes is new and stands alone: a dream joins it with what it has something in common with. "
    "It begins while hardly anything is stored or recalled, or with `force`.",
    "get_neighborhood": "What came last fits badly with what is here, though it is not new: read what lies around it.",
    "epistemic_action": "What came last is new, and its neighbours agree with each other: check it against them.",
}
"""Why each action is advised."""


def quadrant(entropy: float, coherence: float) -> Quadrant:
    """The quadrant of two numbers in [0, 1]; the cut itself counts as low. Raises ValueError for NaN."""
    if math.isnan(entropy) or math.isnan(coherence):
        raise ValueError("there is no quadrant of NaN")
    if coherence > CUT:
        return "Unknown" if entropy > CUT else "Open"
    return "Blind" if entropy > CUT else "Hidden"


def advised(entropy: float, coherence: float, novel_s: float) -> Action:
    """What to do next; `novel_s`: for how many seconds nearly everything that came was new."""
    if novel_s >= NOVEL_S:
        return "trigger_dream"
    if coherence < INCOHERENT_BELOW:
        return "epistemic_action" if entropy > CUT else "get_neighborhood"
    return ACTIONS[quadrant(entropy, coherence)]
