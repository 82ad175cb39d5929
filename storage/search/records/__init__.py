"""Records: filters, passages, relations, neighbours in time, ids by label."""
