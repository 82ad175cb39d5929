"""The resources of every server, one module each."""
