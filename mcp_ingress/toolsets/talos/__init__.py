"""The Talos tools, one module a tool. `answers`, `queries` and `search_arguments` hold what they share."""

from mcp_ingress.toolset import Sessions, Toolset
from mcp_ingress.toolsets.talos.tool_calls import tool_call
from processors.talos.read.graph_source import read_graph
from processors.talos.rules.identifiers import is_session_id
from storage.graph.projection import Projections

TOOLSET = Toolset(
    name="talos",
    instructions="""\
Begin with session_open and end with session_close; in between write down what you learn, decide, observe and \
stumble over (journal_write, friction_log, reflect), and look before you act \
(journal_query, pattern_check, graph_query).""",
    part=lambda setup: Projections(setup.settings.home / "graph", read_graph),
    sessions=Sessions(is_session_id, tool_call),
)
