"""
In a pipeline of scikit-learn
=============================

``MoveLabeled`` is a transformer: ``fit`` moves the stored objects, and queries pass through unchanged. So
any k-NN of scikit-learn can follow it, and a grid search can choose its parameters.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hubless import MoveLabeled

X, y = make_blobs(600, 150, centers=6, cluster_std=2.5, center_box=(-1, 1), random_state=1)
pipeline = make_pipeline(StandardScaler(), MoveLabeled(), KNeighborsClassifier(10))
alphas = np.logspace(2, 7, 11)
search = GridSearchCV(pipeline, {"movelabeled__alpha": alphas}, cv=5).fit(X, y)

# %%
# λ decides how far objects move: the larger it is, the nearer all of them come to the mean.
figure, axis = plt.subplots(figsize=(6, 3.2), layout="constrained")
axis.semilogx(alphas, search.cv_results_["mean_test_score"], "o-", color="#0072b2")
axis.set(xlabel="λ (alpha)", ylabel="accuracy by cross-validation")
plt.show()
