"""
Search images by another kind of vector
=======================================

Texts search for images, one language for another: queries and stored objects are then vectors of different
models, and of different widths. ``fit_pairs`` maps the stored side into the space of the queries. Here the
upper half of a handwritten digit, 32 pixels, looks for its lower part, 24 pixels.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from hubless import MoveLabeled, nearest
from hubless.theory import compare_directions

digits = load_digits().data
train, test = train_test_split(digits, train_size=1200, random_state=0)
queries, objects = test[:, :32], test[:, 40:]  # a row of pixels between them is in neither
mover = MoveLabeled().fit_pairs(queries=train[:, :32], objects=train[:, 40:])
stored = mover.move(objects)  # 32 columns, as the queries have
found = nearest(queries, stored, 3, return_distance=False)

# %%
# Six upper halves, and the lower parts that they find, the nearest first.
figure, axes = plt.subplots(3, 6, figsize=(6, 3.6), layout="constrained")
for column, query in enumerate(range(6)):
    for place, axis in enumerate(axes[:, column]):
        pixels = np.zeros((8, 8))
        pixels[:4], pixels[5:] = queries[query].reshape(4, 8), objects[found[query, place]].reshape(3, 8)
        axis.imshow(pixels, cmap="gray_r")
        axis.set(xticks=[], yticks=[])
for axis, name in zip(axes[:, 0], ("nearest", "second", "third"), strict=True):
    axis.set_ylabel(name)
plt.show()

# %%
# Why the stored side, and not the queries? What ridge regression maps, shrinks, and queries that shrink leave
# stored objects that vary more than they do: that makes hubs.
pairs = train[:, :32], train[:, 40:]
both = compare_directions(pairs, queries, objects, np.arange(len(test)))
for side, measured in zip(("stored objects", "queries"), both, strict=True):
    print(f"{side} mapped: skewness {measured.skewness:.1f}, found among ten {measured.recall[10]:.0%}")
