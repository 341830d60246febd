"""
On a GPU
========

Tensors in, tensors out: everything runs where the data is. With ``pip install 'hubless[torch]'`` and a GPU of
NVIDIA, ``device`` is "cuda"; the same lines run on a processor.
"""

import matplotlib.pyplot as plt
import torch
from sklearn.datasets import make_blobs

from hubless import MoveLabeledClassifier, measure_hubness, nearest

device = "cuda" if torch.cuda.is_available() else "cpu"
X, y = make_blobs(4000, 200, centers=10, cluster_std=2.5, center_box=(-1, 1), random_state=0)
X, y = torch.tensor(X, dtype=torch.float32, device=device), torch.tensor(y, device=device)
stored, queries = X[:3000], X[3000:]
model = MoveLabeledClassifier(n_neighbors=15).fit(stored, y[:3000])
answers = model.predict(queries)
accuracy = (answers == y[3000:]).float().mean()
print(f"on {answers.device}: accuracy {accuracy:.2f}")

# %%
# The measures take tensors, too. NumPy arrays are computed on a GPU by ``nearest(..., device="cuda")``, in
# blocks if they do not fit into its memory.
found = {"before": nearest(queries, stored, 10)[1], "after": model.kneighbors(queries, 10)[1]}
figure, axis = plt.subplots(figsize=(6, 2.8), layout="constrained")
for (name, neighbors), colour in zip(found.items(), ("#e69f00", "#0072b2"), strict=True):
    hubness = measure_hubness(neighbors, len(stored))
    busiest = torch.sort(hubness.occurrence, descending=True).values[:300]
    axis.plot(busiest.cpu(), color=colour, label=f"{name}: skewness {hubness.skewness:.1f}")
axis.set(xlabel="stored objects, the busiest first", ylabel="N10")
axis.legend()
plt.show()
