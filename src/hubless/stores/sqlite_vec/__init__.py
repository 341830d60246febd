"""Tables of sqlite-vec."""
