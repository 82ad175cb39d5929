"""Tables of the words by which the rules of change know what a statement says, one file a language."""
