"""What a client's model is given without asking: notes at a session's start, facts with a prompt."""
