"""
More data than memory
=====================

The map is learned from sums over pairs, so blocks of data can be read one after the other, and their sums
merged: the result is that of all the data at once.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from hubless import MoveLabeled
from hubless.moments import moments_of_targets
from hubless.movers.points import weighted_mean
from hubless.solve import ridge_path
from hubless.targets import same_class_targets

X, y = make_blobs(4000, 100, centers=8, cluster_std=2.5, center_box=(-1, 1), random_state=0)
mean = weighted_mean(X)
total, norms = None, []
for start in range(0, len(X), 500):  # each block alone in memory
    block, classes = X[start : start + 500], y[start : start + 500]
    moments = moments_of_targets(block, same_class_targets(block, classes, 1), origin=mean)
    total = moments if total is None else total + moments
    W = ridge_path(total.A, total.K).at(1000.0)
    norms.append(np.linalg.norm(W))

# %%
# With more blocks, W settles; ``fit_large`` and ``hubless fit --memory 2GB`` do this for files.
figure, axis = plt.subplots(figsize=(6, 2.8), layout="constrained")
axis.plot(np.arange(500, len(X) + 1, 500), norms, "o-", color="#0072b2")
axis.axhline(np.linalg.norm(MoveLabeled(1000.0).fit(X, y).W_), color="gray", ls=":", label="all at once")
axis.set(xlabel="objects read so far", ylabel="norm of W", ylim=(0, None))
axis.legend()
plt.show()
