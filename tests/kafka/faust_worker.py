"""A Faust worker for test_faust_traps: `python -m tests.kafka.faust_worker BROKER TOPIC FORM OUT [FAIL_ON]`.

Appends each value it has processed to OUT as a line; raises RuntimeError on the value FAIL_ON.
"""

from __future__ import annotations

import sys
from typing import Any

import faust

BROKER, TOPIC, FORM, OUT, *FAILING = sys.argv[1:]
FAIL_ON = FAILING[0].encode() if FAILING else None
CRASHING = {"agent_supervisor": "mode.supervisors:CrashingSupervisor"} if FORM == "noack_take" else {}

app = faust.App(
    f"trap-{TOPIC}",
    broker=f"aiokafka://{BROKER}",
    topic_allow_declare=False,
    topic_disable_leader=True,
    web_enabled=False,
    stream_wait_empty=False,
    stream_recovery_delay=0,
    broker_session_timeout=6,
    broker_heartbeat_interval=1,
    broker_request_timeout=20,
    broker_commit_interval=0.2,
    consumer_auto_offset_reset="earliest",
    datadir=OUT + ".faust",
    **CRASHING,
)
topic = app.topic(TOPIC, value_type=bytes, key_type=bytes, value_serializer="raw", key_serializer="raw")


def process(value: bytes) -> None:
    if value == FAIL_ON:
        raise RuntimeError(f"cannot process {value!r}")
    with open(OUT, "ab") as out:
        out.write(value + b"\n")


async def plain(stream: Any) -> None:
    async for value in stream:
        process(value)


async def skipped_ack(stream: Any) -> None:
    """Acknowledges every record but FAIL_ON, as an agent does that means to come back to it."""
    async for event in stream.noack().events():
        if event.value != FAIL_ON:
            process(event.value)
            event.ack()


async def noack_take(stream: Any) -> None:
    async for batch in stream.noack_take(10, within=0.01):
        for event in batch:
            process(event.value)
        for event in batch:
            event.ack()


app.agent(topic, name=FORM)({"plain": plain, "skipped_ack": skipped_ack, "noack_take": noack_take}[FORM])

if __name__ == "__main__":
    faust.Worker(app, loglevel="WARNING", quiet=True).execute_from_commandline()
