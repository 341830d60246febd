"""What verbs share: options that name stores and queries, and how results are shown."""

import argparse
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import fill
from typing import Any, TypeAlias

import numpy as np

from .. import model_dir
from ..distributed.engine import cluster
from ..index.repair import Repair
from ..movers import Mover
from ..plain import as_json, encodable
from ..stores.opening import open_store
from ..stores.store import METRICS, Store, StoreError

Verbs: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

SOURCE = (
    "where the vectors are: a file (.npy .npz .parquet .arrow .hdf5 .faiss), a folder of such files, "
    "lancedb:FOLDER#TABLE, postgresql://USER@HOST/DATABASE#TABLE, or qdrant:FOLDER-OR-URL#COLLECTION"
)


def positive(text: str) -> int:
    """A number of at least 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1; got {text}")
    return value


def add_verb(verbs: Verbs, name: str, help: str, run: Any, examples: Sequence[str], more: str = "") -> Any:
    """A verb with examples under its help, and --json."""
    verb = verbs.add_parser(
        name,
        help=help,
        description=fill(f"{help[0].upper()}{help[1:]}.{' ' + more if more else ''}", 79),
        epilog="\n".join(["examples:", *(f"  {line}" for line in examples)]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verb.add_argument("--json", action="store_true", help="print the result as JSON")
    verb.set_defaults(run=run)
    return verb


def add_source(verb: Any, name: str = "source", help: str = SOURCE) -> None:
    """The place of the items, and what may have to be said about it."""
    verb.add_argument(name, help=help)
    verb.add_argument("--vector", metavar="COLUMN", help="column of vectors, where it cannot be guessed")
    verb.add_argument("--id", metavar="COLUMN", help='column of ids (default: the key, or "id")')
    verb.add_argument("--metric", choices=METRICS, help="how it is searched, where it does not say so itself")
    verb.add_argument(
        "--items",
        type=Path,
        metavar="FILE",
        help="table with a row per item, for files: CSV, JSON, Parquet, or .npy with the column `label`",
    )


def add_queries(verb: Any, required: bool = True) -> None:
    """The place of query vectors."""
    verb.add_argument("--queries", required=required, metavar="SOURCE", help="query vectors; as a source")
    verb.add_argument("--query-vector", metavar="COLUMN", help="its column of vectors")
    verb.add_argument("--query-id", metavar="COLUMN", help="its column of ids")
    verb.add_argument(
        "--query-items", type=Path, metavar="FILE", help="table with a row per query, for files"
    )


def add_dask(verb: Any) -> None:
    """Whether a cluster does the work."""
    verb.add_argument(
        "--dask",
        nargs="?",
        const="",
        metavar="ADDRESS",
        help="let a running Dask cluster do it, as tcp://host:8786; without an address one is started here",
    )


@contextmanager
def cluster_of(options: argparse.Namespace) -> Iterator[bool]:
    """The cluster that was asked for, as long as it is needed; whether one was."""
    if options.dask is None:
        yield False
        return
    with cluster(options.dask):
        yield True


def source_of(options: argparse.Namespace) -> Store:
    """The store of the items."""
    return open_store(
        options.source, vector=options.vector, id=options.id, metric=options.metric, items=options.items
    )


def queries_of(options: argparse.Namespace) -> Store:
    """The store of the queries."""
    return open_store(
        options.queries, vector=options.query_vector, id=options.query_id, items=options.query_items
    )


def ids_like(store: Store, texts: Sequence[str]) -> list[Any]:
    """Ids as the store has them, from what was typed."""
    kinds = {type(value) for value in next(iter(store.ids()), np.empty(0)).tolist()}
    return [int(text) if int in kinds and text.lstrip("-").isdigit() else text for text in texts]


def vectors_of(
    store: Store, columns: Sequence[str] = ()
) -> tuple[np.ndarray, list[Any], dict[str, list[Any]]]:
    """All vectors of a store, their ids, and columns."""
    batches = list(store.batches(columns))
    if not batches:
        raise StoreError(f"{store.name} is empty.")
    values = {name: [value for batch in batches for value in batch.columns[name]] for name in columns}
    vectors = np.concatenate([batch.vectors for batch in batches])
    if np.isnan(vectors).any():
        raise StoreError(f"{store.name} has rows without a vector; queries must all have one.")
    return vectors, [value for batch in batches for value in batch.ids.tolist()], values


def model_of(folder: str) -> Repair:
    """The model in a folder; a saved mover is one without anything said about metric or ids."""
    return as_repair(model_dir.load(folder), folder)


def as_repair(found: Any, folder: str) -> Repair:
    """What was loaded from a folder, as a model for an index."""
    if isinstance(found, Mover) and not found._lifts:
        return Repair(found)
    if not isinstance(found, Repair):
        raise StoreError(
            f"{folder} holds a {type(found).__name__}; what moves an index is made by `hubless fit`."
        )
    return found


def show(options: argparse.Namespace, result: Any, words: str | None = None) -> None:
    """Print a result: as JSON, or in words."""
    if options.json:
        told = as_json(result.as_dict() if hasattr(result, "as_dict") else result)
        text = json.dumps(told, indent=1, ensure_ascii=False, allow_nan=False)
        print(encodable(text))
    else:
        print(str(result) if words is None else words)
