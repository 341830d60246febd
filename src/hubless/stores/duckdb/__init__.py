"""Tables of DuckDB."""
