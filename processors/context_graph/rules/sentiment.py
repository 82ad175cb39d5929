"""How much feeling a text carries, by a small list of English words."""

from __future__ import annotations

import re

STRONG, MEDIUM, WEAK, LEARNING, CONFUSION = 0.9, 0.6, 0.3, 0.5, -0.4
_WORDS = {
    STRONG: "amazing awesome brilliant breakthrough delighted excellent fantastic incredible love loved outstanding "
    "perfect thrilled wonderful",
    -STRONG: "awful catastrophe catastrophic crash crashed critical devastated disaster furious hate hated horrible "
    "outage terrible terrified worst",
    MEDIUM: "better enjoy enjoyed excited fixed glad good great happy helpful improved proud solved success successful "
    "win won working works",
    -MEDIUM: "afraid angry annoying bad broken bug error fail failed failure fails frustrated frustrating hurt lost "
    "painful sad stressed struggling worried wrong",
    WEAK: "calm clean easy fine interesting like nice ok okay pleasant simple stable thanks useful",
    -WEAK: "annoyed boring difficult dull hard issue miss missing problem slow tired ugly warning",
    LEARNING: "aha clarified discovered explained insight learned learnt realized realised understand understood",
    CONFUSION: "confused confusing inexplicable mysterious puzzled puzzling strange unclear unexpected unsure weird",
}
_WEIGHTS = {word: weight for weight, words in _WORDS.items() for word in words.split()}
_TOKEN = re.compile(r"[^\W\d_]+")
MOST_WORDS = 2_000
"""Words of a text that are looked at."""


def feeling(word: str) -> float:
    """What one word carries, in [-1, 1]; 0 for a word that is not of the list."""
    return _WEIGHTS.get(word.lower(), 0.0)


def emotional_weight(text: str) -> float:
    """The factor of a text's learning score, in [0.5, 1.5]; 1 for a text without a word of the list."""
    weights = []
    for number, match in enumerate(_TOKEN.finditer(text)):
        if number == MOST_WORDS:
            break
        if (weight := _WEIGHTS.get(match[0].lower())) is not None:
            weights.append(weight)
    sentiment = max(-1.0, min(1.0, sum(weights) / max(1, len(weights))))
    arousal = min(1.0, sum(map(abs, weights)) / 5)
    return max(0.5, min(1.5, 1.0 + 0.25 * sentiment + 0.15 * arousal))
