"""The rows of beliefs as the reducers read them from a store that was just opened."""

from storage.writer import PREPARED_MAX_ROWS, Writer
from tests.valence.conftest import BeliefNode, Believer


async def test_beliefs_are_found_by_their_keys_one_few_or_many_at_once(agent: Believer, node: BeliefNode) -> None:
    ids = [(await agent.hold(f"Gauge {number} is read at dawn"))["id"] for number in range(5)]
    for count in (1, 4, PREPARED_MAX_ROWS + 1):
        keys = [("default", belief_id) for belief_id in ids][:count]
        strangers = [("default", f"nobody-{number}") for number in range(count - len(keys))] + [("other", ids[0])]
        writer = Writer(node.store.database)
        found = writer.find("valence_beliefs", [*keys, *strangers])
        assert found.keys() == set(keys)
        assert [found[key]["content"] for key in keys] == [
            f"Gauge {number} is read at dawn" for number in range(len(keys))
        ]
        writer.close()


async def test_a_row_that_was_read_is_remembered_until_it_is_changed(agent: Believer, node: BeliefNode) -> None:
    belief = await agent.hold("The weir is open")
    writer = Writer(node.store.database)
    key = ("default", belief["id"])
    assert writer.recent("valence_beliefs", key) is None
    [row] = writer.find("valence_beliefs", [key]).values()
    assert writer.recent("valence_beliefs", key) == row
    writer.close()
    node.store.writer._recent.clear()  # as after a start
    await agent.call("belief_supersede", old_belief_id=belief["id"], new_content="The weir is closed", reason="night")
    [after] = node.store.writer.find("valence_beliefs", [key]).values()
    assert (row["status"], after["status"]) == ("active", "superseded")
