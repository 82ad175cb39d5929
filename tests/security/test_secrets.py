"""No secret of a known form is kept or shown, whichever way it comes in: not in tables, files, logs or answers."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
import pytest
from mcp import MCPError

from mcp_ingress.call import ClientConnection
from mcp_ingress.door import REQUEST_ID_META, Request, Visitor
from streams.clock import SystemClock
from streams.codec import encode
from streams.dlq import DeadLetter, bury, exhume
from streams.errors import UnknownTool
from streams.log.base import Outgoing, Record
from streams.log.sqlite import SqliteLog
from streams.positions import Partition, Position
from streams.redaction import excerpt, redact, redact_json
from streams.topics import MEMORY, TELEMETRY
from tests.examples import examples
from tests.patience import SOON_S
from tests.processors.harness import event
from tests.schema import migrated_home
from thalweg.importing.importer import import_files
from thalweg.process.node import Node
from thalweg.process.serve import WithoutSecrets
from thalweg.settings import Settings

# Put together here so that no scanner takes them for real ones. Each ends in its CORE, of which nothing may be left.
CORE = "Zq7Xv9Kp3Lm5Nw8R"
LONG = "a1B2c3D4" * 6 + CORE
FORMS = {
    "api key": "sk-" + "ant-api03-" + LONG,
    "stripe": "sk_" + "live_" + LONG,
    "restricted stripe": "rk_" + "test_" + LONG,
    "webhook": "whsec_" + LONG,
    "github": "ghp_" + LONG,
    "github, fine-grained": "github_" + "pat_" + LONG,
    "gitlab": "glpat-" + LONG,
    "google oauth": "ya29." + LONG,
    "google client": "GOCSPX-" + "d4-_e6f7G8h9" + CORE,
    "google": "AIza" + "d4-_e6f7G8h9i0JkLmN" + CORE,
    "sendgrid": "SG." + "a1B2c3D4e5F6g7H8i9J0k1" + "." + LONG[-43:],
    "slack": "xoxb-" + "123456789012-" + LONG,
    "slack app": "xapp-" + "1-A0123-" + LONG,
    "slack webhook": "https://hooks.slack.com/services/" + "T012345/B012345/" + CORE,
    "npm": "npm_" + LONG[-36:],
    "pypi": "pypi-" + LONG,
    "hugging face": "hf_" + LONG,
    "docker": "dckr_" + "pat_" + LONG,
    "vault": "hvs." + LONG,
    "groq": "gsk_" + LONG,
    "aws": "AKIA" + "ABCDEF" + "ZQ7XV9KP3L",
    "aws secret": "aws_secret_access_key = " + "a1B2c3D4" * 3 + CORE,
    "url": "postgres://admin:" + CORE + "@db.internal/app",
    "parameter": "https://example.org/?access_token=" + CORE,
    "jwt": "eyJ" + "hbGciOiJIUzI1NiJ9" + ".eyJ" + "zdWIiOiIxMjM0NTY3ODkwIn0" + "." + LONG,
    "bearer": "Authorization: Bearer " + LONG,
    "private key": "-----BEGIN OPENSSH " + "PRIVATE KEY-----\n" + LONG + "\n-----END OPENSSH " + "PRIVATE KEY-----",
}
CORES = (CORE, "ZQ7XV9KP3L")


def is_told(said: str | bytes) -> bool:
    text = said if isinstance(said, str) else said.decode("latin-1")
    return any(core in text for core in CORES)


def escaped(secret: str) -> list[bytes]:
    """The secret as a JSON string says it, in ways that a search of the bytes does not see."""
    every = "".join(f"\\u{ord(character):04x}" for character in secret)
    signs = (
        json.dumps(secret)[1:-1]
        .replace("-", "\\u002d")
        .replace("_", "\\u005F")
        .replace(".", "\\u002e")
        .replace("/", "\\/")
    )
    nested = json.dumps(json.dumps({"key": secret}))[1:-1].replace("-", "\\\\u002d").replace("_", "\\\\u005f")
    return [
        f'"{said}"'.encode()
        for said in (every, signs, nested, quote(secret, safe=""), quote(quote(secret, safe=""), safe=""))
    ]


def decoded(said: bytes) -> str:
    """What a reader would see who undoes all escapes."""
    text = str(orjson.loads(said))
    for undone in (text.replace("\\u002d", "-").replace("\\u005f", "_"), text.replace("%25", "%")):
        text += undone + "".join(
            chr(int(part[:2], 16)) + part[2:] for part in undone.split("%")[1:] if part[:2].isalnum()
        )
    return text


@pytest.mark.parametrize("secret", FORMS.values(), ids=FORMS)
def test_each_form_is_found_plain_and_escaped_and_what_is_json_stays_json(secret: str) -> None:
    assert not is_told(redact(f"before {secret} after")) and redact(f"before {secret} after").endswith(" after")
    for said in escaped(secret):
        line = b'{"role":"user","text":' + said + b',"n":1}'
        clean = redact_json(line)
        document = orjson.loads(clean)
        assert document["n"] == 1 and "[redacted:" in document["text"], clean
        assert not is_told(clean) and not is_told(decoded(orjson.dumps(document["text"])))


@pytest.mark.parametrize(
    "text",
    [
        "https://localhost:8080/a@b",
        "https://user:${PASSWORD}@host",
        "git@github.com:owner/name.git",
        "the secret_key = value",
        "task-management-of-2024-and-later",
        "npm_config_registry",
        "sk_live_",
        "SG.1",
        "a 100% of it, %2Fpath%20with, \\u0041nd \\x41",
        "aws_secret_access_key = see the vault",
    ],
)
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    assert redact(text) is text


def test_what_two_rules_find_is_replaced_once() -> None:
    assert (
        redact("Authorization: Bearer " + FORMS["github"] + " stays") == "Authorization: Bearer [redacted:bearer] stays"
    )


def test_what_is_quoted_is_freed_of_secrets_before_it_is_cut() -> None:
    assert excerpt("x" * 100) == "x" * 80 + "…" and excerpt("x" * 80) == "x" * 80
    assert excerpt("x" * 60 + " " + FORMS["github"]).startswith("x" * 60 + " [redacted:git-token")


def test_a_line_of_the_log_quotes_no_secret_also_in_its_traceback() -> None:
    try:
        raise ValueError(FORMS["api key"])
    except ValueError as error:
        record = logging.LogRecord(
            "n", 40, "p", 1, "met %s", (FORMS["stripe"],), (ValueError, error, error.__traceback__)
        )
    line = WithoutSecrets().format(record)
    assert "ValueError: [redacted:api-key]" in line and "met [redacted:payment-key]" in line and not is_told(line)


# --- on a whole node


@pytest.fixture
def said() -> Iterator[io.StringIO]:
    """What the program's log says, as `thalweg up` writes it."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(WithoutSecrets("%(message)s"))
    logging.getLogger().addHandler(handler)
    yield stream
    logging.getLogger().removeHandler(handler)


