"""The Talos tools, one module a tool. `answers`, `queries` and `search_arguments` hold what they share."""

from mcp_ingress.toolset import Sessions, Toolset
from mcp_ingress.toolsets.talos.session_names import SessionNames
from mcp_ingress.toolsets.talos.tool_calls import tool_call
from processors.talos.read.graph_source import read_graph
from processors.talos.rules.identifiers import is_session_id
from storage.graph.projection import Projections

TOOLSET = Toolset(
    name="talos",
    purpose="A journal of work",
    guide=(
        "begin with `session_open`",
        "end with `session_close`",
        "`journal_write` keeps what you learn, decide or observe",
        "`friction_log` keeps what was in the way",
        "`reflect` keeps a look at your own work",
        "`journal_query` searches all of it",
        "`pattern_check` compares your session with known patterns",
        "`graph_query` asks the graph in Cypher",
    ),
    parts=lambda setup: [Projections(setup.settings.home / "graph", read_graph), SessionNames.of(setup.settings)],
    sessions=Sessions(is_session_id, tool_call),
)
