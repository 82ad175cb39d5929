"""The stages: Faust agents that derive facts from the log. A stage is a pure core and a thin agent."""
