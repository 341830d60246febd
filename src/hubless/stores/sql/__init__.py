"""Tables of databases in a file: what SQLite and DuckDB have in common."""
