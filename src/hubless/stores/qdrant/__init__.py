"""Collections of Qdrant: a server, a local folder, or Qdrant Edge."""
