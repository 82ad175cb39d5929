"""Turns the values of OTLP/JSON, each wrapped in its type's name, into plain JSON."""

from __future__ import annotations

import math
from typing import Any

_SEVERITIES = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")


def plain(value: Any) -> Any:
    """The plain form of an AnyValue: `{"intValue": "10"}` becomes 10.

    A kvlist becomes an object, bytes their base64 text.
    """
    if not isinstance(value, dict):
        return None
    if "intValue" in value:
        return whole(value["intValue"])
    if "doubleValue" in value:
        return number_of(value["doubleValue"])
    if "arrayValue" in value:
        return [plain(item) for item in _values(value["arrayValue"])]
    if "kvlistValue" in value:
        return attributes(_values(value["kvlistValue"]))
    return next((value[name] for name in ("stringValue", "boolValue", "bytesValue") if name in value), None)


def attributes(pairs: Any) -> dict[str, Any]:
    """A list of `{"key", "value"}` as an object; of a key that comes twice the last value stays."""
    items = pairs if isinstance(pairs, list) else []
    return {
        pair["key"]: plain(pair.get("value"))
        for pair in items
        if isinstance(pair, dict) and isinstance(pair.get("key"), str)
    }


def _values(holder: Any) -> list[Any]:
    values = holder.get("values") if isinstance(holder, dict) else None
    return values if isinstance(values, list) else []


def whole(value: Any) -> Any:
    """A 64-bit integer from its text, also within lists and objects; anything else as it is."""
    if (
        isinstance(value, str)
        and (value.isdecimal() or (value[:1] == "-" and value[1:].isdecimal()))
        and len(value) <= 20
    ):
        return int(value)
    if isinstance(value, list):
        return [whole(item) for item in value]
    if isinstance(value, dict):
        return {name: whole(item) for name, item in value.items()}
    return value


def number_of(value: Any) -> float | None:
    """A finite number, also from its text; None for NaN, for infinities and for what is not a number."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        found = int(value) if isinstance(value, str) and value.lstrip("-").isdecimal() else float(value)
        return found if math.isfinite(found) else None
    except (ValueError, OverflowError):  # the second: a whole number above every double
        return None


def severity_name(value: Any) -> str | None:
    """`INFO` for 9, `INFO2` for 10: the short names of the specification."""
    if type(value) is not int or not 1 <= value <= 24:
        return None
    step = (value - 1) % 4
    return _SEVERITIES[(value - 1) // 4] + (str(step + 1) if step else "")
