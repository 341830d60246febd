"""Pages of `hubless report` on data sets that people know, each by the commands that a user would type:

    python -m benchmarks pages --out pages

News        20 Newsgroups, 300 principal components of its terms; a quarter of the posts asks
banking77   questions of customers of a bank; the training part is stored, the test part asks
SciFact     documents, and claims with the documents that are evidence; a quarter of the claims asks
Flickr8k    images, mapped into the space of captions; other captions are the log, and captions ask
"""

import csv
import json
import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from hubless import MoveLabeled
from hubless.cli import main
from hubless.neighbors.knn import unit
from hubless.paper import datasets
from hubless.solve import relative_penalties

from .index_data import folder_of

Words = list[str]  # of a command
GROUPS = [  # in the order of their numbers in the file
    "alt.atheism", "comp.graphics", "comp.os.ms-windows.misc", "comp.sys.ibm.pc.hardware",
    "comp.sys.mac.hardware", "comp.windows.x", "misc.forsale", "rec.autos", "rec.motorcycles",
    "rec.sport.baseball", "rec.sport.hockey", "sci.crypt", "sci.electronics", "sci.med", "sci.space",
    "soc.religion.christian", "talk.politics.guns", "talk.politics.mideast", "talk.politics.misc",
    "talk.religion.misc",
]  # fmt: skip


def news(quick: bool) -> list[Words]:
    """Write the posts; return the commands, whose last one makes the page."""
    if quick:
        y = np.arange(90) % 3
        rng = np.random.default_rng(0)
        X = rng.standard_normal((3, 20))[y] + rng.standard_normal((90, 20))
    else:
        X, y = (data := datasets.load("news")).X, data.y
    np.save("news.npy", X)
    _write_table("news.csv", ["newsgroup"], [[GROUPS[code]] for code in y])
    items = ["news.npy", "--items", "news.csv", "--labels", "newsgroup"]
    return [["report", *items, "--title", "News: posts in 20 newsgroups"]]


def banking77(quick: bool) -> list[Words]:
    """Copy both parts; return the commands."""
    with folder_of("banking77", quick) as folder:
        for part in ("train", "test"):
            shutil.copyfile(folder / f"{part}.csv", f"{part}.csv")
            shutil.copyfile(folder / f"{part}_minilm_384.npy", f"{part}.npy")
    items = ["train.npy", "--metric", "cosine", "--items", "train.csv", "--labels", "category"]
    title = "banking77: questions of a bank's customers"
    return [["report", *items, "--queries", "test.npy", "--query-items", "test.csv", "--title", title]]


def scifact(quick: bool) -> list[Words]:
    """Write documents and claims with their texts; return the commands."""
    with folder_of("scifact", quick) as folder:
        shutil.copyfile(folder / "qrels_train.tsv", "pairs.tsv")
        for name, ids, texts in (
            ("docs", "doc_ids.json", _pairs_of(folder / "corpus.csv", "doc_id", "title")),
            ("queries", "query_ids.json", _pairs_of(folder / "claims_train.csv", "id", "claim")),
        ):
            text = dict(texts)
            rows = [(key, text.get(key, "")) for key in json.loads((folder / ids).read_text())]
            _write(name, np.load(folder / f"{name}_minilm_384.npy"), rows)
    items = ["docs.npy", "--metric", "cosine", "--items", "docs.csv", "--pairs", "pairs.tsv"]
    queries = ["--queries", "queries.npy", "--query-items", "queries.csv"]
    return [["report", *items, *queries, "--title", "SciFact: claims and abstracts"]]


def flickr8k(quick: bool) -> list[Words]:
    """Write the test images, mapped into the space of captions, their captions, and the log."""
    with folder_of("flickr8k", quick) as folder:
        part = dict(_pairs_of(folder / "images.csv", "image", "part"))
        rows = _pairs_of(folder / "captions.csv", "image", "caption")
        images = unit(np.load(folder / "images_effnetlite0_1280.npy").astype(np.float32))
        captions = np.load(folder / "captions_minilm_384.npy").astype(np.float32)
    place = {image: i for i, image in enumerate(part)}
    learned, asked = (np.array([part[image] == name for image, _ in rows]) for name in ("train", "test"))
    of_caption = np.array([place[image] for image, _ in rows])
    mover = MoveLabeled(*relative_penalties(1.0)).fit_pairs(captions[learned], images[of_caption[learned]])
    shown = [image for image in part if part[image] == "test"]
    first = dict(reversed(rows))
    _write("images", mover.move(images[[place[image] for image in shown]]), [(i, first[i]) for i in shown])
    asking = np.flatnonzero(asked)
    _write("captions", captions[asked], [(str(i), rows[i][1]) for i in asking])
    _write_table("pairs.tsv", ["query-id", "corpus-id", "score"], [(i, rows[i][0], 1) for i in asking], "\t")
    np.save("log.npy", captions[learned])
    items = ["images.npy", "--metric", "cosine", "--items", "images.csv"]
    queries = ["--pairs", "pairs.tsv", "--queries", "captions.npy", "--query-items", "captions.csv"]
    return [
        ["fit", *items, "--queries", "log.npy", "-o", "model"],
        ["report", *items, *queries, "--model", "model", "--title", "Flickr8k: captions and images"],
    ]


PAGES: dict[str, Callable[[bool], list[Words]]] = {
    "news": news,
    "banking77": banking77,
    "scifact": scifact,
    "flickr8k": flickr8k,
}


def write(names: Sequence[str], out: Path, quick: bool = False) -> list[Path]:
    """Write the pages with these names to a folder, each with its picture to share; return the pages."""
    unknown = set(names) - set(PAGES)
    if unknown:
        raise ValueError(f"unknown page {', '.join(sorted(unknown))}; pages are {', '.join(PAGES)}")
    out.mkdir(parents=True, exist_ok=True)
    return [_write_page(name, (out / f"{name}.html").resolve(), quick) for name in names]


def _write_page(name: str, page: Path, quick: bool) -> Path:
    with TemporaryDirectory() as folder, chdir(folder):
        *first, report = PAGES[name](quick)
        card = page.with_suffix(".png")
        for words in [*first, [*report, "-o", str(page), "--card", str(card)]]:
            if main(words):
                raise ValueError(f"the page of {name} was not written")
    return page


def _pairs_of(file: Path, *columns: str) -> list[tuple[str, str]]:
    """Return two columns of a table, row by row."""
    with file.open(encoding="utf-8", newline="") as opened:
        return [(row[columns[0]], row[columns[1]]) for row in csv.DictReader(opened)]


def _write(name: str, vectors: np.ndarray, rows: Sequence[tuple[str, str]]) -> None:
    """Write vectors, and beside them a table with the id and the text of each."""
    np.save(f"{name}.npy", vectors)
    _write_table(f"{name}.csv", ["id", "text"], rows)


def _write_table(
    name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], between: str = ","
) -> None:
    with Path(name).open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=between).writerows([columns, *rows])
