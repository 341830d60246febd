"""
Learn from pairs of a query and a stored object
===============================================

Without classes, pairs that belong together are enough: questions and their answers, texts and images,
queries and what was clicked. Here queries are a rotated and noisy copy of what they look for.
"""

import matplotlib.pyplot as plt
import numpy as np

from hubless import MoveLabeled, nearest

rng = np.random.default_rng(0)
n, d = 1500, 120
stored = rng.standard_normal((n, d)) @ np.diag(np.linspace(2, 0.5, d))
rotation = np.eye(d) + 0.1 * rng.standard_normal((d, d))
queries = stored @ rotation + 2.5 * rng.standard_normal((n, d))

# %%
# Learn from the first 1000 pairs, and search with queries whose objects were in no pair.
train, test = np.arange(1000), np.arange(1000, n)
mover = MoveLabeled(toward="identity").fit_pairs(queries=queries[train], objects=stored[train])
objects = {"as they are": stored, "moved": mover.move(stored)}
figure, axis = plt.subplots(figsize=(6, 3.2), layout="constrained")
for (name, Z), colour in zip(objects.items(), ("#e69f00", "#0072b2"), strict=True):
    found = nearest(queries[test], Z, 20, return_distance=False) == test[:, None]
    recall = np.cumsum(found.mean(axis=0))
    axis.plot(np.arange(1, 21), recall, "o-", color=colour, label=f"stored objects {name}")
    print(f"{name}: the right object is the nearest for {recall[0]:.0%} of the queries")
axis.set(xlabel="answers shown", ylabel="queries whose object is among them", ylim=(0, None))
axis.legend()
plt.show()
