"""A refused argument comes with a sentence from which the call can be mended."""

from __future__ import annotations

import math
from typing import Any

import pytest

from mcp_ingress.arguments import ArgumentCheck
from mcp_ingress.inventory import validate_tool
from streams.errors import Refused
from tests.ingress.tools import echo, tool

PROPERTIES: dict[str, Any] = {
    "content": {"type": "string", "minLength": 1, "maxLength": 10, "pattern": r"\S"},
    "category": {"type": "string", "enum": ["insight", "friction"], "x-error-code": "unknown_category"},
    "confidence": {"type": "number", "minimum": 0, "maximum": 1, "x-error-code": "invalid_confidence"},
    "limit": {"type": "integer", "minimum": 1, "default": 10},
    "blocking": {"type": "boolean", "default": False},
    "domains": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
    "labels": {
        "type": "array",
        "items": {"enum": ["Belief", "Insight"]},
        "x-error-code": "unknown_entity_type",
        "x-error-extra": {"hint": "labels"},
    },
    "time_range": {
        "type": "object",
        "properties": {"start": {"type": "string"}, "zone": {"type": "string", "default": "UTC"}},
    },
    "parameters": {"type": "object"},
}
CHECK = ArgumentCheck(validate_tool(tool("demo", echo, PROPERTIES, required=["content"])).input_schema)


def refusal(**arguments: Any) -> Refused:
    with pytest.raises(Refused) as caught:
        CHECK({"content": "text", **arguments})
    return caught.value


def test_defaults_are_filled_in_also_inside_objects_that_are_given() -> None:
    assert CHECK({"content": "a", "time_range": {}}) == {
        "content": "a",
        "limit": 10,
        "blocking": False,
        "time_range": {"zone": "UTC"},
    }


def test_an_object_without_named_properties_takes_any() -> None:
    assert CHECK({"content": "a", "parameters": {"x": [1, None]}})["parameters"] == {"x": [1, None]}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"contnet": "a"}, "There is no argument `contnet`. Did you mean `content`? Accepted: content, category"),
        ({"limit": "5"}, 'The argument `limit` must be an integer, not a text ("5"). Pass 5 without quotes.'),
        ({"limit": 2.5}, "The argument `limit` must be an integer, not a number (2.5)."),
        ({"limit": True}, "The argument `limit` must be an integer, not true or false (true)."),
        ({"limit": None}, "The argument `limit` must be an integer, not null (null). Leave it out instead of null."),
        ({"limit": 0}, "The argument `limit` is 0; at least 1 is accepted."),
        (
            {"blocking": "true"},
            'The argument `blocking` must be true or false, not a text ("true"). Pass true without quotes.',
        ),
        ({"content": 5}, 'The argument `content` must be a text, not an integer (5). Pass "5" with quotes.'),
        ({"content": ""}, "The argument `content` is empty; it needs some text."),
        ({"content": "  "}, "The argument `content` is blank; it needs some text."),
        ({"content": "x" * 11}, "The argument `content` has 11 characters; at most 10 are accepted."),
        ({"domains": "work"}, 'The argument `domains` must be a list, not a text ("work"). Pass ["work"].'),
        ({"domains": ["a", 1]}, "The argument `domains[1]` must be a text"),
        ({"domains": ["a", "b", "c"]}, "The argument `domains` has 3 entries; at most 2 are accepted."),
        (
            {"time_range": {"strat": "x"}},
            "There is no argument `strat` in `time_range`. Did you mean `start`? Accepted: start, zone.",
        ),
        ({"content": "a\0b"}, "The argument `content` holds a NUL character"),
        ({"parameters": {"x": ["\ud800"]}}, "The argument `parameters.x` holds half of a surrogate pair"),
        ({"confidence": math.nan}, "The argument `confidence` is nan; a finite number is expected."),
        ({"confidence": math.inf}, "The argument `confidence` is inf; a finite number is expected."),
        ({"limit": 2**64}, "The argument `limit` is an integer of more than 64 bits; send it as text."),
    ],
)
def test_a_refusal_names_the_argument_and_what_is_accepted(arguments: dict[str, Any], sentence: str) -> None:
    refused = refusal(**arguments)
    assert refused.message.startswith(sentence)
    assert refused.error_code == "invalid_argument"


def test_a_missing_argument_is_named_with_what_it_is() -> None:
    with pytest.raises(Refused, match=r"^The argument `content` is missing; it is a text\.$"):
        CHECK({})
    with pytest.raises(Refused, match="`content` is missing"):
        CHECK(None)


def test_a_misspelt_name_is_said_before_the_missing_one_that_it_explains() -> None:
    with pytest.raises(Refused, match="Did you mean `content`"):
        CHECK({"contents": "a"})


def test_a_value_that_is_no_option_has_the_toolsets_own_code_and_the_options() -> None:
    refused = refusal(category="insights")
    assert refused.message == (
        'The argument `category` is "insights"; it must be one of insight, friction. Did you mean "insight"?'
    )
    options = ["insight", "friction"]
    details = {"parameter": "category", "allowed": options}
    assert (refused.error_code, refused.extra) == ("unknown_category", {"valid_options": options, "details": details})


def test_the_own_code_of_a_list_holds_for_its_entries() -> None:
    refused = refusal(labels=["Belief", "Beleif"])
    assert refused.message.startswith('The argument `labels[1]` is "Beleif"')
    options = ["Belief", "Insight"]
    details = {"parameter": "labels[1]", "allowed": options}
    expected = {"valid_options": options, "hint": "labels", "details": details}
    assert (refused.error_code, refused.extra) == ("unknown_entity_type", expected)


def test_a_value_out_of_range_has_the_own_code_but_a_wrong_type_has_not() -> None:
    assert refusal(confidence=1.5).error_code == "invalid_confidence"
    assert refusal(confidence="high").error_code == "invalid_argument"


def test_arguments_that_are_no_object_and_deep_nesting_are_refused() -> None:
    with pytest.raises(Refused, match="one JSON object"):
        CHECK([])
    deep: Any = "x"
    for _ in range(100):
        deep = [deep]
    assert "nested deeper" in refusal(parameters={"x": deep}).message


def test_a_long_value_is_shown_shortened() -> None:
    assert len(refusal(category="x" * 5000).message) < 250
