"""How precisely a text says when: at an instant, over a period, or only approximately. By rule, in English, offline.

approximate: a moment with a hedge (around March, circa 2019, late June), or one that is only said to be some while off
             (recently, a few days ago, two years ago; but two days ago is a day)
period:      a month, a year or a season; a stretch with a beginning (since 3 June), an end, or a length (for two weeks,
             last week)
instant:     anything else: a day, an hour, `now`, or no word of time at all, as what is written down then is meant then
"""

from __future__ import annotations

import re
from typing import Literal

from storage.search.ranking.dates import places_of_dates

Precision = Literal["instant", "period", "approximate"]

_UNIT = r"(?:hours?|days?|nights?|weeks?|weekends?|months?|quarters?|years?|decades?|centur(?:y|ies))"
_SEASON = r"(?:weekends?|spring|summer|autumn|winter)"
_LONG = rf"(?:weeks?|months?|quarters?|years?|decades?|centur(?:y|ies)|{_SEASON})"
_MONTH = r"(?:january|february|march|april|may|june|july|august|september|october|november|december)"
_VAGUE = r"(?:several|some|many|(?:a\s+)?few|(?:a\s+)?couple(?:\s+of)?)"
_NUMBER = r"(?:\d+|an?|one|two|three|four|five|six|seven|eight|nine|ten|twelve)"
_COUNT = rf"(?:{_NUMBER}|{_VAGUE})"
_WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_HEDGE = (
    r"(?:around|circa|approximately|roughly|sometime|some\s+time|somewhere)\s+"
    r"(?:in\s+|on\s+|during\s+|near\s+)?(?:the\s+)?"
)

_APPROXIMATE = re.compile(
    r"\b(?:recently|lately|the\s+other\s+(?:day|week|month|year)|while\s+ago|long\s+ago|some\s?time\s+ago"
    r"|in\s+those\s+days)\b"
    rf"|\b(?:about|almost|nearly|over|more\s+than|less\s+than)\s+{_COUNT}\s+{_UNIT}\s+ago\b"
    rf"|\b{_HEDGE}(?:{_MONTH}|(?:19|20)\d\d|{_SEASON}|noon|midnight|\d{{1,2}}(?::\d\d|\s?[ap]m))\b"
    rf"|\b(?:early|late|mid)[\s-]+(?:in\s+)?(?:{_MONTH}|(?:19|20)\d\d|{_SEASON})\b"
    r"|\b(?:early|late)\s+(?:this|last|next)\s+(?:week|month|year)\b",
    re.IGNORECASE,
)
_AGO = re.compile(
    rf"(?P<exactly>\b{_NUMBER}\s+(?:hours?|days?|nights?|weeks?)\s+ago\b)|\b{_UNIT}\s+ago\b", re.IGNORECASE
)
_PERIOD = re.compile(
    rf"\b(?:last|this|next|past|previous|whole|entire|all|each|every)\s+{_LONG}\b"
    rf"|\b(?:last|past|previous|next|first)\s+{_COUNT}\s+{_UNIT}\b"
    rf"|\bfor\s+(?:the\s+)?(?:{_COUNT}\s+)?(?:last\s+|past\s+)?{_UNIT}\b"
    rf"|\b(?:over|during|throughout|within)\s+(?:the\s+)?{_LONG}\b"
    rf"|\bsince\s+(?:yesterday|last|{_WEEKDAY})\b"
    rf"|\bbetween\s+{_WEEKDAY}\s+and\b",
    re.IGNORECASE,
)
_HEDGED = re.compile(rf"\b(?:{_HEDGE}|about\s+|~\s*|ca?\.\s*)$", re.IGNORECASE)
_STRETCHED = re.compile(r"\b(?:since|until|till|between|through|from)\s+(?:the\s+)?$", re.IGNORECASE)
_DIGIT = re.compile(r"\d")
_TIME_WORDS = (
    "ago", "recent", "lately", "noon", "midnight", "other", "day", "hour", "night", "week", "month", "quarter", "year",
    "decade", "centur", "spring", "summer", "autumn", "winter", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug",
    "sep", "oct", "nov", "dec", "since",
)  # fmt: skip
"""Every rule needs a digit or one of these: most texts have neither, and are read once instead of ten times."""
MAX_CHARS = 2_000
"""Characters that are read: what an entry is about stands there, and its writer waits for its ids."""
_CONTEXT_CHARS = 24
"""Characters before a date that may say how precise it is."""


def temporal_precision(text: str) -> Precision:
    """Of several moments in the beginning of a text the least precise counts."""
    text = text[:MAX_CHARS]
    lowered = text.lower()
    if _DIGIT.search(lowered) is None and not any(part in lowered for part in _TIME_WORDS):
        return "instant"
    if _APPROXIMATE.search(text) or any(ago["exactly"] is None for ago in _AGO.finditer(text)):
        return "approximate"
    is_period = _PERIOD.search(text) is not None
    for start, date in places_of_dates(text):
        before = text[max(start - _CONTEXT_CHARS, 0) : start]
        if _HEDGED.search(before):
            return "approximate"
        is_period = is_period or date.day is None or _STRETCHED.search(before) is not None
    return "period" if is_period else "instant"
