"""The Valence tools, one module a tool. `common`, `*answers`, `*queries` and some `belief_*` hold what they share."""

from mcp_ingress.toolset import ErrorStyle, Toolset
from mcp_ingress.toolsets.valence.part import Valence

TOOLSET = Toolset(
    name="valence",
    purpose="Beliefs with confidence, and conversations",
    guide=(
        "`belief_create` states a belief",
        "`belief_supersede` replaces one",
        "`belief_query` searches beliefs",
        "`entity_search` finds what they are about",
        "`tension_list` shows contradictions",
        "`tension_resolve` settles one",
        "`session_start` and `exchange_add` record a conversation",
        "`session_list` finds one",
        "`exchange_list` reads one",
        "`pattern_record` keeps a habit",
    ),
    errors=ErrorStyle(
        codes={
            "invalid_argument": "INVALID_PARAMS",
            "unavailable": "STORAGE_ERROR",
            "log_unavailable": "STORAGE_ERROR",
            "embedder_unavailable": "STORAGE_ERROR",
            "timeout": "STORAGE_ERROR",
            "internal_error": "INTERNAL_ERROR",
        },
        sentence_field="error_message",
    ),
    groups={
        "valence.substrate": ("belief", "entity", "tension"),
        "valence.vkb": ("session", "exchange", "pattern", "insight"),
    },
    texts={
        "content": ["SELECT text FROM session_events WHERE namespace = $namespace AND event_id = $id"],
        "summary": ["SELECT summary FROM sessions WHERE namespace = $namespace AND session_id = $id"],
        "description": [
            "SELECT description FROM valence_entities WHERE namespace = $namespace AND entity_id = $id",
            "SELECT description FROM tension_findings WHERE namespace = $namespace AND tension_id = $id",
        ],
        "resolution": ["SELECT resolution FROM tension_resolutions WHERE namespace = $namespace AND tension_id = $id"],
    },
    parts=lambda setup: [Valence(auto_capture=setup.settings.valence_auto_capture)],
)
