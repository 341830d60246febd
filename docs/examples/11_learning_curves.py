"""
How many labeled objects are needed?
====================================

Accuracy with more and more stored objects, for plain k-NN and for the map of the paper.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs
from sklearn.neighbors import KNeighborsClassifier

from hubless import MoveLabeledClassifier

X, y = make_blobs(5000, 200, centers=10, cluster_std=2.5, center_box=(-1, 1), random_state=0)
queries, truth, X, y = X[:1000], y[:1000], X[1000:], y[1000:]
sizes = [100, 200, 400, 800, 1600, 4000]
models = {"plain k-NN": KNeighborsClassifier(10), "moved": MoveLabeledClassifier(n_neighbors=10)}
figure, axis = plt.subplots(figsize=(6, 3.2), layout="constrained")
for (name, model), colour in zip(models.items(), ("#e69f00", "#0072b2"), strict=True):
    curve = [model.fit(X[:n], y[:n]).score(queries, truth) for n in sizes]
    axis.semilogx(sizes, curve, "o-", color=colour, label=name)
    print(name, np.round(curve, 2).tolist())
axis.set(xlabel="stored objects", ylabel="accuracy", xticks=sizes, xticklabels=sizes)
axis.minorticks_off()
axis.legend()
plt.show()
