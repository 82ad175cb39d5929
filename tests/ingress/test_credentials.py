"""HTTP: what a token gives, what a client may ask for of it by headers, and a file of tokens that changes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from mcp_ingress.analysts import SqlEndpoint
from mcp_ingress.catalogue import Catalogues
from mcp_ingress.credentials import CredentialFile, Credentials
from mcp_ingress.http import WHO_GIVES, Endpoint, HttpServer
from mcp_ingress.limits import RateLimits
from mcp_ingress.resource import Resources
from mcp_ingress.server import build_server
from streams.clock import SystemClock
from streams.errors import SettingsError
from tests.ingress.lines import INITIALIZE, WAIT_S, calling
from tests.ingress.parts import opened_door
from tests.ingress.test_scope import two_toolsets

HEADERS = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}
OF_SOUTH, OF_ALL, OF_READER, HASHED = (f"token-of-{name}-0123456789" for name in ("south", "all", "reader", "hashed"))
FILE = f"""
[[credential]]
principal = "south"
token = "{OF_SOUTH}"
namespaces = ["south", "south-east"]
toolsets = ["demo"]

[[credential]]
principal = "owner"
token = "{OF_ALL}"
namespaces = ["*"]
sql = true

[[credential]]
principal = "reader"
token = "{OF_READER}"
namespaces = ["south"]
read_only = true

