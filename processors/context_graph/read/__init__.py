"""What Context Graph reads of the store and the indexes."""
