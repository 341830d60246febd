"""Where vectors are kept, one file a kind, all of them alike (see `store.py`)."""
