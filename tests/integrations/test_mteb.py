"""MTEB evaluates a moved index: its figures beside our own, on retrieval tasks in its format."""

import csv
import json

import mteb
import numpy as np
import pytest
from datasets import Dataset
from mteb.abstasks import AbsTaskRetrieval
from mteb.abstasks.task_metadata import TaskMetadata
from mteb.models import ModelMeta
from mteb.models.models_protocols import EncoderProtocol
from mteb.similarity_functions import cos_sim, pairwise_cos_sim
from mteb.types import PromptType

from hubless.corrections import NNN
from hubless.integrations.mteb import MovedEncoder
from hubless.movers import MoveLabeled, Shrink, Stay
from hubless.neighbors.knn import unit
from hubless.repair.repair import ItemSteps, Repair
from tests import reference

pytestmark = pytest.mark.services  # needs MTEB


def task_of(documents, queries, relevant):
    """A retrieval task of MTEB from texts by id, and the relevant documents of each query."""

    class Local(AbsTaskRetrieval):
        metadata = TaskMetadata(
            name="LocalRetrieval",
            dataset={"path": "none", "revision": "1"},
            description="Data of this machine.",
            type="Retrieval",
            eval_langs=["eng-Latn"],
            main_score="ndcg_at_10",
        )

        def load_data(self, **kwargs):
            rows = [
                Dataset.from_list([{"id": id, "text": text} for id, text in texts.items()])
                for texts in (documents, queries)
            ]
            split = {"corpus": rows[0], "queries": rows[1], "relevant_docs": relevant, "top_ranked": None}
            self.dataset, self.data_loaded = {"default": {"test": split}}, True

    return Local()


class Lookup:
    """The embedding of a text is the one in a table."""

    mteb_model_meta = ModelMeta.create_empty({"name": "local/lookup", "revision": "1"})

    def __init__(self, vectors):
        self.vectors = vectors

    def encode(self, inputs, **kwargs):
        return np.stack([self.vectors[text] for batch in inputs for text in batch["text"]])

    def similarity(self, first, second):
        return cos_sim(first, second)

    def similarity_pairwise(self, first, second):
        return pairwise_cos_sim(first, second)


def ndcg_of(encoder, task):
    result = mteb.evaluate(encoder, task, cache=None, show_progress_bar=False)
    return result.task_results[0].scores["test"][0]["ndcg_at_10"], result


class Small:
    """60 documents, 25 queries of which each has one or two relevant documents."""

    def __init__(self):
        rng = np.random.default_rng(0)
        self.X = rng.standard_normal((60, 8)).astype(np.float32) * np.linspace(0.5, 2, 60)[:, None]
        self.answers = [rng.choice(60, 1 + i % 2, replace=False) for i in range(25)]
        self.X[:, 4:] += 1.0
        noise = rng.standard_normal((25, 8))
        self.queries = np.array([self.X[rows].mean(axis=0) for rows in self.answers]) + noise
        self.queries = self.queries.astype(np.float32)
        texts = [f"document {i}" for i in range(60)], [f"query {i}" for i in range(25)]
        self.table = dict(zip([*texts[0], *texts[1]], [*self.X, *self.queries], strict=True))
        self.ids = [f"d{i}" for i in range(60)]
        relevant = {f"q{i}": {f"d{row}": 1 for row in rows} for i, rows in enumerate(self.answers)}
        documents = dict(zip(self.ids, texts[0], strict=True))
        queries = dict(zip(relevant, texts[1], strict=True))
        self.task = task_of(documents, queries, relevant)

    def naive(self, stored, queries):
        """nDCG@10, in loops."""
        total = 0.0
        for query, rows in zip(queries, self.answers, strict=True):
            order = sorted(range(60), key=lambda i: reference.distance(query, stored[i]))[:10]
            gain = sum(1 / np.log2(place + 2) for place, row in enumerate(order) if row in rows)
            total += gain / sum(1 / np.log2(place + 2) for place in range(len(rows)))
        return total / len(self.answers)


@pytest.fixture(scope="module")
def small():
    return Small()


def models(small):
    pairs = [(q, x) for q, rows in zip(small.queries, small.answers, strict=True) for x in small.X[rows]]
    x, z = (np.array(side) for side in zip(*pairs, strict=True))
    mover = MoveLabeled(1.0, toward="identity").fit_pairs(x, z)
    y = np.arange(60) % 2
    steps = ItemSteps(np.array(["d3", "d7"], dtype=object), small.queries[:2], 0.5)
    column = NNN(2.0, 3, metric="l2", column=True).fit(small.queries, small.X)
    return {
        "l2": Repair(mover, "l2"),
        "cosine": Repair(MoveLabeled(1.0, toward="identity").fit_pairs(unit(x), unit(z)), "cosine"),
        "steps": Repair(Stay().fit(small.X, y), "l2", steps=steps),
        "column": Repair(Stay().fit(small.X, y), "l2", correction=column),
    }


