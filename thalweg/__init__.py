"""The program: command line, settings, and the node that puts the parts together."""

__version__ = "0.1.0"
