"""The rules of snippets: floors, slots, texts and hashes. Pure."""
