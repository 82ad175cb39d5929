"""What agents and collectors write, read into events: one module a format."""
