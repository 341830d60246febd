"""
Hubs grow with the dimension
============================

Two thousand random vectors, in 3 and in 300 dimensions: how often is each of them among the ten nearest
neighbours of the others? This number is called N10, and its mean is 10 in both cases.
"""

import matplotlib.pyplot as plt
import numpy as np

from hubless import measure_hubness, nearest
from hubless.hubness import k_occurrence

rng = np.random.default_rng(0)
figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), sharey=True, layout="constrained")
for d, axis in zip((3, 300), axes, strict=True):
    X = rng.standard_normal((2000, d))
    neighbors = nearest(X, X, 10, return_distance=False, exclude_self=True)
    axis.hist(k_occurrence(neighbors, len(X)), bins=40, log=True, color="#0072b2")
    hubness = measure_hubness(neighbors, len(X))
    axis.set_title(f"{d} dimensions")
    axis.set_xlabel("N10 of a vector")
    print(f"{d:>3} dimensions: the busiest vector is among the neighbours of {hubness.largest_occurrence}")
    print(f"                {hubness.antihub_share:.0%} of the vectors are among the neighbours of none")
axes[0].set_ylabel("vectors")
plt.show()

# %%
# The cause is geometry: in many dimensions, vectors near the mean of the data are nearer to everything else
# than most vectors are to each other. No index and no faster search changes that; moving the stored vectors
# does.
