"""SQL over the metadata of memories: their tags, and whether they are private.

Callers attach it to memories; it is a JSON column.
"""

from __future__ import annotations


def tags_of(column: str) -> str:
    """The entries of `tags`, one row each, also where a caller gave one word in place of a list."""
    return (
        f"unnest(list_append({column}->>'$.tags[*]', "
        f"CASE WHEN json_type({column}, '$.tags') = 'VARCHAR' THEN {column}->>'$.tags' END))"
    )


def private_by(column: str) -> str:
    """The condition that `is_private` is true or a tag is `private`.

    Few rows hold the word at all: looking for it before the JSON is read is four times as quick.
    """
    return (
        f"contains(lower({column}), 'private') AND (lower({column}->>'$.is_private') = 'true' "
        f"OR list_contains(list_transform(list_append({column}->>'$.tags[*]', {column}->>'$.tags'), "
        "lambda tag: lower(tag)), 'private'))"
    )
