"""The partitioner: Kafka's default, so that both logs and foreign producers agree."""

from __future__ import annotations


def partition_for(key: bytes, partitions: int) -> int:
    """The partition of a key: `toPositive(murmur2(key)) % partitions`, as Kafka's Java client computes it."""
    # imported here, because it loads all of aiokafka, and a client would wait a tenth of a second for it. The package
    # before its part: the stages are loaded on another thread, and two threads that each hold the lock of a part and
    # want the package's fail with a deadlock of imports
    import aiokafka  # noqa: F401
    from aiokafka.partitioner import murmur2

    return (murmur2(key) & 0x7FFFFFFF) % partitions
