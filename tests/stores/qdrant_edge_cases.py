"""Shards of Qdrant Edge, written and searched by its engine alone."""

import numpy as np
import qdrant_edge as edge

from hubless.stores.opening import open_store
from hubless.testing.store_cases import Case

DISTANCE = {"l2": edge.Distance.Euclid, "cosine": edge.Distance.Cosine, "ip": edge.Distance.Dot}


def rows(ids, X, texts):
    """Return the operation that writes rows."""
    vectors = [{} if np.isnan(x).all() else x.tolist() for x in X]
    values = zip(ids.tolist(), vectors, texts, strict=True)
    return edge.UpdateOperation.upsert_points([edge.Point(i, x, {"text": t}) for i, x, t in values])


def make(folder, ids, X, texts, metric="l2"):
    params = edge.EdgeVectorParams(size=X.shape[1], distance=DISTANCE[metric])
    shard = edge.EdgeShard.create(str(folder / "items"), edge.EdgeConfig(vectors=params))
    shard.update(rows(ids, X, texts))
    shard.close()
    return open_store(f"qdrant-edge:{folder / 'items'}")


def ask(store, queries, k):
    store.close()
    shard = edge.EdgeShard.load(str(store.path))
    nearest = [shard.query(edge.QueryRequest(limit=k, query=edge.Query.Nearest(q.tolist()))) for q in queries]
    shard.close()
    return [[point.id for point in row] for row in nearest]


def add(store, ids, X, texts):
    store.close()
    shard = edge.EdgeShard.load(str(store.path))
    shard.update(rows(ids, X, texts))
    shard.close()


def dump(path):
    """Return all that a shard holds, as the engine reports it."""
    shard = edge.EdgeShard.load(str(path))
    records, _ = shard.scroll(edge.ScrollRequest(limit=10_000, with_payload=True, with_vector=True))
    points = {str(record.id): (record.vector, record.payload) for record in records}
    schema = {key: str(index.data_type) for key, index in shard.info().payload_schema.items()}
    shard.close()
    return points, schema


def shard(request):
    return Case(make, ask, add, metrics=("l2", "cosine", "ip"), text_ids=False)
