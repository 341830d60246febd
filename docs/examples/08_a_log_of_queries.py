"""
Nothing but a log of queries
============================

No classes and no judgements: objects that answer more of the logged queries than chance allows are held
back, all others stay exactly where they are.
"""

import matplotlib.pyplot as plt
import numpy as np

from hubless import nearest
from hubless.chance import hub_threshold
from hubless.corrections import HoldHubs
from hubless.hubness import k_occurrence

rng = np.random.default_rng(0)
items = rng.standard_normal((3000, 100)).astype(np.float32)
items[:3] *= 0.05  # three items near the mean: hubs
log, later = (rng.standard_normal((2000, 100)).astype(np.float32) for _ in range(2))

correction = HoldHubs(metric="l2", column=True).fit(log, items)
corrected = correction.move(items)
asked = np.pad(later, ((0, 0), (0, corrected.shape[1] - later.shape[1])))  # queries get a 0

figure, axis = plt.subplots(figsize=(6.5, 3.2), layout="constrained")
for name, Z, Q, colour in (("before", items, later, "#e69f00"), ("after", corrected, asked, "#0072b2")):
    counts = np.sort(k_occurrence(nearest(Q, Z, 10, return_distance=False), len(items)))[::-1]
    axis.semilogy(np.arange(1, 101), np.maximum(counts[:100], 0.5), color=colour, label=name)
    print(f"{name}: the three busiest items are among the answers of {counts[:3].tolist()} queries")
axis.axhline(hub_threshold(len(later), len(items), 10), color="gray", ls=":", label="chance")
axis.set(xlabel="items, busiest first", ylabel="queries not in the log that return it")
axis.legend()
plt.show()
