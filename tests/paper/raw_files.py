"""Raw results with known numbers, as a run writes them."""

import json

from hubless.paper.published import TABLES

MACHINE = {"processor": "AMD EPYC", "cores": 2, "memory_gib": 24, "python": "3.11.7", "date": "2026-11-15"}
SETS = {
    "iris": ("iris", "UCI"),
    "news": ("News", "document"),
    "cub": ("CUB", "image"),
    "bank": ("Bank_7", "extra"),
}


def put(folder, dataset, method, split=0, dim=300, suffix="", **fields):
    """Write one raw file; `fields` replace or add to those of a done cell, and None takes one away."""
    title, kind = SETS[dataset]
    entry = {"dataset": dataset, "title": title, "kind": kind, "note": "", "method": method, "split": split}
    entry |= {"seed": split, "dim": dim, "status": "done", "threads": 2, "device": "cpu", "machine": MACHINE}
    sizes = {name: figures.get(dataset, 7) for name, figures in TABLES[1].items()}
    entry |= sizes | {"chosen": {"n_neighbors": 5 + 10 * split}, "accuracy": 0.5, "skewness": 1.0} | fields
    file = folder / dataset / f"dim-{dim}" / method / f"split-{split}{suffix}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({name: value for name, value in entry.items() if value is not None}))
    return file


def put_time(folder, dataset, method, seconds, **fields):
    return put(folder, dataset, method, suffix=".time", seconds=seconds, repeats=[seconds], **fields)
