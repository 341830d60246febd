"""
What moving changes
===================

``compare`` measures everything before and after, for queries whose classes are known; ``hubless.plot``
draws it, and ``report=`` writes it as a page that opens in any browser.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_blobs
from sklearn.model_selection import train_test_split

from hubless import MoveLabeledClassifierCV, compare, plot

X, y = make_blobs(1200, 200, centers=10, cluster_std=2.5, center_box=(-1, 1), random_state=0)
X, queries, y, truth = train_test_split(X, y, random_state=0)
report = compare(MoveLabeledClassifierCV(random_state=0), X, y, queries, truth)
print(report.figures["summary"]["sentence"])

# %%
# How often each object is returned, sorted: a steep start is a few hubs that take most answers.
figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
plot.skyline(report, ax=axes[0])
plot.lorenz(report, ax=axes[1])
plt.show()
