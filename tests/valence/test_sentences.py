"""Sentences of the specification about beliefs that no other test pins.

What a search counts, what a successor inherits, whom a name links.
"""

from __future__ import annotations

import random
from datetime import timedelta

from processors.embedding.hashing import HashingEmbedder
from processors.valence.rules.wording import without_grammar
from storage.search.words.analyzer import document_terms, query_terms
from tests.prefixed import Prefixed
from tests.processors.harness import event
from tests.valence.conftest import BeliefNode, Believer

VOCABULARY = ["river", "gauge", "bank", "flood", "lantern", "street", "anchor", "harbour", "ferry", "tide"]


async def test_all_matches_are_counted_and_ranked_as_by_comparing_everything(agent: Believer, node: BeliefNode) -> None:
    """A match shares a word or has a cosine of at least .30.

    Filters come first, and what was committed meanwhile counts too.
    """
    chance, said = random.Random(3), dict[str, str]()
    for number in range(50):
        belief = await agent.hold(
            " ".join([*chance.choices(VOCABULARY, k=3), f"no{number}"]),
            domain_path=["even" if number % 2 == 0 else "odd"],
        )
        said[belief["id"]] = belief["content"]
        if number == 30:
            node.indexes.maintain()
    encode = HashingEmbedder().encode
    for query in ("river gauge", "a lantern in the harbour", "flooding rivers", "no17"):
        words, vector = set(query_terms(without_grammar(query))), encode([query])[0]
        matches = {
            identity
            for identity, content in said.items()
            if words & set(document_terms(content)) or float(vector @ encode([content])[0]) >= 0.30
        }
        answer = await agent.call("belief_query", query=query, limit=100)
        assert answer["total_count"] == len(matches) and {belief["id"] for belief in answer["beliefs"]} == matches
        ranks = [(belief["relevance_score"], belief["created_at"]) for belief in answer["beliefs"]]
        assert ranks == sorted(ranks, reverse=True)
        even = await agent.call("belief_query", query=query, domain_filter=["none", "even"], limit=1)
        assert even["total_count"] == sum(belief["domain_path"] == ["even"] for belief in answer["beliefs"])


async def test_of_equal_ranks_the_newer_comes_first_then_the_lesser_id(agent: Believer, node: BeliefNode) -> None:
    for number, seconds in enumerate((0, 0, 1, 1)):
        fields = {"content": f"Ebb number{number}"}
        node.tell(
            event("valence.belief.created", fields, id=f"e{number}", time=node.clock.time + timedelta(seconds=seconds))
        )
    node.clock.time += timedelta(days=40_000)  # nothing of its age counts any more
    node.services.embedder = None
    found = (await agent.call("belief_query", query="ebb"))["beliefs"]
    assert len({belief["relevance_score"] for belief in found}) == 1
    assert found == sorted(
        sorted(found, key=lambda belief: belief["id"]), key=lambda belief: belief["created_at"], reverse=True
    )


async def test_what_is_archived_is_never_found_and_an_operator_may_take_a_tension_up(
    agent: Believer, node: BeliefNode
) -> None:
    old = await agent.hold("The lamp is on", "lamp")
    await agent.hold("The lamp is not on", "lamp")
    tension = await agent.one_tension()
    pair = {name: tension[name] for name in ("belief_a_id", "belief_b_id")}
    node.tell(event("valence.tension.investigated", {"tension_id": tension["id"], **pair}, time=node.clock.time))
    assert (await agent.one_tension_of("investigating"))["id"] == tension["id"]  # an operator's word: it stays open
    assert (await agent.call("belief_get", belief_id=old["id"], include_tensions=True))["tensions"]
    await agent.call("tension_resolve", tension_id=tension["id"], resolution="Sold", action="archive_both")
    assert await agent.found("lamp", include_superseded=True) == []
    again = await agent.call("belief_create", content="The lamp is on")
    assert again["action"] == "created"  # only what is held is confirmed


async def test_a_successor_inherits_what_is_not_said_anew(agent: Believer, node: BeliefNode) -> None:
    old = await agent.hold(
        "The port is 1", "gateway", confidence={"overall": 0.85}, domain_path=["net"], source_ref="https://a.example/x"
    )
    answer = await agent.call("belief_supersede", old_belief_id=old["id"], new_content="The port is 2", reason="moved")
    new = answer["new_belief"]
    for kept in ("confidence", "domain_path", "source", "entities"):
        assert new[kept] == old[kept], kept
    assert (
        new["extraction_method"] == "supersession: moved"
        and new["valid_from"] == answer["old_belief"]["valid_until"] == new["created_at"]
    )
    surer = await agent.call(
        "belief_supersede",
        old_belief_id=new["id"],
        new_content="The port is 3",
        reason="x",
        confidence={"overall": 0.2},
    )
    assert surer["new_belief"]["confidence"] == {"overall": 0.2}


async def test_supersede_b_is_supersede_a_mirrored(agent: Believer) -> None:
    a, b = await agent.hold("The queue is on", "queue"), await agent.hold("The queue is not on", "queue")
    tension = await agent.one_tension()
    answer = await agent.call("tension_resolve", tension_id=tension["id"], resolution="Wrong", action="supersede_b")
    assert [belief["status"] for belief in answer["beliefs"]] == ["active", "superseded"]
    assert answer["beliefs"][1]["superseded_by_id"] == a["id"] and answer["beliefs"][0]["supersedes_id"] == b["id"]


