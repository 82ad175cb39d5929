"""What every resource promises to clients; the snapshots are written anew as those of the tools are."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from mcp_ingress.resource import Resource, find_resources
from mcp_ingress.server import wire_resource, wire_template

SNAPSHOTS = Path(__file__).parent / "snapshots" / "resources"
RESOURCES = find_resources().resources


@pytest.mark.parametrize("resource", RESOURCES.values(), ids=lambda resource: resource.name)
def test_its_contract_is_the_one_of_the_snapshot(resource: Resource) -> None:
    listed = wire_resource(resource).model_dump(mode="json", by_alias=True, exclude_none=True)
    template = (
        wire_template(resource).model_dump(mode="json", by_alias=True, exclude_none=True) if resource.template else None
    )
    contract = {
        "resource": listed,
        "template": template,
        "parameters": resource.parameters,
        "required": resource.required,
    }
    path = SNAPSHOTS / f"{resource.name}.json"
    now = json.dumps(contract, indent=2, ensure_ascii=False, sort_keys=True) + "\n"
    if os.environ.get("THALWEG_SNAP"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(now)
    assert path.exists() and path.read_text() == now, f"the contract of {resource.uri} changed; `just snap` accepts it"


def test_every_snapshot_is_of_a_resource_that_exists() -> None:
    assert {path.stem for path in SNAPSHOTS.glob("*.json")} == {resource.name for resource in RESOURCES.values()}
