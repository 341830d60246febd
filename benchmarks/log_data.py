"""The data of corrections from a log: what is stored, who asks, and banks of logged queries.

    Flickr8k    images, mapped into the space of captions by ridge regression; captions ask
    SciFact     documents; claims ask
    banking77   texts of customers; others ask, and classes tell which answers are right

Settings are chosen on `validation` and measured on `test`, which has other queries, and on Flickr8k other
images. A bank is "own", of the same kind as the queries, or "foreign": texts about something else, embedded
by the same model.
"""

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from hubless import MoveLabeled
from hubless.neighbors.knn import unit, vote, votes_of
from hubless.paper.download import data_folder
from hubless.retrieval import Relevant, gains, hit, ndcg
from hubless.solve import relative_penalties

from .index_data import LABEL, banking77, scifact

K = 10  # answers of a query
PENALTIES = (0.0001, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # λ of the map, in mean eigenvalues
VALIDATION, STORED = 300, 3500  # claims of SciFact to choose by; texts of banking77 that are stored
ASKING = 1000  # texts of banking77 to choose by
CAPTIONS, TEXTS = "Flickr8k's training captions", "banking77's training texts"

Measure = Callable[[np.ndarray], dict[str, np.ndarray]]  # row numbers of answers, (m, K) → figures by query


@dataclass(frozen=True)
class Asked:
    """Stored objects, queries, and what answers are worth; all vectors have length 1."""

    objects: np.ndarray  # (n, d)
    queries: np.ndarray  # (m, d)
    measure: Measure  # settings are chosen by the first of its figures

    @cached_property
    def similarity(self) -> np.ndarray:
        """Cosine of every query and object, (m, n)."""
        return np.asarray(self.queries @ self.objects.T)

    @cached_property
    def plain(self) -> np.ndarray:
        """Answers without a correction, (m, K)."""
        return largest(self.similarity)


@dataclass(frozen=True)
class LogTask:
    """A data set: where settings are chosen, where they are measured, and the banks."""

    validation: Asked
    test: Asked
    banks: Mapping[str, np.ndarray]  # "own" and "foreign": logged queries, (b, d)
    about: Mapping[str, Any]  # recorded with its plain cell
    query_side: Asked | None = None  # where queries are mapped instead of objects


def largest(S: np.ndarray, k: int = K) -> np.ndarray:
    """Return the places of the k largest of each row, the largest first."""
    k = min(k, S.shape[1])
    places = np.argpartition(-S, k - 1, axis=1)[:, :k]
    order = np.argsort(-np.take_along_axis(S, places, axis=1), axis=1, kind="stable")
    return np.take_along_axis(places, order, axis=1)


def recalls(truth: np.ndarray, top: np.ndarray) -> dict[str, np.ndarray]:
    """Whether the one right answer is among the first 10, 5 and 1; in per cent."""
    right = top == truth[:, None]
    return {f"R@{k}": 100.0 * right[:, :k].any(axis=1) for k in (10, 5, 1)}


def relevances(relevant: Relevant, top: np.ndarray) -> dict[str, np.ndarray]:
    """NDCG@10, and whether a relevant document is among the answers."""
    worth = gains(top, relevant)
    return {"nDCG@10": ndcg(worth, relevant), "hit rate@10": hit(worth, relevant)}


def agreements(labels: np.ndarray, truth: np.ndarray, top: np.ndarray) -> dict[str, np.ndarray]:
    """Whether ten nearest vote for the right class, and whether the nearest has it; in per cent."""
    voted = vote(*votes_of(top, None, labels, None))
    return {"10-NN": 100.0 * (voted == truth), "1-NN": 100.0 * (labels[top[:, 0]] == truth)}


# --- the data sets


@cache
def load(name: str, quick: bool = False) -> LogTask:
    """Read a data set, or make a tiny one."""
    return tiny(name) if quick else LOADERS[name](data_folder())


def _unit(file: Path) -> np.ndarray:
    return unit(np.load(file).astype(np.float32))


def _captions(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the vectors of all captions, and the names of their images."""
    with (folder / "flickr8k" / "captions.csv").open(encoding="utf-8", newline="") as file:
        images = np.array([row["image"] for row in csv.DictReader(file)])
    return _unit(folder / "flickr8k" / "captions_minilm_384.npy"), images


def _images(folder: Path) -> dict[str, dict[str, int]]:
    """Return part → image → row number."""
    parts: dict[str, dict[str, int]] = {}
    with (folder / "flickr8k" / "images.csv").open(encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.DictReader(file)):
            parts.setdefault(row["part"], {})[row["image"]] = number
    return parts


def _training_captions(folder: Path) -> np.ndarray:
    (captions, image_of), train = _captions(folder), _images(folder)["train"]
    return captions[[image in train for image in image_of]]


@dataclass(frozen=True)
class TwoSpaces:
    """Images and captions of one part, in their own spaces."""

    images: np.ndarray  # (n, 1280)
    captions: np.ndarray  # (m, 384)
    truth: np.ndarray  # (m,), place of the image of each caption

    def stored_side(self, mover: Any) -> Asked:
        """Images come to the captions."""
        return Asked(unit(mover.move(self.images)), self.captions, partial(recalls, self.truth))

    def query_side(self, mover: Any) -> Asked:
        """Captions come to the images, and are compared with them about the mean image."""
        captions, mean = mover.move(self.captions), mover.query_mean_.astype(self.images.dtype)
        return Asked(unit(self.images - mean), unit(captions - mean), partial(recalls, self.truth))


def choose_map(x: np.ndarray, z: np.ndarray, ask: Callable[[Any], Asked]) -> tuple[Any, dict[float, float]]:
    """Return the map from z to x of the λ with the best R@10 on the validation images, and R@10 of each λ."""
    first, movers, tried = MoveLabeled(keep_moments=True).fit_pairs(x, z), {}, {}
    for penalty in relative_penalties(*PENALTIES):
        movers[penalty.value] = first.with_alpha(penalty)
        asked = ask(movers[penalty.value])
        tried[penalty.value] = float(asked.measure(asked.plain)["R@10"].mean())
    return movers[best_of(tried)], tried


def best_of(tried: Mapping[float, float]) -> float:
    """Return the λ with the best figure; of equal ones, the first."""
    return max(tried, key=lambda value: tried[value])


def flickr8k(folder: Path) -> LogTask:
    """Map images of length 1 into the captions' space by their training pairs; λ by the validation images."""
    images, (captions, image_of) = (
        _unit(folder / "flickr8k" / "images_effnetlite0_1280.npy"),
        _captions(folder),
    )
    parts = {}
    for part, rows in _images(folder).items():
        place = {image: i for i, image in enumerate(rows)}
        asking = np.flatnonzero([image in place for image in image_of])
        truth = np.array([place[image] for image in image_of[asking]])
        parts[part] = TwoSpaces(images[list(rows.values())], captions[asking], truth)
    train, validation, test = (parts[part] for part in ("train", "validation", "test"))
    x, z = train.captions, train.images[train.truth]
    mover, tried = choose_map(x, z, validation.stored_side)
    query_mover, query_tried = choose_map(z, x, validation.query_side)
    about = {"λ": best_of(tried), "tried": tried, "λ of the query side": best_of(query_tried)}
    return LogTask(
        validation.stored_side(mover),
        test.stored_side(mover),
        {"own": train.captions, "foreign": _unit(folder / "banking77" / "train_minilm_384.npy")},
        about | {"tried on the query side": query_tried, "foreign": TEXTS},
        test.query_side(query_mover),
    )


def scifact_claims(folder: Path) -> LogTask:
    """Hold out some training claims, with their judgements, to choose by; the others are the bank."""
    data = scifact(folder / "scifact")
    order = np.random.default_rng(0).permutation(len(data.train.queries))
    relevant, documents = data.train.rows(data.items.places), np.asarray(data.items.vectors)
    chosen_by, bank = order[:VALIDATION], np.sort(order[VALIDATION:])
    validation = partial(relevances, [relevant[i] for i in chosen_by])
    test = partial(relevances, data.test.rows(data.items.places))
    return LogTask(
        Asked(documents, np.asarray(data.train.queries)[chosen_by], validation),
        Asked(documents, np.asarray(data.test.queries), test),
        {"own": np.asarray(data.train.queries)[bank], "foreign": _training_captions(folder)},
        {"foreign": CAPTIONS},
    )


def banking77_texts(folder: Path) -> LogTask:
    """Store some training texts, choose by others, and log the rest; classes measure, and teach nothing."""
    data = banking77(folder / "banking77")
    names, codes = np.unique(data.items.columns[LABEL], return_inverse=True)
    code = {name: number for number, name in enumerate(names.tolist())}
    truth = np.array([code[name] for name in data.queries.columns[LABEL]])
    order, vectors = np.random.default_rng(0).permutation(len(codes)), np.asarray(data.items.vectors)
    stored, asking, bank = np.split(order, [STORED, STORED + ASKING])
    labels = codes[stored]
    return LogTask(
        Asked(vectors[stored], vectors[asking], partial(agreements, labels, codes[asking])),
        Asked(vectors[stored], np.asarray(data.queries.vectors), partial(agreements, labels, truth)),
        {"own": vectors[bank], "foreign": _training_captions(folder)},
        {"foreign": CAPTIONS},
    )


LOADERS = {"flickr8k": flickr8k, "scifact": scifact_claims, "banking77": banking77_texts}


def tiny(name: str) -> LogTask:
    """Make 60 objects of 8 columns, two of them hubs, 40 queries of each part and banks of 150."""
    rng = np.random.default_rng(sorted(LOADERS).index(name))
    objects = unit(rng.standard_normal((60, 8)) + 0.5)
    objects[:2] = unit(objects.mean(axis=0, keepdims=True) + 0.05 * rng.standard_normal((2, 8)))

    def ask(n: int) -> tuple[np.ndarray, np.ndarray]:
        truth = rng.integers(2, 60, n)
        return unit(objects[truth] + 0.3 * rng.standard_normal((n, 8))), truth

    def asked() -> Asked:
        queries, truth = ask(40)
        measures = {
            "flickr8k": partial(recalls, truth),
            "scifact": partial(relevances, [{int(i): 1.0} for i in truth]),
            "banking77": partial(agreements, np.arange(60) % 5, truth % 5),
        }
        return Asked(objects, queries, measures[name])

    test = asked()
    banks = {"own": ask(150)[0], "foreign": unit(rng.standard_normal((150, 8)))}
    turned = Asked(objects, unit(test.queries + 0.2), test.measure) if name == "flickr8k" else None
    penalties = {"λ": 1.0, "λ of the query side": 1.0} if turned else {}
    return LogTask(asked(), test, banks, {**penalties, "foreign": "made texts"}, turned)
