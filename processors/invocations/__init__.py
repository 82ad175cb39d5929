"""Records of tool calls."""
