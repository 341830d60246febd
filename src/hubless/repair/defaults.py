"""Defaults that the command line shows in its help; nothing is imported here, so that help is fast."""

# Items that a preview fetches per query; as measured, they have 99 % of the ten nearest after the move.
FETCHED = 100
# columns that are shown where none is named; the last is what Chroma calls its texts
TEXT_COLUMNS = ("text", "title", "name", "document")
