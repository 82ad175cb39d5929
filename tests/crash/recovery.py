"""I9: how long after a fault all that lay on the log at that moment is applied, and processed by every stage."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from processors.frame.stage import stage_types
from streams.log import open_log
from streams.positions import Freshness
from streams.topics import OTLP_TOPICS, TOPICS
from tests.node_process import NodeProcess
from tests.patience import PATIENCE_S

RECOVERED_S = 15.0
"""After a kill, for a node that is started again at once."""
TAKEN_OVER_S = 60.0
"""Where a member of a Kafka group dies and another one has to take its partitions over, once its session has run out.
"""


def recovery_s(node: NodeProcess, fault: Callable[[], object], mend: Callable[[], object] = lambda: None) -> float:
    """Seconds from the fault until the node's own positions have passed all that lay on the log right after it."""
    fault()
    began = time.monotonic()
    lying = asyncio.run(_ends(node))
    mend()
    node.wait_for(lying.to_json(), *(stage.name for stage in stage_types()), timeout_s=2 * PATIENCE_S)
    return time.monotonic() - began


async def _ends(node: NodeProcess) -> Freshness:
    log = open_log(node.broker or f"sqlite://{node.home / 'log.db'}")
    await log.start()
    try:
        return Freshness(await log.end_offsets([*(topic.name for topic in TOPICS), *OTLP_TOPICS]))
    finally:
        await log.stop()
