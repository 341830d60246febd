"""Labeled objects beyond memory: looked at once, brought together by class, learned from piece by piece."""
