"""Context Graph: memories in six modalities, and what searches returned of them."""
