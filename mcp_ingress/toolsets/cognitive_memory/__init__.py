"""The Cognitive Memory tools, one module a tool, and in `resources` one module a resource."""

from mcp_ingress.toolset import Toolset
from mcp_ingress.toolsets.cognitive_memory.errors import ERRORS
from mcp_ingress.toolsets.cognitive_memory.judges import configured

TOOLSET = Toolset(
    name="cognitive_memory",
    purpose="Memory in layers",
    guide=(
        "`store_raw_dialogue` keeps what was said word for word",
        "`compress_to_l2_insight` keeps what it comes to",
        "`hybrid_search` searches these insights",
        "`update_working_memory` keeps what matters right now",
        "`store_episode` keeps how a task went, with a reward",
    ),
    errors=ERRORS,
    texts={
        "content": [
            "SELECT original_content FROM stale_memory WHERE namespace = $namespace AND 'stale-' || id = $id",
        ],
        "query": ["SELECT query FROM episode_memory WHERE namespace = $namespace AND 'episode-' || id = $id"],
        "reflection": ["SELECT reflection FROM episode_memory WHERE namespace = $namespace AND 'episode-' || id = $id"],
    },
    parts=lambda setup: [configured(setup.settings, setup.embedder, setup.environ)],
)
