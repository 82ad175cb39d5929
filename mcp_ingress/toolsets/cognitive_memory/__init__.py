"""The Cognitive Memory tools, one module a tool, and in `resources` one module a resource."""

from mcp_ingress.toolset import Toolset
from mcp_ingress.toolsets.cognitive_memory.errors import ERRORS
from mcp_ingress.toolsets.cognitive_memory.judges import configured

TOOLSET = Toolset(
    name="cognitive_memory",
    errors=ERRORS,
    part=lambda setup: configured(setup.settings, setup.embedder, setup.environ),
)
