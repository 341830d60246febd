"""FAISS indexes, written by faiss."""

import json

import faiss
import numpy as np

from hubless.stores.opening import open_store
from hubless.testing.store_cases import Case
from tests.stores.file_cases import write_items


def case_for(factory, *, has_ids=False, recall=1.0, may_lack_vectors=True):
    """Return the Case of an index that a function of the dimension and the metric makes."""

    def make(folder, ids, vectors, texts, metric):
        kind = faiss.METRIC_L2 if metric == "l2" else faiss.METRIC_INNER_PRODUCT
        index = factory(vectors.shape[1], kind)
        if isinstance(index, faiss.IndexIVF):
            index.cp.min_points_per_centroid = 1
            index.train(vectors)
            index.nprobe = 4
        if has_ids:
            index.add_with_ids(vectors, ids)
            order = np.argsort(ids)  # of an IVF, the only order that is known
            items = write_items(folder, ids[order], [texts[i] for i in order])
        else:
            index.add(vectors)
            items = write_items(folder, ids, texts)
        faiss.write_index(index, str(folder / "v.faiss"))
        return open_store(folder / "v.faiss", items=items)

    def ask(store, queries, k):
        _, numbers = faiss.read_index(str(store.path)).search(queries, k)
        if has_ids:
            return numbers
        ids = json.loads((store.path.parent / "items.json").read_text())["id"]
        return [[ids[j] for j in row] for row in numbers]

    options = {"recall": recall, "text_ids": not has_ids, "may_lack_vectors": may_lack_vectors}
    return Case(make, ask, metrics=("l2", "ip"), **options)


def _ivf(d, metric):
    return faiss.index_factory(d, "IVF4,Flat", metric)


def flat(request):
    return case_for(faiss.IndexFlat)


def hnsw(request):
    return case_for(lambda d, metric: faiss.IndexHNSWFlat(d, 16, metric), recall=0.9)


def ivf(request):
    return case_for(_ivf, may_lack_vectors=False)  # FAISS does not train on NaN


def id_map(request):
    return case_for(lambda d, metric: faiss.IndexIDMap2(faiss.IndexFlat(d, metric)), has_ids=True)


def ivf_with_ids(request):
    return case_for(_ivf, has_ids=True, may_lack_vectors=False)
