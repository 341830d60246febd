"""The data of index repair: SciFact and banking77 as users have them, or tiny files of their form."""

import csv
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from hubless.neighbors.knn import unit
from hubless.paper.download import data_folder
from hubless.repair.index_items import IndexItems, read_items
from hubless.repair.judgements import Judgements, match_judgements
from hubless.stores.opening import open_store

LABEL = "category"  # the column of banking77's classes


class Pairs(NamedTuple):
    """Documents, and queries with their relevant documents, to learn from and to test with."""

    items: IndexItems
    train: Judgements
    test: Judgements

    @property
    def seen(self) -> np.ndarray:
        """Whether a relevant document of each test query has a training query too; (queries,)."""
        answered = {item for relevant in self.train.relevant for item in relevant}
        return np.array([not answered.isdisjoint(relevant) for relevant in self.test.relevant], dtype=bool)


class Labeled(NamedTuple):
    """Items with a class each, and queries with theirs."""

    items: IndexItems
    queries: IndexItems


@contextmanager
def folder_of(name: str, quick: bool) -> Iterator[Path]:
    """Give the folder of a data set, or a temporary one with tiny files of the same names."""
    if not quick:
        yield data_folder() / name
        return
    with TemporaryDirectory() as folder:
        TINY[name](Path(folder))
        yield Path(folder)


def scifact(folder: Path) -> Pairs:
    """Read SciFact, compared by cosine as sentence embeddings are."""
    documents = open_store(folder / "docs_minilm_384.npy", items=folder / "doc_ids.json", metric="cosine")
    queries = open_store(folder / "queries_minilm_384.npy", items=folder / "query_ids.json")
    items = read_items(documents)
    parts = [match_judgements(queries, folder / f"qrels_{part}.tsv", items) for part in ("train", "test")]
    return Pairs(items, *(part._replace(queries=items.comparable(part.queries)) for part in parts))


def banking77(folder: Path) -> Labeled:
    """Read banking77: its training part as items, its test part as queries."""
    stores = [
        open_store(folder / f"{part}_minilm_384.npy", items=folder / f"{part}.csv", metric="cosine")
        for part in ("train", "test")
    ]
    return Labeled(*(read_items(store, [LABEL]) for store in stores))


def tiny_scifact(folder: Path) -> None:
    """Write 80 documents, 30 of which answer 1,000 training queries; half of 20 test queries need others."""
    rng = np.random.default_rng(0)
    documents = unit(rng.standard_normal((80, 16)))
    train, test = np.resize(np.arange(30), 1000), np.resize(np.arange(20, 40), 20)
    answers = np.concatenate([train, test])
    shift = rng.standard_normal(16)  # what sets queries apart from documents
    queries = documents[answers] + 0.2 * shift + 0.25 * rng.standard_normal((len(answers), 16))
    np.save(folder / "docs_minilm_384.npy", documents.astype(np.float16))
    np.save(folder / "queries_minilm_384.npy", unit(queries).astype(np.float16))
    (folder / "doc_ids.json").write_text(json.dumps([f"d{i}" for i in range(len(documents))]))
    (folder / "query_ids.json").write_text(json.dumps([f"q{i}" for i in range(len(answers))]))
    for part, first, relevant in (("train", 0, train), ("test", len(train), test)):
        rows = [(f"q{first + i}", f"d{answer}", 1) for i, answer in enumerate(relevant)]
        with (folder / f"qrels_{part}.tsv").open("w", newline="") as file:
            csv.writer(file, delimiter="\t").writerows([("query-id", "corpus-id", "score"), *rows])
    titles = "".join(f"d{i},document {i}\n" for i in range(len(documents)))
    (folder / "corpus.csv").write_text(f"doc_id,title\n{titles}")
    claims = "".join(f"q{i},claim {i}\n" for i in range(len(train)))
    (folder / "claims_train.csv").write_text(f"id,claim\n{claims}")


def tiny_banking77(folder: Path) -> None:
    """Write three classes in 8 dimensions: 90 items and 30 queries."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((3, 8))
    for part, n in (("train", 90), ("test", 30)):
        y = np.resize(np.arange(3), n)
        X = unit(centres[y] + 0.8 * rng.standard_normal((n, 8)))
        np.save(folder / f"{part}_minilm_384.npy", X.astype(np.float16))
        with (folder / f"{part}.csv").open("w", newline="") as file:
            rows = [(f"text {i}", f"class {label}") for i, label in enumerate(y)]
            csv.writer(file).writerows([("text", LABEL), *rows])


def tiny_flickr8k(folder: Path) -> None:
    """Write 90 images in 12 dimensions, 60 of them to learn from, with two captions each in 8."""
    rng = np.random.default_rng(0)
    images = rng.standard_normal((90, 12))
    captions = np.repeat(images[:, :8], 2, axis=0) + 0.5 * rng.standard_normal((180, 8))
    np.save(folder / "images_effnetlite0_1280.npy", images.astype(np.float16))
    np.save(folder / "captions_minilm_384.npy", unit(captions).astype(np.float16))
    parts = "".join(f"{i}.jpg,{'train' if i < 60 else 'test'}\n" for i in range(90))
    (folder / "images.csv").write_text(f"image,part\n{parts}")
    texts = "".join(f"{i // 2}.jpg,caption {i}\n" for i in range(180))
    (folder / "captions.csv").write_text(f"image,caption\n{texts}")


TINY = {"scifact": tiny_scifact, "banking77": tiny_banking77, "flickr8k": tiny_flickr8k}
