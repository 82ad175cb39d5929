"""Ids are functions of what they identify, in the forms of RFC 9562."""

from __future__ import annotations

import uuid

from hypothesis import given
from hypothesis import strategies as st

from streams.ids import NAMESPACE, derived_id


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=4))
def test_a_derived_id_is_the_uuid_of_version_5_of_its_parts(parts: list[str]) -> None:
    assert derived_id(*parts) == str(uuid.uuid5(NAMESPACE, "\x1f".join(parts)))


def test_parts_are_told_apart() -> None:
    assert len({derived_id("ab", "c"), derived_id("a", "bc"), derived_id("abc")}) == 3
