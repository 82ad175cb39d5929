"""What connects to a node: the pump, hooks, and how a node is found or started. Imports next to nothing."""
