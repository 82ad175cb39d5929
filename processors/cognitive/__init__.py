"""Cognitive Memory: what its tools, reducers and judges compute, as pure functions."""
