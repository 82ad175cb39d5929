"""The frame: the log in batches, reducers, stages, the materialiser. It knows no domain."""
