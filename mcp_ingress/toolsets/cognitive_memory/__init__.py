"""The Cognitive Memory tools, one module a tool, and in `resources` one module a resource."""

from mcp_ingress.toolset import Toolset
from mcp_ingress.toolsets.cognitive_memory.errors import ERRORS
from mcp_ingress.toolsets.cognitive_memory.judges import configured

TOOLSET = Toolset(
    name="cognitive_memory",
    errors=ERRORS,
    texts={
        "content": [
            "SELECT original_content FROM stale_memory WHERE namespace = $namespace AND 'stale-' || id = $id",
        ],
        "query": ["SELECT query FROM episode_memory WHERE namespace = $namespace AND 'episode-' || id = $id"],
        "reflection": ["SELECT reflection FROM episode_memory WHERE namespace = $namespace AND 'episode-' || id = $id"],
    },
    part=lambda setup: configured(setup.settings, setup.embedder, setup.environ),
)
