"""What index repair is measured on: SciFact and banking77 as users have them, or tiny files of their form."""

import csv
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from hubless.download import data_folder
from hubless.index.collection import Collection, collect
from hubless.index.pairs import Judged, judged
from hubless.index.repair import unit
from hubless.stores.opening import open_store

LABEL = "category"  # the column of banking77's classes


class Pairs(NamedTuple):
    """Documents, and queries with their relevant documents, to learn from and to ask."""

    items: Collection
    train: Judged
    test: Judged

    @property
    def seen(self) -> np.ndarray:
        """Whether a relevant document of each test query has a training query too; (queries,)."""
        taught = {item for relevant in self.train.relevant for item in relevant}
        return np.array([not taught.isdisjoint(relevant) for relevant in self.test.relevant], dtype=bool)


class Labeled(NamedTuple):
    """Items with a class each, and queries with theirs."""

    items: Collection
    queries: Collection


@contextmanager
def folder_of(name: str, quick: bool) -> Iterator[Path]:
    """The folder of a data set, or a passing one with tiny files of the same names."""
    if not quick:
        yield data_folder() / name
        return
    with TemporaryDirectory() as folder:
        TINY[name](Path(folder))
        yield Path(folder)


def scifact(folder: Path) -> Pairs:
    """Compared by cosine, as sentence embeddings are."""
    documents = open_store(folder / "docs_minilm_384.npy", items=folder / "doc_ids.json", metric="cosine")
    queries = open_store(folder / "queries_minilm_384.npy", items=folder / "query_ids.json")
    items = collect(documents)
    parts = [judged(queries, folder / f"qrels_{part}.tsv", items)[0] for part in ("train", "test")]
    return Pairs(items, *(part._replace(queries=items.comparable(part.queries)) for part in parts))


def banking77(folder: Path) -> Labeled:
    """Its training part as items, its test part as queries."""
    stores = [
        open_store(folder / f"{part}_minilm_384.npy", items=folder / f"{part}.csv", metric="cosine")
        for part in ("train", "test")
    ]
    return Labeled(*(collect(store, [LABEL]) for store in stores))


def tiny_scifact(folder: Path) -> None:
    """80 documents, 30 of which answer 1,000 training queries; half of 20 test queries ask for others."""
    rng = np.random.default_rng(0)
    documents = unit(rng.standard_normal((80, 16)))
    train, test = np.resize(np.arange(30), 1000), np.resize(np.arange(20, 40), 20)
    asked = np.concatenate([train, test])
    shift = rng.standard_normal(16)  # what sets queries apart from documents
    queries = documents[asked] + 0.2 * shift + 0.25 * rng.standard_normal((len(asked), 16))
    np.save(folder / "docs_minilm_384.npy", documents.astype(np.float16))
    np.save(folder / "queries_minilm_384.npy", unit(queries).astype(np.float16))
    (folder / "doc_ids.json").write_text(json.dumps([f"d{i}" for i in range(len(documents))]))
    (folder / "query_ids.json").write_text(json.dumps([f"q{i}" for i in range(len(asked))]))
    for part, first, own in (("train", 0, train), ("test", len(train), test)):
        rows = [(f"q{first + i}", f"d{answer}", 1) for i, answer in enumerate(own)]
        with (folder / f"qrels_{part}.tsv").open("w", newline="") as file:
            csv.writer(file, delimiter="\t").writerows([("query-id", "corpus-id", "score"), *rows])


def tiny_banking77(folder: Path) -> None:
    """Three classes in 8 dimensions: 90 items and 30 queries."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((3, 8))
    for part, n in (("train", 90), ("test", 30)):
        y = np.resize(np.arange(3), n)
        X = unit(centres[y] + 0.8 * rng.standard_normal((n, 8)))
        np.save(folder / f"{part}_minilm_384.npy", X.astype(np.float16))
        with (folder / f"{part}.csv").open("w", newline="") as file:
            rows = [(f"text {i}", f"class {label}") for i, label in enumerate(y)]
            csv.writer(file).writerows([("text", LABEL), *rows])


TINY = {"scifact": tiny_scifact, "banking77": tiny_banking77}
