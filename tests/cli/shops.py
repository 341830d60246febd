"""Small indexes for the tests of verbs, on data that plain loops can check."""

import csv
import json

import faiss
import numpy as np

from tests import reference

N, D = 240, 12


def write_csv(path, **columns):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def write_faiss(path, X, index=None):
    index = faiss.IndexFlatL2(X.shape[1]) if index is None else index
    index.add(X)
    faiss.write_index(index, str(path))
    return path


def unit(X):
    """Rows of length 1, in float64."""
    return np.array([x / np.linalg.norm(x) for x in np.asarray(X, dtype=np.float64)])


def tree(folder):
    """Every file under a folder with its bytes."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class Shop:
    """240 items of 4 classes in an index by L2, with a table beside it; 60 queries with their classes."""

    def __init__(self, folder):
        rng = np.random.default_rng(0)
        centres = rng.standard_normal((4, D))
        self.y, self.truth = (rng.integers(0, 4, n).astype(str) for n in (N, 60))
        self.X, self.queries = (
            (centres[y.astype(int)] + rng.standard_normal((len(y), D))).astype(np.float32)
            for y in (self.y, self.truth)
        )
        self.ids = [f"i{row}" for row in rng.permutation(N)]
        self.texts = [f"text of {name}, é" for name in self.ids]
        self.index = write_faiss(folder / "index.faiss", self.X)
        self.items = write_csv(folder / "items.csv", id=self.ids, text=self.texts, category=self.y)
        np.save(folder / "queries.npy", self.queries)
        write_csv(folder / "queries.csv", category=self.truth)
        self.source = [self.index, "--items", self.items]
        self.asking = ["--queries", folder / "queries.npy", "--query-items", folder / "queries.csv"]
        self.folder = folder


class Library:
    """200 documents compared by cosine; queries share half of the columns of their documents, with noise."""

    def __init__(self, folder):
        rng = np.random.default_rng(1)
        self.X = rng.standard_normal((200, D)).astype(np.float32)
        self.X[:, 6:] *= 2  # columns in which queries are noise
        self.ids = [f"d{number}" for number in range(200)]
        answers = [rng.choice(60 + 60 * (n >= 100), 1 + n % 2, replace=False) for n in range(150)]
        meant = self.X + rng.standard_normal(self.X.shape)
        near = np.array([meant[rows].mean(axis=0) for rows in answers])
        near[:, 6:] = 0
        self.queries = (near + 0.3 * rng.standard_normal(near.shape)).astype(np.float32)
        self.relevant = {  # the last of several is worth more; one that answers nothing is worth 0
            f"q{number}": {self.ids[row]: 1 + place for place, row in enumerate(rows)}
            for number, rows in enumerate(answers)
        }
        np.save(folder / "docs.npy", self.X)
        np.save(folder / "queries.npy", self.queries)
        (folder / "docs.json").write_text(json.dumps(self.ids))
        (folder / "queries.json").write_text(json.dumps([*self.relevant]))
        self.parts = {"train": [*self.relevant][:100], "test": [*self.relevant][100:]}
        for part, names in self.parts.items():
            rows = [(q, d, worth) for q in names for d, worth in self.relevant[q].items()]
            rows.append((names[0], "d0" if "d0" not in self.relevant[names[0]] else "d1", 0))
            lines = ["\t".join(map(str, row)) for row in [("query-id", "corpus-id", "score"), *rows]]
            (folder / f"{part}.tsv").write_text("\n".join(lines) + "\n")
        self.source = [folder / "docs.npy", "--metric", "cosine", "--items", folder / "docs.json"]
        self.asking = ["--queries", folder / "queries.npy", "--query-items", folder / "queries.json"]
        self.folder = folder


def lambda_of(X, y, relative):
    """λ of the paper's mover, where it is given in units of the mean eigenvalue of K."""
    mu = reference.total_mean(X)
    z = np.array([X[j] - mu for _, j in reference.pairs(reference.targets(X, y, 1))])
    return relative * np.trace(reference.moments(z, z)[1]) / X.shape[1]


def figures_of(found):
    return {(entry["measure"], entry["part"]): entry for entry in found["figures"]}
