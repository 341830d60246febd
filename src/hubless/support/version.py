"""The version of hubless."""

__version__ = "0.2.0"
