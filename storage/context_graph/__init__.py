"""What the store keeps of Context Graph's memories beside its tables."""
