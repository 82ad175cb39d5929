"""Full-text search: the analyzer, BM25 over tantivy, posting lists."""
