"""Records: filters, selections, relations, neighbours in time, ids by label."""
