"""Which partition a key goes to: Kafka's default partitioner, so that both logs and foreign producers agree."""

from __future__ import annotations


def partition_for(key: bytes, partitions: int) -> int:
    """The partition of a key: `toPositive(murmur2(key)) % partitions`, as Kafka's Java client computes it."""
    # here, because all of aiokafka comes with it: a tenth of a second that a client would wait for. The package before its part: the stages are
    # loaded on another thread, and two threads that each hold a part and want the package fail with a deadlock of imports
    import aiokafka  # noqa: F401
    from aiokafka.partitioner import murmur2

    return (murmur2(key) & 0x7FFFFFFF) % partitions