@pytest.mark.parametrize("name", ["l2", "cosine", "steps", "column"])
def test_mteb_measures_what_a_loop_measures(small, name):
    model = models(small)[name]
    encoder = MovedEncoder(Lookup(small.table), model, ["Local"])
    assert isinstance(encoder, EncoderProtocol)
    queries = np.pad(small.queries, ((0, 0), (0, model.width - 8)))  # a 0 in the column that was added
    queries = unit(queries) if name == "cosine" else queries
    expected = small.naive(model.move(small.X, small.ids), queries)
    found, result = ndcg_of(encoder, small.task)
    assert found == pytest.approx(expected, abs=1e-4)  # MTEB rounds to five digits
    plain = unit(small.X) if name == "cosine" else small.X
    assert abs(expected - small.naive(plain, queries[:, :8])) > 1e-3  # it did move
    # results say what they are of
    assert result.model_name == f"local/lookup-hubless-{model.hash[:8]}"
    meta = encoder.mteb_model_meta
    assert (meta.adapted_from, meta.embed_dim) == ("local/lookup", model.width)
    assert meta.similarity_fn_name.value == {"cosine": "cosine"}.get(name, "euclidean")
    assert meta.training_datasets == {"Local"}


def test_without_a_mover_it_is_the_encoder(small):
    y = np.arange(60) % 2
    stay = Repair(Stay().fit(small.X, y), "cosine")
    plain, _ = ndcg_of(Lookup(small.table), small.task)
    moved, result = ndcg_of(MovedEncoder(Lookup(small.table), stay), small.task)
    assert moved == plain == pytest.approx(small.naive(unit(small.X), unit(small.queries)), abs=1e-4)
    assert result.model_name != "local/lookup"


def test_what_cannot_be_moved_is_refused(small):
    y = np.arange(60) % 2
    stay = Repair(Stay().fit(small.X, y), "l2")
    encoder = MovedEncoder(Lookup(small.table), stay)
    with pytest.raises(ValueError, match="moved already"):
        MovedEncoder(encoder, stay)
    with pytest.raises(ValueError, match="documents of MTEB have none"):
        MovedEncoder(Lookup(small.table), Repair(Shrink().fit(small.X, y), label="kind"))
    with pytest.raises(ValueError, match="LocalRetrieval does not say"):
        encoder.encode([], task_metadata=small.task.metadata, prompt_type=None)
    batches = [{"text": ["document 3", "query 2"]}]  # without ids: no steps
    found = encoder.encode(batches, task_metadata=None, prompt_type=PromptType.document)
    np.testing.assert_array_equal(found, [small.X[3], small.queries[2]])


@pytest.mark.slow  # needs its embeddings
def test_scifact_is_that_of_hubless_evaluate(data_dir, tmp_path):
    from hubless.repair import evaluate_index
    from hubless.stores.opening import open_store

    folder = data_dir / "scifact"
    X, Q = (np.load(folder / f"{name}_minilm_384.npy").astype(np.float32) for name in ("docs", "queries"))
    ids, names = (json.loads((folder / f"{kind}_ids.json").read_text()) for kind in ("doc", "query"))
    judged = {}
    for part in ("train", "test"):
        judged[part] = {}
        for row in csv.DictReader((folder / f"qrels_{part}.tsv").read_text().splitlines(), delimiter="\t"):
            if int(row["score"]) > 0:
                judged[part].setdefault(row["query-id"], {})[row["corpus-id"]] = int(row["score"])
    rows = {name: i for i, name in enumerate(names)}, {name: i for i, name in enumerate(ids)}
    pairs = [(rows[0][q], rows[1][d]) for q, found in judged["train"].items() for d in found]
    x, z = unit(Q[[q for q, _ in pairs]]), unit(X[[d for _, d in pairs]])
    model = Repair(MoveLabeled(toward="identity").fit_pairs(x, z), "cosine")
    documents = {name: f"d{name}" for name in ids}
    queries = {name: f"q{name}" for name in judged["test"]}
    table = {f"d{name}": vector for name, vector in zip(ids, X, strict=True)}
    table |= {f"q{name}": vector for name, vector in zip(names, Q, strict=True)}
    task = task_of(documents, queries, judged["test"])
    plain, _ = ndcg_of(Lookup(table), task)
    assert plain == pytest.approx(0.645, abs=0.005)  # as published for this model, .645, and ours, .649
    moved, _ = ndcg_of(MovedEncoder(Lookup(table), model), task)
    for name, value in (("docs", ids), ("queries", names)):
        (tmp_path / f"{name}.json").write_text(json.dumps([str(each) for each in value]))
    source = open_store(folder / "docs_minilm_384.npy", items=tmp_path / "docs.json", metric="cosine")
    asked = open_store(folder / "queries_minilm_384.npy", items=tmp_path / "queries.json")
    lines = ["query-id\tcorpus-id\tscore"]
    lines += [f"{q}\t{d}\t{s}" for q, found in judged["test"].items() for d, s in found.items()]
    (tmp_path / "test.tsv").write_text("\n".join(lines) + "\n")
    found = evaluate_index(model, source, asked, pairs=tmp_path / "test.tsv")
    change = next(c for c in found.figures if c.measure.startswith("nDCG@10") and c.part == "all")
    assert (plain, moved) == pytest.approx((change.before, change.after), abs=2e-4)
