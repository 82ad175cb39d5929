"""Measurements as commands: each puts what was promised, what was measured and the bare limit of the same run side by side."""
