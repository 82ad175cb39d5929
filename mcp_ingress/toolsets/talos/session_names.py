"""The names that a session has where `session_open` does not say them: settings of the node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from mcp_ingress.services import Services


@dataclass(frozen=True)
class SessionNames:
    """Persona, protocol and human of a session whose caller names none."""

    persona: str = "Talos"
    protocol: str = "LBRP"
    human: str = "Robbie"

    @classmethod
    def of(cls, settings: Any) -> SessionNames:
        """Those of the settings `persona`, `protocol` and `human`; an empty one leaves the name as it is."""
        given = {name: getattr(settings, name).strip() for name in NAMES}
        return cls(**{name: value for name, value in given.items() if value})


UNCONFIGURED = SessionNames()
NAMES = tuple(asdict(UNCONFIGURED))


def default_names(services: Services) -> Mapping[str, Any]:
    """What the arguments of `session_open` are on this node where a call does not say."""
    return asdict(services.part(SessionNames))
