"""The version of hubless."""

__version__ = "0.1.0"
