"""The process: the node or worker, its parts, its start and its end."""
