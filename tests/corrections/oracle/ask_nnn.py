"""What the authors' package nnn-retrieval answers, stored for tests: it runs separately, with torch.

    python -m venv oracle && oracle/bin/pip install nnn-retrieval==1.0.1
    oracle/bin/python tests/corrections/oracle/ask_nnn.py  # writes nnn_retrieval.json beside it

The data are drawn again by the tests, from the same seed.
"""

import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
from nnn import NNNRanker, NNNRetriever

SETTINGS = ((0.25, 16), (0.5, 8), (0.75, 1), (1.0, 40))  # strength and number of nearest queries


def data():
    """Unit vectors: 40 logged queries, 60 objects and 12 new queries of 8 columns."""
    rng = np.random.default_rng(7)
    drawn = [rng.standard_normal((n, 8)) + 0.5 for n in (40, 60, 12)]
    return [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in drawn]


def ask(strength, k):
    """The means that are subtracted, and the ten answers with their scores."""
    logged, objects, queries = data()
    ranker = NNNRanker(NNNRetriever(8), objects, logged, k, 128, strength)
    scores, answers = ranker.search(queries, 10)
    return {
        "strength": strength,
        "n_neighbors": k,
        "means": np.asarray(ranker.alignment_means).ravel().tolist(),
        "scores": np.asarray(scores).tolist(),
        "answers": np.asarray(answers).tolist(),
    }


if __name__ == "__main__":
    versions = {name: version(name) for name in ("nnn-retrieval", "numpy")}
    answers = {"versions": versions, "cases": [ask(*setting) for setting in SETTINGS]}
    Path(__file__).with_name("nnn_retrieval.json").write_text(json.dumps(answers) + "\n")
