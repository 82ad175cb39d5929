"""Which beliefs a new one is compared with.

Of many about the same thing the nearest, or the latest where no model says what is near.
"""

import pytest

from processors.valence.read import tension_candidates
from processors.valence.read.tension_candidates import ActiveBeliefs, find_tensions, read_new_beliefs
from tests.valence.conftest import BeliefNode, Believer

ENOUGH, MANY = 4, 10


@pytest.fixture(autouse=True)
def few_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if four, not twenty, were compared."""
    monkeypatch.setattr(tension_candidates, "CANDIDATES", ENOUGH)
    monkeypatch.setattr(tension_candidates, "READ_BATCH", ENOUGH + 1)
    monkeypatch.setattr(tension_candidates, "FIRST_MATCHES", 4 * ENOUGH)


@pytest.fixture(params=[tension_candidates.MANY_LINKS, 5], ids=["few", "many"])
def links(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if an entity had few links, or too many to read them all."""
    monkeypatch.setattr(tension_candidates, "MANY_LINKS", request.param)


async def _many_about_the_river(agent: Believer) -> list[str]:
    """Ids of beliefs that are all linked to one thing and say different things of it."""
    return [
        (await agent.hold(f"Gauge {number} of station {number * 7} is read at dawn", "river"))["id"]
        for number in range(MANY)
    ]


async def test_of_many_about_one_thing_the_nearest_is_compared(agent: Believer, links: None) -> None:
    await agent.hold("The weir is open", "river")
    await _many_about_the_river(agent)
    answer = await agent.call(
        "belief_create", content="The weir is not open", entities=[{"name": "river", "type": "tool"}]
    )
    assert [tension["belief_a_content"] for tension in answer["tensions_detected"]] == ["The weir is open"]
    recorded = await agent.call("belief_get", belief_id=answer["belief"]["id"], include_tensions=True)
    assert [tension["id"] for tension in recorded["tensions"]] == [
        tension["id"] for tension in answer["tensions_detected"]
    ]


async def test_what_is_not_held_any_more_takes_no_place_among_them(agent: Believer, links: None) -> None:
    near = [(await agent.hold(f"The weir is open {number}", "river"))["id"] for number in range(ENOUGH + 3)]
    far = await agent.hold("Open weirs are what the mill by the bridge wants in spring", "river")
    for belief_id in near:
        await agent.call(
            "belief_supersede", old_belief_id=belief_id, new_content=f"Gauge {belief_id[:8]} is read", reason="another"
        )
    answer = await agent.call(
        "belief_create", content="The weir is never open", entities=[{"name": "river", "type": "tool"}]
    )
    assert [tension["belief_a_id"] for tension in answer["tensions_detected"]] == [far["id"]]


async def test_without_a_model_the_latest_are_compared(agent: Believer, node: BeliefNode) -> None:
    await agent.hold("The weir is open", "river")
    many = await _many_about_the_river(agent)
    last = await agent.hold("The mill is closed", "river")
    denials = [await agent.hold(text, "river") for text in ("The weir is not open", "The mill is not closed")]
    active = ActiveBeliefs(node.store.database.cursor(), "default")
    stated = read_new_beliefs(active.cursor, "default", [belief["id"] for belief in denials])
    found = find_tensions(active, node.indexes.space(), stated, {})
    other_ids = [[conflict.other.belief_id for conflict in found[belief["id"]]] for belief in denials]
    assert other_ids == [[], [last["id"]]] and len(many) > ENOUGH
