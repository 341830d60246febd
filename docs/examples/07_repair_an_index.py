"""
Repair a FAISS index, and switch back
=====================================

The same functions as the commands ``hubless doctor``, ``fit``, ``apply``, ``promote`` and ``rollback``. The
index in service is only read; the repaired one is built beside it.
"""

import tempfile
from pathlib import Path

import faiss
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs
from sklearn.model_selection import train_test_split

from hubless import repair
from hubless.stores.opening import open_store

X, y = make_blobs(1500, 200, centers=10, cluster_std=2.5, center_box=(-1, 1), random_state=0)
X, queries, y, truth = train_test_split(X.astype(np.float32), y, random_state=0)
folder = Path(tempfile.mkdtemp())
name = str(folder / "index.faiss")
index = faiss.IndexFlatL2(X.shape[1])
index.add(X)
faiss.write_index(index, name)
np.save(folder / "labels.npy", y)


def precision(name):
    """Return the share of the ten answers that have the class of the query."""
    _, rows = faiss.read_index(name).search(queries, 10)
    return (y[rows] == truth[:, None]).mean()


# %%
# Learn, build the moved index, and put it in the place of the other.
source = open_store(name, items=folder / "labels.npy")
model = repair.fit_index(source, labels="label")
steps = {"original": precision(name)}
repair.apply_index(model, source, str(folder / "moved.faiss"))
repair.promote_index(name, str(folder / "moved.faiss"))
steps["promoted"] = precision(name)
repair.rollback_index(name)
steps["rolled back"] = precision(name)

figure, axis = plt.subplots(figsize=(6, 2.4), layout="constrained")
bars = axis.barh([*steps], [*steps.values()], color=["#e69f00", "#0072b2", "#e69f00"])
axis.bar_label(bars, fmt="%.2f", padding=3)
axis.invert_yaxis()
axis.set(xlim=(0, 1), xlabel="answers of the right class, the same queries each time")
plt.show()
