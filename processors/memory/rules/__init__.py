"""Pure rules that concern memories of every kind."""
