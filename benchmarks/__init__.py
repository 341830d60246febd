"""How fast hubless is, beside the bare matrix products and its peers: `python -m benchmarks VERB`."""
