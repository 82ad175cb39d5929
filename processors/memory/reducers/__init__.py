"""What every memory has: its vectors, and the spaces that they lie in."""
