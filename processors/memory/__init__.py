"""What every memory has: texts that become vectors, and the spaces in which they lie."""
