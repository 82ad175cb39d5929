"""The Context Graph tools, one module a tool."""

from mcp_ingress.toolset import INTERNAL_ERROR, ErrorStyle, Toolset
from mcp_ingress.toolsets.context_graph.pulse import PULSE
from mcp_ingress.toolsets.context_graph.warm import warm_goals
from processors.context_graph.read.steering import CountedFollower
from storage.context_graph.causal_edges import CausalFollower
from storage.context_graph.memory_rows import MemoryRows

_DISCOVERED = "Goals are discovered from what is stored: call `auto_bootstrap_north_star`."

TOOLSET = Toolset(
    name="context_graph",
    purpose="A graph of memories",
    guide=(
        "`store_memory` keeps a text, code, or what an image or recording shows",
        "`inject_context` keeps it and says how new it is",
        "`search_graph` finds memories by meaning and words",
        "`get_memetic_status` says what to do next",
        "`trigger_dream` rewires the memories at a session's end, or when the pulse suggests it",
    ),
    errors=ErrorStyle(
        codes={"unavailable": "storage", "log_unavailable": "storage"},
        plane="jsonrpc",
        explains=True,
        rpc_codes={
            "rate_limited": INTERNAL_ERROR,
            "bootstrap_error": -32110,
            "drift_detector_error": -32111,
            "drift_corrector_error": -32112,
            "pruning_error": -32113,
            "consolidation_error": -32114,
            "subgoal_error": -32115,
            "status_error": -32116,
        },
    ),
    parts=lambda setup: [CountedFollower(), CausalFollower(), MemoryRows(setup.settings.home / "indexes")],
    warm=warm_goals,
    pulse=PULSE,
    texts={
        name: [f"SELECT {name} FROM context_memories WHERE namespace = $namespace AND memory_id = $id"]
        for name in ("content", "rationale")
    },
    retired=dict.fromkeys(
        (
            "set_north_star",
            "get_north_star",
            "update_north_star",
            "delete_north_star",
            "init_north_star_from_documents",
            "get_goal_hierarchy",
        ),
        _DISCOVERED,
    ),
)
