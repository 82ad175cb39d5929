"""Cognitive Memory decides: its memories, and their evaluation."""