[[credential]]
principal = "hashed"
token_sha256 = "{hashlib.sha256(HASHED.encode()).hexdigest().upper()}"
namespaces = ["hashed"]
"""


class Web:
    """A client of the door without a token of its own."""

    def __init__(self, client: httpx.AsyncClient, file: Path, limits: RateLimits) -> None:
        self.client, self.file, self.limits = client, file, limits

    async def post(self, token: str, body: Any, path: str = "/mcp", **headers: str) -> httpx.Response:
        named = {f"thalweg-{name.replace('_', '-')}": value.encode() for name, value in headers.items()}
        return await self.client.post(path, json=body, headers={"authorization": f"Bearer {token}", **named})

    async def call(self, token: str, tool: str, arguments: dict[str, Any], **headers: str) -> Any:
        answer = (await self.post(token, calling(1, tool, **arguments), **headers)).json()
        return answer["result"]["structuredContent"] if "result" in answer else answer["error"]

    async def namespace(self, token: str, **headers: str) -> str:
        return str((await self.call(token, "echo", {}, **headers))["namespace"])

    async def refused(self, token: str, **headers: str) -> tuple[int, str]:
        answer = await self.post(token, calling(1, "echo"), **headers)
        return answer.status_code, answer.json()["message"].removesuffix(f" {WHO_GIVES}")

    def write(self, text: str) -> None:
        """The file anew, as an editor does it."""
        beside = self.file.with_suffix(".new")
        beside.write_text(text)
        os.replace(beside, self.file)


@asynccontextmanager
async def web_of(home: Path, text: str = FILE) -> AsyncIterator[Web]:
    file = home / "credentials.toml"
    file.write_text(text)
    async with opened_door(home, two_toolsets(), namespace="home") as door:
        credentials = CredentialFile(file, "home", door.catalogues.check)
        endpoint = SqlEndpoint(None, RateLimits(SystemClock()))  # type: ignore[arg-type]  # no question gets so far
        server = HttpServer(build_server(door, "0"), door, credentials, Endpoint(), analysts=endpoint)
        await server.start()
        base = f"http://127.0.0.1:{server.port}"
        async with httpx.AsyncClient(base_url=base, headers=HEADERS, timeout=WAIT_S) as client:
            yield Web(client, file, door.limits)
        await server.stop()


@pytest.fixture
async def web(tmp_path: Path) -> AsyncIterator[Web]:
    async with web_of(tmp_path) as web:
        yield web


async def test_a_request_calls_in_the_namespace_that_it_names_of_those_that_its_token_gives(web: Web) -> None:
    assert await web.namespace(OF_SOUTH) == "south", "the first one, where none is named"
    assert await web.namespace(OF_SOUTH, namespace="south-east") == "south-east"
    assert await web.namespace(OF_SOUTH) == "south", "a header holds for its request alone"
    assert await web.namespace(OF_ALL) == "home" and await web.namespace(OF_ALL, namespace="日本") == "日本"
    assert await web.namespace(HASHED) == "hashed"


async def test_a_namespace_beyond_the_token_is_forbidden_in_a_sentence(web: Web) -> None:
    refused = await web.refused(OF_SOUTH, namespace="north")
    assert refused == (
        403,
        "This credential gives the namespaces 'south', 'south-east', and 'north' was asked for.",
    )
    assert await web.refused(HASHED, namespace="south") == (
        403,
        "This credential gives the namespace 'hashed', and 'south' was asked for.",
    )


async def test_toolsets_are_those_that_the_header_chooses_of_the_tokens(web: Web) -> None:
    lists = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    listed = {}
    for token, chosen in ((OF_SOUTH, {}), (OF_ALL, {}), (OF_ALL, {"toolsets": "notes"})):
        answer = (await web.post(token, lists, **chosen)).json()
        listed[token, *chosen.values()] = {tool["name"] for tool in answer["result"]["tools"]}
    demo, everything, notes = listed.values()
    assert demo | notes == everything and not demo & notes
    assert (await web.refused(OF_SOUTH, toolsets="demo, notes")) == (
        403,
        "This credential gives the toolsets demo, and 'notes' was asked for.",
    )
    told = (await web.post(OF_SOUTH, INITIALIZE)).json()["result"]["instructions"]
    assert "Notes are kept here." not in told
    error = await web.call(OF_SOUTH, "write_note", {"content": "a"})
    assert error["message"] == "The tool 'write_note' is of the toolset notes, and this connection is served demo only."


async def test_a_token_that_only_reads_writes_under_no_header(web: Web) -> None:
    sentence = "The tool 'write_note' writes, and this connection only reads."
    assert (await web.call(OF_READER, "write_note", {"content": "a"}))["message"] == sentence
    assert (await web.call(OF_ALL, "write_note", {"content": "a"}, read_only="true"))["message"] == sentence
    assert (await web.call(OF_ALL, "write_note", {"content": "a"}, read_only="false"))["success"]
    assert await web.refused(OF_READER, read_only="0") == (403, "This credential only reads.")


async def test_a_header_that_says_nothing_sensible_is_a_bad_request(web: Web) -> None:
    for headers, sentence in (
        ({"namespace": "a/b"}, "accepted: 1 to 128 printable characters without a slash"),
        ({"namespace": "n" * 300}, "The namespace has 300 characters"),
        ({"toolsets": "talos"}, "There is no toolset 'talos'; choose from demo, notes"),
        ({"read_only": "perhaps"}, "accepted: true, false"),
    ):
        status, message = await web.refused(OF_ALL, **headers)
        assert status == 400 and sentence in message


async def test_a_header_that_is_there_twice_or_is_no_utf_8_is_a_bad_request(web: Web) -> None:
    token, name = (b"authorization", f"Bearer {OF_ALL}".encode()), b"thalweg-namespace"
    for headers in ([(name, b"a"), (name.title(), b"b")], [(name, b"\xff\xfe")]):
        answer = await web.client.post("/mcp", json=calling(1, "echo"), headers=[token, *headers])
        assert answer.status_code == 400 and "thalweg-namespace" in answer.json()["message"]


async def test_what_a_token_wrote_is_waited_for_in_the_namespace_that_it_was_written_to(web: Web) -> None:
    written = await web.call(OF_ALL, "write_note", {"content": "a"}, namespace="north")
    assert (await web.call(OF_ALL, "asked", {}, namespace="south"))["asked"] == {}
    assert (await web.call(OF_ALL, "asked", {}, namespace="north"))["asked"] == written["freshness"]


async def test_a_token_has_the_share_of_its_principal_in_whatever_namespace_it_calls(web: Web) -> None:
    for token, namespace in ((OF_ALL, "north"), (OF_ALL, "south"), (OF_SOUTH, "south")):
        await web.namespace(token, namespace=namespace)
    assert set(web.limits._credentials) == {"http:owner", "http:south"}


async def test_a_forbidden_request_says_where_more_can_be_had(web: Web) -> None:
    refused = await web.post(OF_SOUTH, calling(1, "echo"), namespace="north")
    assert refused.json()["message"].endswith("`credentials.toml` what a token gives.")


async def test_analysts_sql_which_reads_every_namespace_needs_a_token_that_gives_it(web: Web) -> None:
    refused = await web.post(OF_SOUTH, {"sql": "FROM sessions"}, "/sql")
    assert (refused.status_code, refused.json()["error"]) == (403, "forbidden")
    assert (await web.post(OF_ALL, {"no": "sql"}, "/sql")).status_code == 400, "it got as far as the question"


async def test_without_a_token_one_learns_where_the_metadata_of_the_resource_are(web: Web) -> None:
    refused = await web.client.post("/mcp", json=INITIALIZE)
    challenge = refused.headers["www-authenticate"]
    url = challenge.removeprefix('Bearer resource_metadata="').removesuffix('"')
    metadata = (await web.client.get(url)).json()
    assert url.endswith("/.well-known/oauth-protected-resource/mcp")
    assert metadata == {
        "resource": f"{web.client.base_url}/mcp".replace("//mcp", "/mcp"),
        "resource_name": "thalweg",
        "bearer_methods_supported": ["header"],
    }
    assert (await web.client.get("/.well-known/oauth-protected-resource")).json() == metadata
    assert "given out in its `credentials.toml`" in refused.json()["message"]
    wrong = await web.post("no-token-of-this-node", INITIALIZE)
    assert wrong.status_code == 401 and 'error="invalid_token"' in wrong.headers["www-authenticate"]


async def test_a_changed_file_gives_and_takes_at_once(web: Web) -> None:
    added = FILE.replace(OF_SOUTH, "another-token-of-south").replace('"south-east"', '"south-west"')
    web.write(added)
    assert (await web.post(OF_SOUTH, calling(1, "echo"))).status_code == 401
    assert await web.namespace("another-token-of-south", namespace="south-west") == "south-west"


async def test_while_the_file_is_wrong_the_tokens_that_it_had_before_hold_and_the_problem_has_a_sentence(
    tmp_path: Path,
) -> None:
    file = tmp_path / "credentials.toml"
    file.write_text(FILE)
    credentials = CredentialFile(file, "home", lambda toolsets: None)
    for wrong in (FILE + "colour = 1\n", "", "nonsense [", None):
        if wrong is None:
            file.unlink()
        else:
            file.write_text(wrong)
        assert await credentials.verify_token(OF_SOUTH) is not None
        assert credentials.problem is not None and "before hold" in credentials.problem, wrong
        assert OF_SOUTH not in credentials.problem
    file.write_text(FILE)
    assert await credentials.verify_token(HASHED) is not None and credentials.problem is None


def credential(**fields: Any) -> str:
    known = {"principal": '"south"', "token": f'"{OF_SOUTH}"', "namespaces": '["south"]', **fields}
    return "[[credential]]\n" + "".join(f"{name} = {value}\n" for name, value in known.items() if value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (credential(colour="1"), "credential 1: there is no field 'colour'; accepted: principal, token, token_sha256"),
        (credential(principal=None), "the field 'principal'"),
        (credential(namespaces="[]"), "must name one namespace or more"),
        (credential(namespaces='["a/b"]'), "The namespace is 'a/b'"),
        (credential(namespaces='"south"'), "the field 'namespaces' must be a list of texts"),
        (credential(namespaces="[1]"), "the field 'namespaces' must be a list of texts"),
        (credential(read_only='"yes"'), "the field 'read_only' must be true or false"),
        (credential(toolsets='["talos"]'), "There is no toolset 'talos'; choose from demo, notes"),
        (credential(token='"short"'), "the field 'token' must have 16 to 512 printable ASCII characters"),
        (credential(token=None), "one of the fields 'token' and 'token_sha256'"),
        (credential(token_sha256='"12"'), "one of the fields 'token' and 'token_sha256'"),
        (credential(token=None, token_sha256='"12"'), "64 hexadecimal digits"),
        (credential() + credential(), "credential 2: its token is that of another credential too"),
        ("", "must hold one `[[credential]]` or more, and nothing else"),
        (f'token = "a"\n{credential()}', "must hold one `[[credential]]` or more, and nothing else"),
        ("[credential]\n", "must hold one `[[credential]]` or more"),
        ("= nonsense", "cannot be read"),
    ],
)
def test_a_file_that_says_something_else_is_refused_at_the_start(tmp_path: Path, text: str, sentence: str) -> None:
    file = tmp_path / "credentials.toml"
    file.write_text(text)
    with pytest.raises(SettingsError) as refused:
        CredentialFile(file, "home", Catalogues(two_toolsets(), Resources()).check)
    assert "credentials.toml" in refused.value.message and sentence in refused.value.message
    assert OF_SOUTH not in refused.value.message


async def test_the_token_of_the_node_gives_its_own_namespace_and_every_tool() -> None:
    token = await Credentials.of_one("the-token-of-the-node", "home").verify_token("the-token-of-the-node")
    assert token is not None
    assert (token.grant.principal, token.grant.namespaces, token.grant.toolsets) == ("http", ("home",), ())
    assert await Credentials.of_one("the-token-of-the-node", "home").verify_token("the-token-of-the-nod") is None
