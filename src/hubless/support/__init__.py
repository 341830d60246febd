"""Shared by all other rooms: atomic writes, locks, optional packages, progress bars, text."""
