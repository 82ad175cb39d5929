"""What the command line asks of a running process, and its socket."""
