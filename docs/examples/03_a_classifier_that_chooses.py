"""
A classifier that chooses how to move
=====================================

``MoveLabeledClassifierCV(mover="auto")`` compares many ways to move the stored objects on held-out queries;
not moving at all is one of them.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_blobs
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from hubless import MoveLabeledClassifier, MoveLabeledClassifierCV

X, y = make_blobs(1200, 200, centers=10, cluster_std=2.5, center_box=(-1, 1), random_state=0)
X, queries, y, truth = train_test_split(X, y, random_state=0)

models = {
    "plain k-NN": KNeighborsClassifier(15),
    "the paper's map": MoveLabeledClassifier(n_neighbors=15),
    "auto": MoveLabeledClassifierCV(mover="auto", random_state=0),
}
accuracy = {name: model.fit(X, y).score(queries, truth) for name, model in models.items()}

figure, axis = plt.subplots(figsize=(6, 2.6), layout="constrained")
bars = axis.barh([*accuracy], [*accuracy.values()], color=["#999999", "#56b4e9", "#0072b2"])
axis.bar_label(bars, fmt="%.2f", padding=3)
axis.invert_yaxis()
axis.set(xlim=(0, 1), xlabel="accuracy on queries that no model has seen")
plt.show()

# %%
# What it chose, and why:
print(models["auto"].explain())
