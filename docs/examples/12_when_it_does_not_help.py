"""
When moving does not help
=========================

In few dimensions there are hardly any hubs, and nothing to repair. Measure first: an N10 skewness below 1
means that there is little to gain, and the paper's map with a fixed λ may cost accuracy. ``mover="auto"``
compares every setting with not moving at all.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits, load_iris, load_wine, make_blobs
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from hubless import MoveLabeledClassifier, measure_hubness, nearest

sets = {
    "iris, 4 columns": load_iris(return_X_y=True),
    "wine, 13": load_wine(return_X_y=True),
    "digits, 64": load_digits(return_X_y=True),
    "blobs, 200": make_blobs(1200, 200, centers=10, cluster_std=2.5, center_box=(-1, 1), random_state=0),
}
figure, axis = plt.subplots(figsize=(6, 3.4), layout="constrained")
for name, (X, y) in sets.items():
    X, queries, y, truth = train_test_split(X, y, random_state=0, stratify=y)
    scaler = StandardScaler().fit(X)
    X, queries = scaler.transform(X), scaler.transform(queries)
    skewness = measure_hubness(nearest(queries, X, 10, return_distance=False), len(X)).skewness
    plain = KNeighborsClassifier(10).fit(X, y).score(queries, truth)
    gain = 100 * (MoveLabeledClassifier(n_neighbors=10).fit(X, y).score(queries, truth) - plain)
    axis.scatter(skewness, gain, color="#0072b2")
    axis.annotate(name, (skewness, gain), xytext=(6, 4), textcoords="offset points")
axis.axhline(0, color="gray", lw=1)
axis.margins(x=0.25, y=0.15)
axis.set(xlabel="N10 skewness before", ylabel="points of accuracy\ngained by the paper's map")
plt.show()
