"""What the notes are made of, read from the store."""
