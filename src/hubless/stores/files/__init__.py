"""Vectors in files and folders of files."""
