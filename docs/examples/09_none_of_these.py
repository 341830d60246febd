"""
Probabilities, and "none of these"
==================================

The probabilities of ``MoveLabeledClassifierCV`` are calibrated on held-out queries, and queries unlike
anything stored can be refused, at a rate of false alarms that you choose.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from hubless import MoveLabeledClassifierCV

X, y = load_digits(return_X_y=True)
known = y < 8  # eights and nines are never stored
X_train, X_known, y_train, y_known = train_test_split(X[known], y[known], random_state=0)
model = MoveLabeledClassifierCV(random_state=0).fit(X_train, y_train)

# %%
# How familiar are queries of known and of unknown classes?
figure, axis = plt.subplots(figsize=(6, 3), layout="constrained")
for name, queries, colour in (("known classes", X_known, "#0072b2"), ("new classes", X[~known], "#e69f00")):
    axis.hist(model.familiarity(queries), bins=30, alpha=0.7, density=True, color=colour, label=name)
    refused = model.predict(queries, reject=0.05) == -1
    print(f"{name}: {refused.mean():.0%} of the queries are answered by 'none of these'")
axis.set(xlabel="familiarity", yticks=[])
axis.legend()
plt.show()
