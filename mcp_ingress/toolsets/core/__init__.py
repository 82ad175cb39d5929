"""The few tools that suffice, one module a tool. `records` and `sessions_read` are what they ask of the store.

They keep nothing of their own: what they write is the other toolsets', and what they find too.
"""

from mcp_ingress.toolset import Toolset

TOOLSET = Toolset(
    name="core",
    purpose="What to use first",
    guide=(
        "`recall` searches all that is known, whatever it came from",
        "`remember` keeps one fact, decision, preference, goal, lesson or question",
        "`correct` replaces or takes back what is wrong",
        "`sessions` shows what was worked on before",
    ),
    lists_output_schemas=True,
)
