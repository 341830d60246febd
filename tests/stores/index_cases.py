"""Indexes in files, written by usearch and hnswlib."""

import json

import hnswlib
import numpy as np
from usearch.index import Index

from hubless.stores.opening import open_store
from hubless.testing.store_cases import Case
from tests.stores.file_cases import write_items

SEARCHED = 64  # rows that a search of hnswlib looks at, as users set it after loading


def write_usearch(path, keys, X, metric, **settings):
    """Write an index, with other settings than the default ones."""
    names = {"l2": "l2sq", "cosine": "cos", "ip": "ip"}
    index = Index(ndim=X.shape[1], metric=names[metric], **{"dtype": "f32", "connectivity": 12, **settings})
    index.add(keys, X)
    index.save(str(path))
    return index


def write_hnswlib(path, labels, X, metric, *, capacity=None, M=12, deleted=()):
    """Write an index, with other settings than the default ones."""
    index = hnswlib.Index(space=metric, dim=X.shape[1])
    index.init_index(max_elements=capacity or 2 * len(X), M=M, ef_construction=90)
    if len(X):
        index.add_items(X, labels)
    for label in deleted:
        index.mark_deleted(label)
    index.save_index(str(path))
    return index


def ask_usearch(path, queries, k):
    """Return keys that usearch finds in a file."""
    return Index.restore(str(path)).search(queries, k).keys.tolist()


def ask_hnswlib(path, queries, k, metric):
    """Return labels that hnswlib finds in a file."""
    index = hnswlib.Index(space=metric, dim=queries.shape[1])
    index.load_index(str(path))
    index.set_ef(SEARCHED)
    return index.knn_query(queries, k)[0].tolist()


def vectors_of(path, d):
    """Return the vectors of a file by ascending number, as its engine reads them; RuntimeError for others."""
    if path.endswith(".usearch"):
        index = Index.restore(path)
        return np.stack(index.get(np.sort(np.asarray(index.keys))))
    index = hnswlib.Index("l2", d)
    index.load_index(path)
    return index.get_items(sorted(index.get_ids_list()))


def case_for(suffix, *, has_ids):
    """Return the Case of a kind of index: with ids of its own, or with those of a table of items, by row."""

    def make(folder, ids, vectors, texts, metric):
        path, labels, order = folder / f"v{suffix}", np.arange(len(ids)), np.arange(len(ids))
        if has_ids:
            labels, order = ids, np.random.default_rng(1).permutation(len(ids))
        items = write_items(folder, ids[order], [texts[i] for i in order])
        if suffix == ".usearch":
            write_usearch(path, labels, vectors, metric)
            return open_store(path, items=items)
        write_hnswlib(path, labels, vectors, metric)
        return open_store(path, items=items, metric=metric)

    def ask(store, queries, k):
        if suffix == ".usearch":
            numbers = ask_usearch(store.path, queries, k)
        else:
            numbers = ask_hnswlib(store.path, queries, k, store.metric)
        if has_ids:
            return numbers
        ids = json.loads((store.path.parent / "items.json").read_text())["id"]
        return [[ids[j] for j in row] for row in numbers]

    options = {"recall": 0.9, "text_ids": not has_ids, "may_lack_vectors": False}
    return lambda request: Case(make, ask, metrics=("l2", "cosine", "ip"), **options)


usearch, usearch_with_keys = (case_for(".usearch", has_ids=has_ids) for has_ids in (False, True))
hnsw, hnsw_with_labels = (case_for(".hnsw", has_ids=has_ids) for has_ids in (False, True))
