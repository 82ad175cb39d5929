"""Analysts' SQL over HTTP: what `thalweg sql` answers, for every bearer of the token, within the same limits."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from mcp_ingress.analysts import AT_ONCE, MAX_BODY, SqlEndpoint
from mcp_ingress.credentials import Credentials
from mcp_ingress.http import Endpoint, HttpServer
from mcp_ingress.limits import RateLimits
from mcp_ingress.server import build_server
from storage.database import Database
from storage.sql.snapshot import Snapshot, Snapshots
from streams.clock import SystemClock
from streams.positions import Freshness
from tests.ingress.lines import WAIT_S
from tests.ingress.parts import opened_door
from tests.schema import migrated_home

pytestmark = pytest.mark.process

TOKEN = "a-token"


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[SqlEndpoint]:
    database = Database(migrated_home(tmp_path / "store"))

    async def snapshot(max_age_s: float, freshness: Any) -> tuple[Snapshot, dict[str, Any]]:
        return Snapshots(database).get(max_age_s), {"stale": True} if freshness is not None and Freshness.from_json(
            freshness
        ) else {}

    yield SqlEndpoint(snapshot, RateLimits(SystemClock()))
    database.close()


@pytest.fixture
async def client(tmp_path: Path, endpoint: SqlEndpoint) -> AsyncIterator[httpx.AsyncClient]:
    async with opened_door(tmp_path / "door") as door:
        server = HttpServer(
            build_server(door, "0"), door, Credentials.of_one(TOKEN, "default"), Endpoint(), analysts=endpoint
        )
        await server.start()
        headers = {"authorization": f"Bearer {TOKEN}"}
        async with httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{server.port}", headers=headers, timeout=WAIT_S
        ) as client:
            yield client
        await server.stop()


async def test_a_question_is_answered_with_columns_rows_and_the_age_of_the_snapshot(client: httpx.AsyncClient) -> None:
    answer = (
        await client.post("/sql", json={"sql": "SELECT count(*) AS sessions FROM sessions", "max_age_s": 60})
    ).json()
    assert (answer["columns"], answer["rows"], answer["truncated"]) == (["sessions"], [[0]], False)
    assert answer["snapshot_age_s"] >= 0


async def test_a_node_that_does_not_answer_sql_names_the_setting(tmp_path: Path) -> None:
    async with opened_door(tmp_path / "door") as door:
        server = HttpServer(build_server(door, "0"), door, Credentials.of_one(TOKEN, "default"), Endpoint())
        await server.start()
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", timeout=WAIT_S) as client:
            assert (await client.post("/sql", json={"sql": "FROM sessions"})).status_code == 401
            headers = {"authorization": f"Bearer {TOKEN}"}
            answer = await client.post("/sql", json={"sql": "FROM sessions"}, headers=headers)
        await server.stop()
    assert (answer.status_code, answer.json()["error"]) == (404, "disabled")
    assert "THALWEG_HTTP_SQL=1" in answer.json()["message"] and "thalweg sql" in answer.json()["message"]


async def test_a_question_can_wait_for_a_write_and_says_when_that_was_not_in_time(client: httpx.AsyncClient) -> None:
    covered = (await client.post("/sql", json={"sql": "SELECT 1", "freshness": {}})).json()
    behind = (await client.post("/sql", json={"sql": "SELECT 1", "freshness": {"thalweg.memory.v1": {"0": 9}}})).json()
    assert ("stale" in covered, behind["stale"]) == (False, True)


@pytest.mark.parametrize(
    "body, status, said",
    [
        (b"{", 400, "a text `sql`"),
        (b'{"sql": 1}', 400, "a text `sql`"),
        (b'{"sql": "SELECT 1", "rows": 5}', 400, "no field `rows`"),
        (b'{"sql": "SELECT 1", "timeout_s": true}', 400, "`timeout_s` must be a number"),
        (b'{"sql": "SELECT 1", "freshness": "later"}', 400, "The freshness token is not of the form"),
        (b'{"sql": "DELETE FROM journal"}', 400, "read-only"),
        (b'{"sql": "' + b"x" * MAX_BODY + b'"}', 400, "longer than"),
    ],
)
async def test_what_cannot_be_answered_says_why(client: httpx.AsyncClient, body: bytes, status: int, said: str) -> None:
    answer = await client.post("/sql", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == status and said in answer.json()["message"]


async def test_without_the_token_or_from_a_foreign_page_nothing_is_answered(client: httpx.AsyncClient) -> None:
    asked = {"sql": "SELECT 1"}
    assert (await client.post("/sql", json=asked, headers={"authorization": "Bearer guess"})).status_code == 401
    assert (await client.post("/sql", json=asked, headers={"origin": "https://evil.example"})).status_code == 403
    assert (await client.post("/sql", json=asked, headers={"host": "evil.example"})).status_code == 421
    assert (await client.get("/sql")).status_code == 405


async def test_more_questions_at_once_than_children_are_allowed_are_told_when_to_come_back(
    client: httpx.AsyncClient, endpoint: SqlEndpoint
) -> None:
    endpoint._running = AT_ONCE
    answer = await client.post("/sql", json={"sql": "SELECT 1"})
    assert answer.status_code == 503 and answer.json()["retry_after_ms"] == 1000
