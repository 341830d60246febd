"""Tables of LanceDB."""
