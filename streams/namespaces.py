"""The name of a namespace: what it may look like."""

from __future__ import annotations

from streams.errors import Refused

MAX_NAMESPACE = 128
ACCEPTED = f"1 to {MAX_NAMESPACE} printable characters without a slash, and no space at either end"


def check_namespace(name: str) -> str:
    """The name, if a namespace can be called so. Raises Refused."""
    if not 0 < len(name) <= MAX_NAMESPACE:
        raise Refused(f"The namespace has {len(name)} characters; accepted: {ACCEPTED}.")
    if not name.isprintable() or "/" in name or name != name.strip():
        from streams.redaction import excerpt  # each hook and pump imports this module, and those patterns are slow

        raise Refused(f"The namespace is {excerpt(name, 60)!r}; accepted: {ACCEPTED}.")
    return name
