"""graph_query: Cypher over the projection, read-only, with its errors and limits."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from processors.talos.read.graph_source import read_graph
from storage.graph import projection
from storage.graph.edge_pruning import may_match
from storage.graph.projection import BuildRequest, Projections
from storage.graph.run import run_cypher
from streams.errors import Refused, Unavailable
from streams.positions import Freshness
from tests.talos.node import SmallNode

pytestmark = pytest.mark.process

SESSION = "2026-01-05-graph"


async def tell(node: SmallNode) -> None:
    """A session with a goal, an insight that led to a belief, a blocking friction that occurred twice, tool calls, a
    state.
    """
    await node.call("journal_write", content="I believe in tests.", category="observation")
    await node.call("session_open", session_id=SESSION, goal="Draw the graph")
    content = "I realized that edges matter. This connects to the principle of least surprise."
    await node.call("journal_write", content=content, category="insight", session_id=SESSION, domain="technical")
    for _ in range(2):
        await node.call(
            "friction_log", description="The build is slow", category="tooling", session_id=SESSION, blocking=True
        )
    for success in (True, True, False):
        node.observe("session.tool_call", session__id=SESSION, tool__name="read", tool__success=success)
    node.observe("session.state_change", session__id=SESSION, to="momentum", category="flow")
    await node.call("session_close", session_id=SESSION, goal_achieved=True)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallNode]:
    """A node that was told it, and that the tests only ask: its graph is built once."""
    node = SmallNode(tmp_path_factory.mktemp("told"))
    asyncio.run(tell(node))
    yield node
    node.close()


async def rows(node: SmallNode, cypher: str, **parameters: Any) -> list[list[Any]]:
    answer = await node.call("graph_query", cypher=cypher, parameters=parameters)
    assert answer["success"] and "stale" not in answer
    return answer["rows"]


async def refusal(node: SmallNode, cypher: str, **more: Any) -> Refused:
    with pytest.raises(Refused) as caught:
        await node.call("graph_query", cypher=cypher, **more)
    return caught.value


async def test_every_edge_of_a_session_is_in_the_graph(told: SmallNode) -> None:
    found = await rows(
        told, "MATCH (s:Session)-[r]->(x) RETURN label(r), labels(x), count(*) ORDER BY label(r), labels(x)"
    )
    assert {(relation, label) for relation, label, _ in found} == {
        ("ACTIVATED", "Persona"),
        ("BLOCKED_BY", "Friction"),
        ("EXPERIENCED_STATE", "OperationalState"),
        ("FOLLOWED", "Protocol"),
        ("INHERITED", "Belief"),
        ("OPERATES_IN", "Domain"),
        ("PRODUCED", "Belief"),
        ("PRODUCED", "Friction"),
        ("PRODUCED", "Insight"),
        ("SERVES", "Goal"),
        ("USED", "Tool"),
        ("WORKED_WITH", "Human"),
    }


async def test_the_edges_carry_what_was_counted(told: SmallNode) -> None:
    used = await rows(told, "MATCH (:Session)-[u:USED]->(t:Tool {name: 'read'}) RETURN u.count, u.success_rate")
    assert used == [[3, 0.6667]]
    assert await rows(told, "MATCH (g:Goal)-[:BLOCKED_BY]->(f:Friction) RETURN DISTINCT g.status, f.description") == [
        ["achieved", "The build is slow"]
    ]
    assert await rows(told, "MATCH (f:Friction) WHERE f.recurrence_count > 1 RETURN f.recurrence_count") == [[2]]
    assert await rows(told, "MATCH (:Friction)-[m:MERGED_INTO]->(:Friction) RETURN count(m)") == [[1]]


async def test_the_inherited_count_of_an_open_is_the_number_of_its_edges(node: SmallNode) -> None:
    await tell(node)
    answer = await node.call("session_open", session_id=f"{SESSION}-2", goal="Go on")
    found = await rows(node, "MATCH (s:Session {id: $id})-[:INHERITED]->(k) RETURN count(k)", id=f"{SESSION}-2")
    assert found == [[answer["inherited_count"]]]
    assert answer["inherited_count"] == sum(answer["inherited_summary"].values()) > 3


@pytest.mark.parametrize(
    ("cypher", "may"),
    [
        ("MATCH (s:Session)-[:INHERITED]->(k) RETURN k", True),
        ("MATCH (s:Session)-[r:USED|inherited]->(k) RETURN k", True),
        ("MATCH (s)-[:`INHERITED`*1..2]->(k) RETURN k", True),
        ("MATCH (s)-[r]->(k) RETURN label(r)", True),
        ("MATCH (s)-[r {count: 1}]->(k) RETURN r", True),
        ("MATCH (s)<-[*1..2]-(k) RETURN k", True),
        ("MATCH (s)-->(k) RETURN k", True),
        ("MATCH (s)--(k)<--(m) RETURN k", True),
        ("MATCH (s)<-[:USED]-(k)-[]-(m) RETURN k", True),
        ("MATCH (s:Session)-[r:USED {count: 2}]->(k:Tool)<-[:PRODUCED*1..2]-(x) RETURN k", False),
        ("MATCH (s:Session) WHERE s.tool_calls - 1 > -2 RETURN [1, 2], s.goal", False),
    ],
)
def test_a_query_that_cannot_meet_what_sessions_inherited_is_known(cypher: str, may: bool) -> None:
    assert may_match(cypher, "INHERITED") is may


async def test_what_a_session_inherited_is_projected_for_the_queries_that_can_meet_it(node: SmallNode) -> None:
    await tell(node)
    await node.call("session_open", session_id=f"{SESSION}-2", goal="Go on")
    [[used]] = await rows(node, "MATCH (:Session)-[r:USED]->(:Tool) RETURN count(r)")
    [[inherited]] = await rows(node, "MATCH (:Session)-[r:INHERITED]->() RETURN count(r)")
    [[every]] = await rows(node, "MATCH (:Session)-[r]->() RETURN count(r)")
    assert used == 1 and 3 < inherited < every


async def test_a_query_sees_what_its_caller_has_just_written(node: SmallNode) -> None:
    await tell(node)
    ask = "MATCH (i:Insight) RETURN count(i)"
    [[before]] = await rows(node, ask)
    await node.call("journal_write", content="Fresh.", category="insight")
    assert await rows(node, ask) == [[before + 1]]


async def test_the_preloaded_nodes_are_there_before_the_first_event(node: SmallNode) -> None:
    found = await rows(node, "MATCH (n) RETURN labels(n) AS label, count(*) AS n ORDER BY label")
    assert found == [["Domain", 10], ["OperationalState", 11], ["Tool", 10]]


async def test_another_namespace_is_not_seen(told: SmallNode) -> None:
    cursor = told.store.database.cursor()
    found = told.services.parts[Projections].find(cursor, "elsewhere", told.connection.last_writes)
    assert sorted(orjson.loads(found.graph)["nodes"]) == ["Domain", "OperationalState", "Tool"]


async def test_a_literal_and_a_property_named_like_a_clause_are_no_clauses(told: SmallNode) -> None:
    assert await rows(told, "RETURN 'SET' AS word") == [["SET"]]
    assert await rows(told, "MATCH (s:Session) /* DELETE s */ WHERE s.goal <> 'MERGE' RETURN count(s) AS `drop`") == [
        [1]
    ]


@pytest.mark.parametrize(
    ("cypher", "clause", "column"),
    [
        ("MATCH (n) DETACH DELETE n", "DETACH", 11),
        ("CREATE (n:Tool {id: 'x'})", "CREATE", 1),
        ("MATCH (n:Tool) WITH * SET n.name = 'x'", "SET", 23),
        ("MATCH (n) MERGE (m:Tool {id: 'x'})", "MERGE", 11),
        ("LOAD FROM '/etc/passwd' RETURN *", "LOAD", 1),
        ("CALL show_tables() RETURN *", "CALL", 1),
        ("COPY (MATCH (n) RETURN n) TO '/tmp/x.csv'", "COPY", 1),
        ("MATCH (n) RETURN n UNION DROP TABLE Tool", "DROP", 26),
        ("MATCH (n) WHERE EXISTS { CREATE (x) } RETURN n", "CREATE", 26),
        ("MATCH (n:Tool) FOREACH (x IN [1] | SET n.name = 'x')", "FOREACH", 16),
    ],
)
async def test_what_would_change_something_is_refused_with_its_clause_and_place(
    told: SmallNode, cypher: str, clause: str, column: int
) -> None:
    refused = await refusal(told, cypher)
    assert (refused.error_code, refused.extra["clause"]) == ("read_only_violation", clause)
    assert refused.extra["position"] == {"line": 1, "column": column, "offset": column - 1}


@pytest.mark.parametrize(
    ("cypher", "position"),
    [
        ("MATCH (s:Session)\nRETURN s.goal FRM x", {"line": 2, "column": 15, "offset": 32}),
        ("MATCH (s:Sessio) RETURN s", {"line": 1, "column": 10, "offset": 9}),
        ("MATCH (s:Session)\nRETURN s.nothing", {"line": 2, "column": 10, "offset": 27}),
        ("RETURN datetime('2026-01-01'), 1 FRM x", {"line": 1, "column": 34, "offset": 33}),
        ("RETURN 'open", {"line": 1, "column": 8, "offset": 7}),
        ("RETURN 1; RETURN 2", {"line": 1, "column": 9, "offset": 8}),
        ("RETURN nextval('x')", {"line": 1, "column": 8, "offset": 7}),
        ("   ;", {"line": 1, "column": 1, "offset": 0}),
    ],
)
async def test_a_query_that_cannot_be_read_is_refused_with_the_place(
    told: SmallNode, cypher: str, position: dict[str, int]
) -> None:
    refused = await refusal(told, cypher)
    assert (refused.error_code, refused.extra["position"]) == ("syntax_error", position)


async def test_parameters_are_values_and_never_text(told: SmallNode) -> None:
    goal = "' RETURN 1 //"
    assert await rows(told, "MATCH (s:Session) WHERE s.goal = $goal RETURN s.id", goal=goal, unused=1) == []
    assert await rows(told, "MATCH (s:Session) WHERE s.id IN $ids RETURN s.id", ids=[SESSION]) == [[SESSION]]
    refused = await refusal(told, "MATCH (s) WHERE s.id = $a RETURN $b")
    assert (refused.error_code, refused.extra["parameters"]) == ("missing_parameter", ["a", "b"])


async def test_explain_gives_a_plan_and_executes_nothing(told: SmallNode) -> None:
    answer = await told.call("graph_query", cypher="MATCH (s:Session) RETURN s.id", explain=True)
    assert (answer["columns"], answer["rows"]) == ([], [])
    assert "SCAN_NODE_TABLE" in answer["plan"]


async def test_a_thousand_rows_are_the_limit(told: SmallNode) -> None:
    whole = await told.call("graph_query", cypher="UNWIND range(1, 1000) AS x RETURN x")
    cut = await told.call("graph_query", cypher="UNWIND range(1, 1001) AS x RETURN x")
    assert len(whole["rows"]) == len(cut["rows"]) == 1000
    assert "truncated" not in whole and cut["truncated"] is True


async def test_a_query_without_end_is_ended(told: SmallNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp_ingress.toolsets.talos.graph_query.TIMEOUT_S", 1.0)
    refused = await refusal(told, "UNWIND range(1, 100000) AS a UNWIND range(1, 100000) AS b RETURN sum(a * b)")
    assert refused.error_code == "timeout"


async def test_a_value_that_does_not_fit_is_the_callers_to_mend(told: SmallNode) -> None:
    assert (await refusal(told, "RETURN 1 / 0")).error_code == "invalid_argument"
    mixed = await refusal(told, "RETURN $x", parameters={"x": {"a": [1, None, "b"]}})
    assert mixed.error_code == "invalid_argument" and "/" not in mixed.message


async def test_times_and_durations_are_computed(told: SmallNode) -> None:
    asked = (
        "MATCH (s:Session) WHERE s.started_at > datetime('2026-01-01T00:00:00Z') - duration('30 days') "
        "RETURN s.started_at"
    )
    [[started]] = await rows(told, asked)
    assert started.startswith("2026-01-05T12:00:0") and started.endswith("Z")
    assert await rows(
        told,
        "MATCH (s:Session) WHERE s.started_at < datetime() AND s.started_at > datetime($t) RETURN count(s)",
        t="2026-01-01",
    ) == [[1]]


@pytest.mark.parametrize(
    ("cypher", "expected"),
    [
        ("MATCH (t:Tool {name: 'read', category: 'file'}) RETURN t.name", [["read"]]),
        (
            "MATCH (s:Session)-[:PRODUCED|USED]->(x) WHERE NOT labels(x) = 'Insight' "
            "RETURN DISTINCT labels(x) AS l ORDER BY l DESC LIMIT 1",
            [["Tool"]],
        ),
        ("MATCH (s:Session)-[:PRODUCED*1..2]->(f:Friction) RETURN count(DISTINCT f.description)", [[1]]),
        ("MATCH (s:Session) OPTIONAL MATCH (s)-[:ACTIVATED]->(x:Sutra) RETURN s.id, x.id", [[SESSION, None]]),
        (
            "MATCH (t:Tool) WHERE t.name STARTS WITH 're' OR t.name CONTAINS 'fetch' RETURN t.name ORDER BY t.name",
            [["read"], ["webfetch"]],
        ),
        ("MATCH (t:Tool) WHERE t.name IN ['grep', 'glob'] AND t.name <> 'glob' RETURN t.name", [["grep"]]),
        (
            "MATCH (s:Session) WHERE s.summary IS NULL AND s.goal IS NOT NULL AND s.tool_calls >= 3 "
            "AND s.tool_calls < 4 RETURN count(*)",
            [[1]],
        ),
        (
            "MATCH (d:Domain) WITH d.name AS name ORDER BY name SKIP 1 LIMIT 2 RETURN collect(name)",
            [[["functional-programming", "meta-cognitive"]]],
        ),
        (
            "MATCH (:Session)-[u:USED]->() RETURN sum(u.count), avg(u.count), min(u.count), max(u.count)",
            [[3, 3.0, 3, 3]],
        ),
        ("RETURN 1 AS n UNION RETURN 2 AS n", [[1], [2]]),
        ("UNWIND $list AS x WITH x WHERE x > 1 RETURN x AS larger", [[2], [3]]),
        ("MATCH (b:Insight) RETURN DISTINCT b.temporal_precision", [["instant"]]),
        ("MATCH (p:Protocol) RETURN DISTINCT p.is_live", [[True]]),
    ],
)
async def test_every_construct_that_must_work_works(told: SmallNode, cypher: str, expected: list[list[Any]]) -> None:
    parameters = {"list": [1, 2, 3]} if "$list" in cypher else {}
    assert await rows(told, cypher, **parameters) == expected


async def test_nodes_edges_and_paths_are_objects(told: SmallNode) -> None:
    [[node]] = await rows(told, "MATCH (t:Tool {name: 'read'}) RETURN t")
    assert (node["_label"], node["name"], node["category"]) == ("Tool", "read", "file")
    [[path]] = await rows(told, "MATCH p = (:Session)-[:USED]->(:Tool) RETURN p")
    assert [step["_label"] for step in path["nodes"]] == ["Session", "Tool"]
    assert path["relationships"][0]["_type"] == "USED"


async def test_with_the_store_or_the_graph_down_the_answer_is_degraded(node: SmallNode) -> None:
    node.reader.is_down = True
    with pytest.raises(Unavailable):
        await node.call("graph_query", cypher="RETURN 1")
    node.reader.is_down = False
    del node.services.parts[Projections]
    with pytest.raises(Unavailable, match="no graph"):
        await node.call("graph_query", cypher="RETURN 1")


async def test_a_projection_cannot_be_changed_also_by_a_query_that_nobody_has_checked(
    told: SmallNode, tmp_path: Path
) -> None:
    projections = Projections(tmp_path / "graph", read_graph)
    file = projections.build(projections.find(told.store.database.cursor(), "default", Freshness()))
    before = file.read_bytes()
    with pytest.raises(Refused, match="read-only"):
        run_cypher(file, "CREATE (:Insight {id: 'made up'})", {})
    assert file.read_bytes() == before


async def test_a_graph_that_cannot_be_built_is_unavailable_and_leaves_no_file(told: SmallNode, tmp_path: Path) -> None:
    projections = Projections(tmp_path / "graph", read_graph)
    request = projections.find(told.store.database.cursor(), "default", Freshness())
    assert isinstance(request, BuildRequest)
    graph = {**orjson.loads(request.graph), "edges": {"NO_SUCH_EDGE A B": []}}
    broken = replace(request, graph=orjson.dumps(graph))
    with pytest.raises(Unavailable, match=r"^The graph could not be built: KeyError"):
        projections.build(broken)
    with pytest.MonkeyPatch.context() as hurried:
        hurried.setattr(projection, "BUILD_TIMEOUT_S", 0.05)
        with pytest.raises(Unavailable, match=r"^The graph was not built within 0\.05 s\.$"):
            projections.build(request)
    assert list((tmp_path / "graph").iterdir()) == []
    assert isinstance(projections.find(told.store.database.cursor(), "default", Freshness()), BuildRequest)


async def test_of_several_requests_at_once_those_that_an_earlier_one_covers_get_its_file(
    told: SmallNode, tmp_path: Path
) -> None:
    projections, cursor = Projections(tmp_path / "graph", read_graph), told.store.database.cursor()
    earlier, same = (projections.find(cursor, "default", Freshness()) for _ in range(2))
    await told.call("journal_write", content="I realized that the gauge drifts.", category="insight")
    later = projections.find(cursor, "default", Freshness())
    file = projections.build(earlier)
    assert projections.build(same) == file
    newer = projections.build(later)
    assert newer != file and projections.build(earlier) == newer
    other = projections.find(cursor, "elsewhere", Freshness())
    assert projections.build(other) not in (file, newer)


async def test_a_projection_serves_until_something_is_applied_that_a_token_or_its_age_asks_for(
    told: SmallNode, tmp_path: Path
) -> None:
    projections, cursor = Projections(tmp_path / "graph", read_graph), told.store.database.cursor()
    file = projections.build(projections.find(cursor, "default", Freshness()))
    assert projections.find(cursor, "default", Freshness()) == file
    projections.discard()
    assert not file.exists() and isinstance(projections.find(cursor, "default", Freshness()), BuildRequest)
