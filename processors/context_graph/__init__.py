"""Context Graph: what it remembers. Its tools are not part of this version."""
