"""Dreams of a node: what it makes of its memories while nobody works."""
