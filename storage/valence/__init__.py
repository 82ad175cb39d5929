"""What the store keeps of beliefs beside its tables."""
