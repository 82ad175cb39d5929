"""Where a toolset keeps what `documents` does not hold: who said it, its tags, whether it is private, whether it still counts.

Each constant is a list of SELECTs over one namespace (`$namespace`), one line a table. A record that none of them names has
no role, no tag but its domain, is not private and counts. Which kinds there are is in `processors/inner_voice/kinds.py`.
"""

from __future__ import annotations

_METADATA_TAGS = (
    "unnest(list_append({row}.metadata->>'$.tags[*]', "
    "CASE WHEN json_type({row}.metadata, '$.tags') = 'VARCHAR' THEN {row}.metadata->>'$.tags' END))"
)
"""The entries of `metadata.tags`, also where a caller gave one word in place of a list."""
_SAYS_PRIVATE = (
    "contains(lower({row}.metadata), 'private') AND (lower({row}.metadata->>'$.is_private') = 'true' OR list_contains(list_transform("
    "list_append({row}.metadata->>'$.tags[*]', {row}.metadata->>'$.tags'), lambda tag: lower(tag)), 'private'))"
)
"""Few rows hold the word at all: looking for it before the JSON is read is four times as quick."""
_EXCHANGES = "FROM vkb_exchanges x JOIN vkb_sessions s ON s.namespace = x.namespace AND s.session_id = x.session_id"
_INSIGHTS = (
    "FROM vkb_session_insights i JOIN valence_beliefs b ON b.namespace = i.namespace AND b.belief_id = i.belief_id"
)

ROLES = (
    "SELECT exchange_id AS record_id, role FROM vkb_exchanges WHERE namespace = $namespace",
    "SELECT 'l0-' || id, speaker FROM l0_raw WHERE namespace = $namespace",
)
"""(record_id, role) of the kinds whose origin is whoever said it."""

TAGS = (
    "SELECT record_id, domain AS tag FROM documents WHERE namespace = $namespace AND domain IS NOT NULL",
    "SELECT record_id, tag FROM document_tags WHERE namespace = $namespace",
    "SELECT entry_id, category FROM talos_journal WHERE namespace = $namespace",
    "SELECT entity_id, category FROM entities WHERE namespace = $namespace AND category IS NOT NULL",
    "SELECT belief_id, unnest(domain_path) FROM valence_beliefs WHERE namespace = $namespace",
    f"SELECT i.insight_id, unnest(b.domain_path) {_INSIGHTS} WHERE i.namespace = $namespace",
    f"SELECT 'l0-' || r.id, {_METADATA_TAGS.format(row='r')} FROM l0_raw r WHERE r.namespace = $namespace "
    "AND contains(r.metadata, '\"tags\"')",
    f"SELECT x.exchange_id, {_METADATA_TAGS.format(row='s')} {_EXCHANGES} WHERE x.namespace = $namespace AND contains(s.metadata, '\"tags\"')",
)
"""(record_id, tag)."""

PRIVATE = (
    "SELECT record_id FROM documents WHERE namespace = $namespace AND lower(domain) = 'private'",
    "SELECT record_id FROM document_tags WHERE namespace = $namespace AND lower(tag) = 'private'",
    "SELECT entity_id FROM entities WHERE namespace = $namespace AND lower(category) = 'private'",
    f"SELECT 'l0-' || r.id FROM l0_raw r WHERE r.namespace = $namespace AND {_SAYS_PRIVATE.format(row='r')}",
    f"SELECT x.exchange_id {_EXCHANGES} WHERE x.namespace = $namespace AND {_SAYS_PRIVATE.format(row='s')}",
)
"""(record_id) of thoughts of which a tag, their metadata or their session's metadata says so."""

ABSENT = (
    "SELECT record_id FROM merges WHERE namespace = $namespace",
    "SELECT record_id FROM prunes WHERE namespace = $namespace",
    "SELECT belief_id FROM valence_beliefs WHERE namespace = $namespace AND closed_at IS NOT NULL",
    f"SELECT i.insight_id {_INSIGHTS} WHERE i.namespace = $namespace AND b.closed_at IS NOT NULL",
    "SELECT pattern_id FROM vkb_patterns_aged WHERE namespace = $namespace AND status = 'archived'",
    "SELECT pattern_id FROM patterns WHERE namespace = $namespace AND status = 'deprecated'",
    "SELECT entity_id FROM entity_resolutions WHERE namespace = $namespace AND entity_id <> canonical_id",
    "SELECT 'wm-' || s.item_id FROM stale_memory s WHERE s.namespace = $namespace "
    "AND NOT EXISTS (FROM working_memory w WHERE w.namespace = s.namespace AND w.id = s.item_id)",
)
"""(record_id) of merged, pruned, superseded, archived and deprecated rows."""


def union(selects: tuple[str, ...]) -> str:
    """The SELECTs as one."""
    return " UNION ALL ".join(selects)
