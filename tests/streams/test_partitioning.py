"""The partition of a key, pinned to the values that Kafka's own Java client computes."""

from __future__ import annotations

import subprocess
import sys

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


IMPORTING = """
import importlib, importlib.abc, importlib.machinery, sys, threading

first, second, caught = {first!r}, {second!r}, []

def load(name):
    try:
        if name == "partition_for":
            from streams.partitioning import partition_for
            partition_for(b"key", 12)
        else:
            importlib.import_module(name)
    except BaseException as error:
        caught.append(f"{{name}}: {{error!r}}")

class Beside(importlib.abc.MetaPathFinder):
    "The second thread begins when the first is in that module's body: it has to wait for the whole package."
    other = None
    def find_spec(self, name, path, target=None):
        if name != {at!r} or Beside.other is not None:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        execute = spec.loader.exec_module
        def exec_module(module):
            Beside.other = threading.Thread(target=load, args=(second,))
            Beside.other.start()
            Beside.other.join(1.0)
            if not Beside.other.is_alive():
                caught.append(f"{{second}} was loaded out of a package that {{first}} was loading")
            execute(module)
        spec.loader.exec_module = exec_module
        return spec

sys.meta_path.insert(0, Beside())
load(first)
assert Beside.other is not None, "they were not loaded beside each other"
Beside.other.join(120)
sys.exit("; ".join(caught) or 0)
"""


@pytest.mark.process
@pytest.mark.timeout(300)
@pytest.mark.parametrize("at", ["aiokafka.abc", "aiokafka.errors"])
@pytest.mark.parametrize(
    ("first", "second"),
    [("partition_for", "processors.frame.faust_app"), ("processors.frame.faust_app", "partition_for")],
)
def test_the_first_record_may_be_placed_while_the_stages_are_loaded_on_another_thread(
    first: str, second: str, at: str
) -> None:
    program = IMPORTING.format(first=first, second=second, at=at)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
