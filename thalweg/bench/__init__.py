"""Measurements as commands.

Each shows its target, its figure, and the limit of the bare parts measured in the same run.
"""
