"""How a node is, and what is known of one that does not run."""
