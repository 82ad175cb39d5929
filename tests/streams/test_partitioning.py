"""The partition of a key, pinned to the values that Kafka's own Java client computes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.partitioning import partition_for

# Kafka's clients/src/test/java/org/apache/kafka/common/utils/UtilsTest.java, testMurmur2.
JAVA_MURMUR2 = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize(("key", "murmur2"), JAVA_MURMUR2.items())
@pytest.mark.parametrize("partitions", [1, 2, 3, 12, 1000])
def test_a_key_goes_where_the_java_client_sends_it(key: bytes, murmur2: int, partitions: int) -> None:
    assert partition_for(key, partitions) == (murmur2 & 0x7FFFFFFF) % partitions


@given(st.binary(), st.integers(1, 1000))
def test_every_key_has_one_partition_within_range(key: bytes, partitions: int) -> None:
    assert 0 <= partition_for(key, partitions) < partitions
    assert partition_for(key, partitions) == partition_for(key, partitions)
