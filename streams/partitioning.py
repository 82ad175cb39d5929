"""Which partition a key goes to: Kafka's default partitioner, so that both logs and foreign producers agree."""

from __future__ import annotations


def partition_for(key: bytes, partitions: int) -> int:
    """The partition of a key: `toPositive(murmur2(key)) % partitions`, as Kafka's Java client computes it."""
    from aiokafka.partitioner import murmur2  # with all of aiokafka: a tenth of a second that a client would wait for

    return (murmur2(key) & 0x7FFFFFFF) % partitions
