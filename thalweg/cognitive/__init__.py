"""Cognitive Memory for operators: its judges, their agreement, and what is put in by hand."""