@pytest.fixture
async def node(tmp_path: Path, said: io.StringIO) -> AsyncIterator[Node]:
    node = Node(Settings(home=migrated_home(tmp_path / "home"), embedder="none", partitions=1, rate_limit=1e6))
    await node.start()
    yield node
    await node.stop()


async def rows(node: Node) -> str:
    """Every value of every table."""

    def query(cursor: Any) -> str:
        tables = [name for (name,) in cursor.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
        return "\n".join(str(cursor.execute(f'FROM "{table}"').fetchall()) for table in tables)

    assert await node.running.has_reached("now")
    return await node.running.store.reader.run(query)


def files(home: Path) -> Iterator[tuple[Path, bytes]]:
    for path in home.rglob("*"):
        if path.is_file():
            yield path, path.read_bytes()


async def answer(node: Node, visitor: Visitor, tool: str, arguments: Any, meta: dict[str, Any] | None = None) -> str:
    try:
        return (await node.running.door.call(visitor, Request(tool, arguments, meta or {}))).text
    except (UnknownTool, MCPError) as error:
        return str(error)


async def ask_everywhere(node: Node, secret: str) -> list[str]:
    """The secret in every place of a call; what was answered."""
    visitor = Visitor(node.running.door.local, ClientConnection(client=f"client {secret}"))
    entry = {"content": f"Use {secret} for it.", "category": "observation"}
    given: list[tuple[str, Any]] = [
        ("journal_write", entry),
        ("journal_write", entry | {"content": {"password": secret}}),
        ("journal_write", entry | {"category": secret}),
        ("journal_write", entry | {"session_id": f"2026-01-05-{secret}"}),
        ("journal_write", {secret: 1}),
        ("journal_write", secret),
        ("journal_write", entry | {"domain": secret, "content": f"half a pair \ud800 {secret}"}),
        ("journal_query", {"query": secret, "entity_types": [secret], "time_range": {"start": secret}}),
        ("journal_query", {"query": secret}),
        ("graph_query", {"cypher": f"MATCH (n) WHERE n.name = '{secret}' RETURN n {secret}"}),
        ("session_close", {"session_id": secret}),
        ("belief_get", {"belief_id": secret}),
        ("belief_create", {"content": secret, "valid_from": secret}),
        ("ping", {"session_id": secret}),
        (secret, {}),
        ("x" * 120 + " " + secret, {}),
        (" " * 70 + secret, {"content": secret}),
    ]
    answers = list(await asyncio.gather(*(answer(node, visitor, tool, arguments) for tool, arguments in given)))
    resend = [await answer(node, visitor, "journal_write", entry, {REQUEST_ID_META: secret[:256]}) for _ in range(2)]
    assert len({orjson.loads(text)["entry_id"] for text in resend}) == 1
    for text in (secret, quote(secret, safe="")):
        for uri in (
            f"memory://l0-raw?session_id={text}",
            f"memory://l0-raw?limit={text}",
            f"memory://{text}",
            f"memory://l0-raw?{text}=1",
        ):
            try:
                answers.append((await node.running.door.read(visitor, uri, {})).text)
            except UnknownTool as error:
                answers.append(str(error))
    return answers + resend


async def test_no_call_leaves_a_secret_in_a_table_a_file_the_log_or_an_answer(
    node: Node, said: io.StringIO, tmp_path: Path
) -> None:
    told = {}
    for name in list(FORMS)[:: examples(9, 1)]:
        told[name] = [text for text in await ask_everywhere(node, FORMS[name]) if is_told(text)]
    assert not {name: texts for name, texts in told.items() if texts}
    kept = await rows(node)
    assert "[redacted:" in kept and not is_told(kept)
    await node.stop()
    assert not [path for path, content in files(tmp_path / "home") if is_told(content)]
    assert not is_told(said.getvalue())


async def test_a_dead_letter_holds_no_secret_in_its_reason_its_headers_or_its_bytes_and_can_be_replayed(
    node: Node, said: io.StringIO
) -> None:
    written = event("talos.journal.written", {"content": "x", "category": "insight"})
    good = encode(MEMORY.name, written)
    for secret in FORMS.values():
        bodies = [{"content": {"password": secret}, "category": "insight"}, {"category": "insight", secret: 1}]
        bad = [Outgoing(MEMORY.name, good.key, orjson.dumps(body), good.headers) for body in bodies]
        bad += [
            Outgoing(MEMORY.name, good.key, b'{"content": ' + line + b"} cut", good.headers) for line in escaped(secret)
        ]
        for header in ("ce_type", "ce_time", "ce_specversion"):
            changed = tuple((name, secret.encode() if name == header else value) for name, value in good.headers)
            bad.append(Outgoing(MEMORY.name, good.key, good.value, changed))
        await node.log.publish(bad)
    kept = await rows(node)
    assert not is_told(kept)
    log = node.log
    assert isinstance(log, SqliteLog)
    buried = log.fetch(Partition(f"{MEMORY.name}.dlq", 0), 0, 10_000)
    assert len(buried) == 10 * len(FORMS)
    for record in buried:
        assert not is_told(record.value or b"") and not any(is_told(value or b"") for _, value in record.headers)
    reasons = [dict(record.headers)["dlq.error.message"] or b"" for record in buried]
    assert sum(b'content: the value is not of type "string"' in reason for reason in reasons) == len(FORMS)
    schema_mistake = next(record for record, reason in zip(buried, reasons, strict=True) if b"not of type" in reason)
    assert orjson.loads(exhume(schema_mistake).value or b"")["category"] == "insight"
    assert not is_told(said.getvalue())


def test_the_bytes_of_a_dead_letter_that_are_no_text_stay_as_they_are() -> None:
    binary = b"\x0a\x05\x00" + FORMS["github"].encode()
    letter = DeadLetter(Position("t", 0, 0), "materialise", "g", 1, "Poison", FORMS["github"], SystemClock().now())
    outgoing = bury(Record("t", 0, 0, 0, b"k", binary), letter)
    assert outgoing.value == binary and not any(is_told(value or b"") for _, value in outgoing.headers)


async def test_no_line_that_is_imported_leaves_a_secret_plain_escaped_cut_or_of_a_wrong_form(
    node: Node, said: io.StringIO, tmp_path: Path
) -> None:
    lines = []
    for number, secret in enumerate(FORMS.values()):
        for place, text in enumerate([json.dumps(secret).encode(), *escaped(secret)]):
            start = b'{"type":"user","sessionId":"s","uuid":"u%d-%d","timestamp":"2026-01-05T10:00:00Z",' % (
                number,
                place,
            )
            lines.append(start + b'"message":{"role":"user","content":' + text + b"}}")
            lines.append(start + b'"message":{"role":"user","content":' + text)
            lines.append(start.replace(b'"s"', text) + b'"message":{"role":"user","content":5}}')
            lines.append(start.replace(b'"user"', text) + b'"message":' + text + b"}")
    transcript = tmp_path / "a.jsonl"
    transcript.write_bytes(b"\n".join(lines) + b"\n")
    report = await import_files(node.log, "claude-code", [transcript], namespace="default", clock=SystemClock())
    assert report.events >= 5 * len(FORMS) and report.unreadable >= 5 * len(FORMS)
    assert await node.running.store.applied.wait(report.freshness, timeout_s=SOON_S)
    kept = await rows(node)
    assert "[redacted:" in kept and not is_told(kept)
    log = node.log
    assert isinstance(log, SqliteLog)
    for topic in (TELEMETRY.name, f"{TELEMETRY.name}.dlq"):
        for record in log.fetch(Partition(topic, 0), 0, 10_000):
            assert not is_told(record.value or b""), record.value
    await node.stop()
    assert not [path for path, content in files(tmp_path / "home") if is_told(content)]
    assert not is_told(said.getvalue())
