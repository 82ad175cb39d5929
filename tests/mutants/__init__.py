"""A kept list of one-line faults, and the command that shows that each of them fails a test: `just mutants`."""
