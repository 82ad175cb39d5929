"""The registry of topics; the topics, docs/topics.md and docs/asyncapi.json are made from it."""

from __future__ import annotations

from dataclasses import dataclass, replace

PARTITIONS = 12
DLQ_SUFFIX = ".dlq"
PREFIX = "thalweg."


@dataclass(frozen=True)
class Topic:
    """A topic: what it carries and for how long. One key, the namespace, keeps a namespace's events in order."""

    name: str
    carries: str
    key: str = "namespace"
    partitions: int = PARTITIONS
    retention: str = "forever"
    awaited: bool = True
    """Whether callers wait for its records. The log may read other topics less often, where that is cheaper."""

    @property
    def dlq(self) -> Topic:
        """The topic of its dead letters; it has the same partitions, so that a record keeps its partition."""
        return Topic(
            name=self.name + DLQ_SUFFIX,
            carries=f"records of {self.name} that could not be applied: their bytes (text: without secrets), "
            "`dlq.*` headers",
            key="as received",
            partitions=self.partitions,
            awaited=False,
        )


MEMORY = Topic("thalweg.memory.v1", "requests that change memory; the truth")
TELEMETRY = Topic("thalweg.telemetry.v1", "session, tool, model and state events; imports and OTLP end here")
INVOCATIONS = Topic(
    "thalweg.invocations.v1", "one record for each MCP call: tool, duration, outcome, sizes; no bodies", awaited=False
)
DERIVED = Topic("thalweg.derived.v1", "facts from processors, and how far each stage has come")

SOURCES = (MEMORY, TELEMETRY, INVOCATIONS, DERIVED)
DEAD_LETTERS = tuple(topic.dlq for topic in SOURCES)
TOPICS = SOURCES + DEAD_LETTERS
UNAWAITED = frozenset(topic.name for topic in TOPICS if not topic.awaited)

OTLP_TOPICS = ("otlp_spans", "otlp_logs", "otlp_metrics")
"""The OpenTelemetry Collector's Kafka exporter writes these; read when `otlp_topics` is set, never created."""


def with_partitions(partitions: int) -> tuple[Topic, ...]:
    """All topics with another number of partitions; it is chosen once, before the first record."""
    sources = tuple(replace(t, partitions=partitions) for t in SOURCES)
    return sources + tuple(t.dlq for t in sources)
