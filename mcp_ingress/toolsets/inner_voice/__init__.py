"""Retrieval of snippets, one tool. `eligible` and `queries` are what it asks of the store."""

from __future__ import annotations

import logging

from mcp_ingress.call import Call
from mcp_ingress.toolset import ErrorStyle, Setup, Toolset
from processors.inner_voice.config import InnerVoiceConfig, read_config
from streams.errors import Refused

logger = logging.getLogger(__name__)


def _configured(setup: Setup) -> list[object]:
    return [read_config(setup.environ, logger.warning)]


def _refuse_disabled(call: Call) -> None:
    if not call.part(InnerVoiceConfig).is_enabled:
        message = "inner_voice.retrieve is off; start the node with SURR_ENABLE_INNER_VOICE=1."
        raise Refused(message, code="feature_disabled")


TOOLSET = Toolset(
    name="inner_voice",
    purpose="Material for synthesis",
    guide=("`inner_voice.retrieve` gives snippets with provenance, of all that is known",),
    errors=ErrorStyle(codes={"invalid_argument": "invalid_params"}, code_field="code"),
    parts=_configured,
    gate=_refuse_disabled,
    leaves_no_details=lambda services: services.part(InnerVoiceConfig).is_quiet,
)
