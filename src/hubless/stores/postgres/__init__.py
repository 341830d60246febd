"""Tables of PostgreSQL with pgvector."""
