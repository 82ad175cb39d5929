"""Reducers: the one place where a decision on state is made, in log order, as a pure function of rows and event."""
