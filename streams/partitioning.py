"""Which partition a key goes to: Kafka's default partitioner, so that both logs and foreign producers agree."""

from __future__ import annotations

from aiokafka.partitioner import murmur2


def partition_for(key: bytes, partitions: int) -> int:
    """The partition of a key: `toPositive(murmur2(key)) % partitions`, as Kafka's Java client computes it."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions
