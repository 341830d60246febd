"""Where vectors are kept: one contract (store.py), and a file or folder for each kind of store (kinds.py)."""
