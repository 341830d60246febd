"""Collections of Chroma."""
