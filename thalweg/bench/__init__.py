"""Measurements as commands: each shows the target, the figure and the bare limit of the same run side by side."""
