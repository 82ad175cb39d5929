"""A client's hooks over Kafka: what they capture is on its topics, and a broker that is gone keeps no prompt back."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.e2e.program import TIMEOUT_S, Program
from tests.kafka.rig.broker import Broker
from tests.node_process import Client, NodeProcess
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]

DECISION = "We decided to keep the times of the gauges in UTC."


@pytest.fixture
def node(own_broker: Broker, tmp_path: Path) -> Iterator[NodeProcess]:
    node = NodeProcess(tmp_path / "home", own_broker.url).start()
    node.settle()  # it has published before: the first one may be too slow for a hook
    yield node
    if node.is_alive():
        node.kill()


def hook(node: NodeProcess, event: str, *, wait_s: float = PATIENCE_S, **told: object) -> tuple[str, str]:
    """What the hook says to its client and to a person; it always ends with 0."""
    program = Program(node.home, node.broker, THALWEG_CONTEXT_WAIT_S=str(wait_s))
    done = subprocess.run(
        [sys.executable, "-m", "thalweg", "hook", event, "--answer"],
        env=program.env,
        input=json.dumps({"session_id": "s1", "hook_event_name": event, **told}).encode(),
        capture_output=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0 and b"Traceback" not in done.stderr, done.stderr
    return done.stdout.decode(), done.stderr.decode()


def test_what_hooks_capture_lands_over_kafka_and_a_session_that_starts_is_given_its_brief(node: NodeProcess) -> None:
    with closing(Client(node.home)) as client:
        client.insist("journal_write", {"content": DECISION, "category": "decision"}, "request-1")
    node.settle()
    answer, said = hook(node, "SessionStart", source="startup")
    context = json.loads(answer)["hookSpecificOutput"]["additionalContext"]
    assert DECISION in context and said == ""
    assert hook(node, "PostToolUse", tool_name="Bash", tool_use_id="t1", tool_input={"command": "ls"}) == ("", "")
    node.settle()
    assert node.sql("SELECT event_type FROM session_events WHERE session_id = 's1' ORDER BY 1") == [
        ("hook.PostToolUse",),
        ("hook.SessionStart",),
    ]
    assert node.sql("SELECT tool_name FROM tool_calls WHERE tool_call_id = 't1'") == [("Bash",)]
    assert node.sql("SELECT session_id, hook FROM injections") == [("s1", "SessionStart")]


def test_a_dead_broker_keeps_no_prompt_back_and_what_hooks_captured_follows_once_when_it_is_back(
    node: NodeProcess, own_broker: Broker
) -> None:
    with closing(Client(node.home)) as client:
        client.insist("journal_write", {"content": DECISION, "category": "decision"}, "request-1")
    node.settle()
    own_broker.kill()
    answer, said = hook(node, "UserPromptSubmit", wait_s=0.4, prompt="Which zone do the gauges use?")
    assert answer == "" and "did not answer within 0.4 s" in said, "nobody waits until the log is known to be down"
    answer, said = hook(node, "SessionStart", source="startup")
    assert DECISION in answer and said == "", "what the store has is given also while the log is down"
    own_broker.start()
    node.settle()
    assert node.sql("SELECT event_type FROM session_events WHERE session_id = 's1' ORDER BY 1") == [
        ("hook.SessionStart",),
        ("hook.UserPromptSubmit",),
    ]
    assert node.sql("SELECT session_id, hook FROM injections") == [("s1", "SessionStart")]
