"""
The paper's idea in two dimensions
==================================

Stored objects (circles) move toward the objects that they should be neighbours of. Queries (crosses) stay.
"""

import matplotlib.pyplot as plt
import numpy as np

from hubless import MoveLabeled

rng = np.random.default_rng(11)
centres = 2.6 * rng.standard_normal((3, 2))
y, truth = rng.integers(0, 3, 39), rng.integers(0, 3, 18)
X = centres[y] + rng.standard_normal((39, 2))
queries = centres[truth] + rng.standard_normal((18, 2))

# %%
# W is learned by ridge regression from each object's nearest objects of its own class to itself, in closed
# form. ``fit_transform`` returns the moved objects; ``transform`` leaves queries as they are.
mover = MoveLabeled(alpha=30.0)
moved = mover.fit_transform(X, y)
assert np.array_equal(mover.transform(queries), queries)

colours = np.array(["#007a5a", "#a8457f", "#7d6e00"])
figure, axis = plt.subplots(figsize=(6, 4.5), layout="constrained")
for start, end, colour in zip(X, moved, colours[y], strict=True):
    axis.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": colour, "alpha": 0.6})
axis.scatter(*X.T, facecolors="none", edgecolors=colours[y], label="stored, before")
axis.scatter(*moved.T, c=colours[y], label="stored, moved")
axis.scatter(*queries.T, c=colours[truth], marker="x", label="queries")
axis.legend()
plt.show()
