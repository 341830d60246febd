"""20 Newsgroups with the paper's protocol: original metric, Move-query and Move-labeled.

    HUBLESS_DATA=/path/to/data python -m benchmarks.news [--splits 4] [--out benchmarks/results/news.json]

The file is news/20Newsgroups.mat from Deng Cai's page of text data: counts of 26,214 terms in 18,846
documents of 20 classes. Terms are weighted (1 + log tf) log(N / df) and reduced to 300 principal components
of all documents, as in the paper (no label is used); documents are then split 70 : 30.
"""

import argparse
import json
import os
import platform
from collections.abc import Iterator, Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse
from sklearn.model_selection import train_test_split

from hubless.experiment import METHODS, run

SOURCE = "http://www.cad.zju.edu.cn/home/dengcai/Data/TextData.html (20 Newsgroups, 18846 documents)"
RESULT = Path(__file__).parent / "results" / "news.json"


# (1 + log tf) · log(N / df)
def log_tfidf(counts: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    """Weighted terms; the same pattern of entries as the counts."""
    weighted = counts.astype(np.float64)
    df = np.bincount(weighted.indices, minlength=weighted.shape[1])
    weighted.data = (1 + np.log(weighted.data)) * np.log(weighted.shape[0] / df)[weighted.indices]
    return weighted


# A ≈ Q Qᵀ A with Q an orthonormal basis of (A Aᵀ)^q A Ω, Ω Gaussian (Halko, Martinsson & Tropp 2011), q = 6
def principal_components(X: scipy.sparse.csr_array, n_components: int, seed: int = 0) -> np.ndarray:
    """Centred X on its leading principal axes, from a randomised SVD that never makes X dense."""
    mean = np.asarray(X.mean(axis=0)).ravel()
    basis = np.random.default_rng(seed).standard_normal((X.shape[1], n_components + 10))
    for _ in range(7):
        left, _ = np.linalg.qr(X @ basis - mean @ basis)
        right = X.T @ left - np.outer(mean, left.sum(axis=0))
        basis, _ = np.linalg.qr(right)
    U, values, _ = np.linalg.svd(right.T, full_matrices=False)
    return (left @ U[:, :n_components]) * values[:n_components]


def load_news(data_dir: str | os.PathLike[str], n_components: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Features of shape (18846, n_components) in float32, and classes from 0."""
    path = Path(data_dir) / "news" / "20Newsgroups.mat"
    if not path.is_file():
        raise SystemExit(f"{path} is not there. Get 20Newsgroups.mat from {SOURCE} and put it there.")
    file = scipy.io.loadmat(path)
    X = principal_components(log_tfidf(scipy.sparse.csr_array(file["fea"])), n_components)
    return X.astype(np.float32), file["gnd"].ravel().astype(np.int64) - 1


def cells(X: np.ndarray, y: np.ndarray, n_splits: int) -> Iterator[dict[str, Any]]:
    """One result per split and method."""
    for seed in range(n_splits):
        parts = train_test_split(X, y, test_size=0.3, random_state=seed)
        train, test, train_y, test_y = parts
        mean = train.mean(axis=0)
        for method in METHODS:
            yield {"split": seed} | run(method, train - mean, train_y, test - mean, test_y, seed)._asdict()


def markdown(result: dict[str, Any]) -> str:
    """The result as a table beside the paper's figures: mean and standard error over the splits."""
    paper = {"original metric": (76.9, 21.93), "Move-query": (70.0, 33.36), "Move-labeled": (81.6, 2.88)}
    lines = [
        "| | accuracy | paper | N10 skewness | paper | choosing k and λ | then fit |",
        "|---|---|---|---|---|---|---|",
    ]
    for method, (accuracy, skew) in paper.items():
        own = [cell for cell in result["cells"] if cell["method"] == method]
        mean = {key: np.mean([cell[key] for cell in own]) for key in own[0] if key.endswith("_seconds")}
        fit = "none" if method == "original metric" else f"{mean['fit_seconds']:.2f} s"
        lines.append(
            f"| {method} | {_with_error([100 * cell['accuracy'] for cell in own])} % | {accuracy} % "
            f"| {_with_error([cell['skewness'] for cell in own])} | {skew:.1f} "
            f"| {mean['choice_seconds']:.0f} s | {fit} |"
        )
    return "\n".join(lines)


def _with_error(values: list[float]) -> str:
    """Mean ± standard error."""
    return f"{np.mean(values):.1f} ± {np.std(values, ddof=1) / len(values) ** 0.5:.1f}"


def machine() -> dict[str, Any]:
    """What a reader needs to know of the machine and the software."""
    packages = ("hubless", "numpy", "scipy", "scikit-learn")
    return {
        "date": date.today().isoformat(),
        "cores": os.cpu_count(),
        "processor": platform.processor() or platform.machine(),
        "python": platform.python_version(),
    } | {name: version(name) for name in packages}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", default=os.environ.get("HUBLESS_DATA"), help="default: $HUBLESS_DATA")
    parser.add_argument("--splits", type=int, default=4)
    parser.add_argument("--out", type=Path, default=RESULT)
    args = parser.parse_args(arguments)
    if not args.data_dir:
        parser.error(
            f"set HUBLESS_DATA or give --data-dir, a folder with news/20Newsgroups.mat from {SOURCE}"
        )
    X, y = load_news(args.data_dir)
    found = []
    for cell in cells(X, y, args.splits):
        print(json.dumps(cell), flush=True)
        found.append(cell)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    result = {"dataset": "news", "shape": X.shape, "machine": machine(), "cells": found}
    args.out.write_text(json.dumps(result, indent=1) + "\n")
    print(markdown(result))


if __name__ == "__main__":
    main()
