"""An insight drawn from a conversation: a belief with these marks."""

DEFAULT_CONFIDENCE = 0.8
EXTRACTION = "conversation_extraction"
"""The extraction_method of its belief."""
LINK = "manual"
"""How belief and session were linked: by a call, not by automatic capture."""
