"""Pure rules: which hits are worth it, and the text that is made of them."""