async def test_a_reference_alone_tells_the_type_of_its_source(agent: Believer) -> None:
    session_id = await agent.session()
    types = [
        (ref, (await agent.hold(f"Fact {ref}", source_ref=ref))["source"])
        for ref in ("https://a.example", session_id, "a walk")
    ]
    assert [source["type"] for _, source in types] == ["document", "conversation", "observation"]
    assert [source[field] for (_, source), field in zip(types, ("url", "session_id", "title"), strict=True)] == [
        ref for ref, _ in types
    ]
    assert (await agent.hold("No source"))["source"] is None
    stated = await agent.hold("Guess", source_type="inference", source_ref="https://b.example")
    assert (stated["source"]["type"], stated["source"]["url"]) == ("inference", "https://b.example")


async def test_a_name_without_a_type_links_the_most_linked_entity_of_that_name_else_a_new_concept(
    agent: Believer,
) -> None:
    first = await agent.call(
        "belief_create", content="Tides turn", entities=[{"name": "Tide"}, {"name": " tide ", "role": "subject"}]
    )
    [link] = first["belief"]["entities"]  # a link is there once
    assert (link["entity"]["type"], link["role"]) == ("concept", "subject")
    for number in range(2):
        await agent.call("belief_create", content=f"Mercury {number}", entities=[{"name": "Mercury", "type": "person"}])
    await agent.call("belief_create", content="Mercury is a project", entities=[{"name": "Mercury", "type": "project"}])
    meant = await agent.call(
        "belief_create", content="MERCURY it is", entities=[{"name": "MERCURY", "role": "context"}]
    )
    [link] = meant["belief"]["entities"]
    assert (link["entity"]["type"], link["role"]) == ("person", "context")


async def test_an_entity_that_another_source_names_too_stays_linked_once(agent: Believer) -> None:
    said = {"content": "Tides turn", "entities": [{"name": "Tide"}]}
    await agent.call("belief_create", **said, source_ref="https://a.example/x")
    again = await agent.call("belief_create", **said, source_ref="https://b.example/x")
    assert again["action"] == "reinforced" and len(again["belief"]["entities"]) == 1
    assert agent.node.store.sql("SELECT link_count FROM valence_entities") == [(1,)]


async def test_entities_are_listed_exact_names_first_then_beginnings_insides_and_aliases(agent: Believer) -> None:
    for name in ("The NodeJS club", "NodeJS tools", "Node.js", "nodejs"):
        await agent.call("belief_create", content=f"About {name}", entities=[{"name": name, "type": "organization"}])
    await agent.call("belief_create", content="Another", entities=[{"name": "nodejs", "type": "concept"}])
    answer = await agent.call("entity_search", query="NODEJS")
    assert [entity["name"] for entity in answer["entities"]] == ["nodejs", "NodeJS tools", "The NodeJS club", "Node.js"]
    assert answer["entities"][-1]["aliases"] == ["nodejs"] and answer["total_count"] == 4
    assert len((await agent.call("entity_search", query="nodejs", type="concept"))["entities"]) == 1


async def test_a_belief_says_how_fresh_it_is_today_and_tensions_come_newest_first(
    agent: Believer, node: BeliefNode
) -> None:
    plain = await agent.hold("The oven is hot", "oven")
    lasting = await agent.hold("Iron melts", domain_path=["physics", "timeless"])
    await agent.hold("The oven is not hot", "oven")
    node.clock.time += timedelta(days=30) - timedelta(seconds=3)
    for belief, fresh in ((plain, 0.5), (lasting, 1.0)):
        got = (await agent.call("belief_get", belief_id=belief["id"]))["belief"]
        assert round(got["temporal_freshness_now"], 4) == fresh
    assert "temporal_freshness" not in got["confidence"]  # told, never stored
    await agent.hold("The kettle is on", "kettle")
    await agent.hold("The kettle is not on", "kettle")
    listed = (await agent.call("tension_list"))["tensions"]
    assert [row["belief_a_content"] for row in listed] == ["The kettle is on", "The oven is hot"]


async def test_a_text_is_read_as_what_it_is_a_query_or_a_document(agent: Believer, node: BeliefNode) -> None:
    node.services.embedder = model = Prefixed()
    old = await agent.hold("Tides turn")
    await agent.call("belief_supersede", old_belief_id=old["id"], new_content="Tides turn twice", reason="x")
    await agent.call("insight_extract", session_id=await agent.session(), content="Tides rise")
    assert model.read == ["passage: Tides turn", "passage: Tides turn twice", "passage: Tides rise"]
    await agent.call("belief_query", query="tides")
    assert model.read[3:] == ["query: tides"]


async def test_who_names_nothing_that_there_is_is_told_how_to_find_it(agent: Believer) -> None:
    nobody = "00000000-0000-4000-8000-000000000000"
    for tool, arguments, way in (
        ("belief_get", {"belief_id": nobody}, "belief_query"),
        ("belief_supersede", {"old_belief_id": nobody, "new_content": "x", "reason": "y"}, "belief_query"),
        ("entity_get", {"entity_id": nobody}, "entity_search"),
        ("tension_resolve", {"tension_id": nobody, "resolution": "x", "action": "keep_both"}, "tension_list"),
    ):
        assert way in (await agent.call(tool, **arguments))["error_message"]
