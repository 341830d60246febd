"""What a page must not claim, show or overwrite."""

import json
import math

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.datasets import make_blobs
from sklearn.neighbors import KNeighborsClassifier

import hubless
from hubless import MoveLabeledClassifier, MoveLabeledClassifierCV, cli, compare
from hubless.evaluation import BeforeAfter, evaluate_classes
from hubless.movers import Balance, MoveLabeled, Stay
from hubless.repair.evaluate import evaluate_labels, evaluate_pairs
from hubless.repair.index_items import read_items
from hubless.repair.judgements import Judgements
from hubless.repair.learn_in_memory import learn_from_labels, learn_from_pairs
from hubless.report.details import Captions
from hubless.report.report import ModelDescription, make_report
from hubless.report.summary import summary
from hubless.report.verdict import verdict
from hubless.stores.files.plain_files import NpyFile


def blobs(n, d=60, seed=0):
    X, y = make_blobs(n, d, centers=5, cluster_std=2.5, center_box=(-1, 1), random_state=seed)
    return X.astype(np.float32), y.astype(str)


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """A file of vectors with a table of classes, and queries, in the working folder."""
    monkeypatch.chdir(tmp_path)
    X, y = blobs(500)
    np.save("index.npy", X[:400])
    np.save("queries.npy", X[400:])
    for name, labels in (("items.json", y[:400]), ("queries.json", y[400:])):
        (tmp_path / name).write_text(json.dumps({"kind": labels.tolist()}))
    return ["index.npy", "--metric", "l2", "--items", "items.json", "--labels", "kind"]


def run_verb(capsys, *arguments):
    """Exit code, output and messages of a verb."""
    code = cli.main([*map(str, arguments)])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def changed(fixed, broken, stay):
    """An evaluation with this many queries of one class fixed and broken; the others stay right."""
    stored = np.array([[0.0], [1.0], [10.0]])
    labels = np.array(["right", "wrong", "far"])
    moved = np.array([[0.0], [1.0], [10.0]])
    values = [1.0] * fixed + [0.0] * broken + [10.0] * stay
    queries = np.array(values)[:, None]
    truth = np.array(["right"] * (fixed + broken) + ["far"] * stay)
    moved[:2] = moved[1::-1]  # the two change places
    return evaluate_classes(
        BeforeAfter(stored, moved), BeforeAfter(queries, queries), labels, truth, BeforeAfter(1, 1)
    )


@pytest.mark.parametrize(
    ("fixed", "broken", "stay"),
    [(2, 0, 0), (5, 0, 35), (4, 0, 996), (6, 0, 34), (9, 1, 30), (0, 9, 40), (0, 4, 9)],
)
def test_few_changed_queries_prove_nothing(fixed, broken, stay):
    evaluation = changed(fixed, broken, stay)
    assert (evaluation.fixed, evaluation.broken) == (fixed, broken)
    is_chance = binomtest(fixed, fixed + broken).pvalue >= 0.05
    wanted = "no gain" if is_chance else "move" if fixed > broken else "harmful"
    assert verdict(evaluation).kind == wanted


def test_queries_that_are_stored_items_are_reported():
    X, y = blobs(200)
    queries = np.concatenate([X[:30], X[:20] + 1])
    report = compare(MoveLabeledClassifier().fit(X, y), X, y, queries, y[[*range(30), *range(20)]])
    assert "30 of 50 queries are stored items, and find themselves." in report.figures["summary"]["notes"]


def test_pairs_that_were_learned_from_are_reported(tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "v.npy", rng.standard_normal((80, 12)).astype(np.float32))
    items = read_items(NpyFile(tmp_path / "v.npy", metric="l2"))
    queries = items.vectors[:40] + 0.3 * rng.standard_normal((40, 12)).astype(np.float32)
    judged = Judgements(queries, [{i: 1.0} for i in range(40)], [f"q{i}" for i in range(40)])
    model = learn_from_pairs(items, judged.take(np.arange(30)))
    notes = evaluate_pairs(model, items, judged.take(np.arange(25, 40))).notes
    assert "The model learned from 5 of these 15 queries, so the figures are too optimistic." in notes
    assert evaluate_pairs(model, items, judged.take(np.arange(30, 40))).notes == []


def test_items_of_a_cosine_index_that_stay_are_not_called_moved(tmp_path):
    X, y = blobs(300)
    np.save(tmp_path / "v.npy", X)
    (tmp_path / "i.json").write_text(json.dumps({"kind": y.tolist()}))
    items = read_items(NpyFile(tmp_path / "v.npy", metric="cosine", items=tmp_path / "i.json"), ["kind"])
    model = learn_from_labels(items, "kind", mover="ridge")
    model.mover = Stay().fit(items.vectors, y)
    evaluation = evaluate_labels(model, items, "kind", X[:50] + 1, y[:50])
    assert verdict(evaluation).words == "The items were not moved."


def test_a_baseline_has_its_own_number_of_neighbors(tmp_path):
    """Also beside the paper's mover, where not to move is not tried."""
    X, y = blobs(300)
    np.save(tmp_path / "v.npy", X)
    (tmp_path / "i.json").write_text(json.dumps({"kind": y.tolist()}))
    items = read_items(NpyFile(tmp_path / "v.npy", metric="l2", items=tmp_path / "i.json"), ["kind"])
    plain = MoveLabeledClassifierCV(mover=Stay()).fit(X, y).n_neighbors_
    for mover in ("auto", "ridge"):
        learned = learn_from_labels(items, "kind", mover=mover).facts["learned"]
        assert learned["n_neighbors before"] == plain


@pytest.mark.parametrize("mover", [MoveLabeled(), Balance()])  # one adds a column
def test_code_on_the_page_runs(mover, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = blobs(600)
    report = compare(MoveLabeledClassifier(1, mover=mover), X[:400], y[:400], X[400:], y[400:])
    names = {"hubless": hubless, "report": report, "X": X, "Z": X[:3], "classes": y[:3], "queries": X[400:]}
    steps = report.figures["apply"]["steps"]
    assert steps
    for step in steps:
        exec(step["code"], names)
    vectors = names.get("vectors", X[400:])
    plain = KNeighborsClassifier(1, algorithm="brute").fit(names["stored"], y[:400])
    assert plain.score(vectors, y[400:]) == pytest.approx(
        report.figures["summary"]["figures"][0]["after"], abs=0.02
    )


def one_right_or_six():
    """Stored objects of which the nearest ten have one of the right class, then six; the first is right."""
    stored = np.concatenate([np.zeros((1, 1)), np.full((20, 1), 5.0), np.full((20, 1), 100.0)])
    moved = stored.copy()
    moved[21:26] = 1.0
    return stored, moved, np.array(["a"] + ["b"] * 20 + ["a"] * 20)


def level_accuracy(stored, moved, labels):
    """The evaluation of 40 queries of class "a" that are all alike and have one voter."""
    queries = np.zeros((40, 1))
    return evaluate_classes(
        BeforeAfter(stored, moved),
        BeforeAfter(queries, queries),
        labels,
        np.array(["a"] * 40),
        BeforeAfter(1, 1),
    )


def shares_by_loops(stored, labels):
    """Whether the nearest object has class "a", and the share of the ten nearest with it."""
    near = sorted(range(len(stored)), key=lambda i: (abs(stored[i, 0]), i))[:10]
    return labels[near[0]] == "a", sum(labels[i] == "a" for i in near) / 10


def test_better_neighbors_are_reported_where_accuracy_is_level():
    stored, moved, labels = one_right_or_six()
    assert [shares_by_loops(state, labels) for state in (stored, moved)] == [(True, 0.1), (True, 0.6)]
    evaluation = level_accuracy(stored, moved, labels)
    said = verdict(evaluation)
    assert said.kind == "mixed"
    assert said.title == "No measurable gain in accuracy, but precision@10 rises"
    rise = "share of the 10 nearest with the right class (precision@10) rises"
    assert f"The {rise} measurably, from 10.0 % to 60.0 %" in said.words
    assert f", while the {rise} from 10.0 % to 60.0 %: " in summary(evaluation, "a mover")["sentence"]
    assert said.advice == "move the items only if precision@10 matters to you"


def test_worse_neighbors_are_reported_where_accuracy_is_level():
    """A measured loss of neighbours is named as a gain is: accuracy does not hide it."""
    moved, stored, labels = one_right_or_six()
    assert [shares_by_loops(state, labels) for state in (stored, moved)] == [(True, 0.6), (True, 0.1)]
    evaluation = level_accuracy(stored, moved, labels)
    said = verdict(evaluation)
    assert (said.kind, said.title) == ("harmful", "Worse: precision@10 falls")
    fall = "share of the 10 nearest with the right class (precision@10) falls"
    assert f"The {fall} measurably, from 60.0 % to 10.0 %" in said.words
    sentence = summary(evaluation, "a mover")["sentence"]
    assert f", but the {fall} from 60.0 % to 10.0 %: leave the items as they are." in sentence


def spearman_by_loops(first, second):
    """The correlation of ranks, of which equal values share the mean."""

    def ranks(values):
        return np.array([sum(v < x for v in values) + (sum(v == x for v in values) + 1) / 2 for x in values])

    one, other = (ranks(values) - (len(first) + 1) / 2 for values in (first, second))
    return sum(one * other) / np.sqrt(sum(one**2) * sum(other**2))


@pytest.mark.parametrize("changes", [True, False])
def test_a_correlation_that_changes_its_sign_is_explained(rng, changes):
    """Ten items near the mean answer all queries; then twenty others come from far away and do."""
    stored = np.repeat([[1.0, 0.0], [0.0, 5.0], [0.0, -5.0]], 10, axis=0)
    moved = np.repeat([[1.0, 0.0], [3.0, 1.0], [3.0, -1.0]], 10, axis=0)
    noise = 0.05 * rng.standard_normal((30, 2))
    states = BeforeAfter(stored + noise, (moved if changes else 1.1 * stored) + noise)
    queries = np.array([3.0, 0.0]) + 0.5 * rng.standard_normal((40, 2))
    labels, truth = np.repeat(["a", "b"], [10, 20]), np.array(["a"] * 40)
    evaluation = evaluate_classes(states, BeforeAfter(queries, queries), labels, truth, BeforeAfter(1, 1))
    report = make_report(evaluation, Captions(range(30), range(40)), ModelDescription("a mover"))
    centrality, truths = report.figures["why"]["centrality"], []
    for name, state in states._asdict().items():
        counts = [0] * 30
        for x in queries:
            for i in sorted(range(30), key=lambda i: math.dist(x, state[i]))[:10]:
                counts[i] += 1
        distances = [math.dist(z, states.before.mean(axis=0)) for z in state]
        truths.append(spearman_by_loops(distances, counts))
        assert centrality[name]["correlation"] == pytest.approx(truths[-1])
    assert truths[0] < -0.5
    assert (truths[1] > 0.5) == changes
    says = "before, items near the mean are found most often, after, those far from it."
    assert (says in centrality["words"]) == changes


def test_objects_in_another_order_are_refused():
    X, y = blobs(200)
    model = MoveLabeledClassifier().fit(X, y)
    order = np.random.default_rng(0).permutation(200)
    with pytest.raises(ValueError, match="in this order"):
        compare(model, X[order], y[order], X[:20] + 1, y[:20])


def test_a_class_of_a_hundred_thousand_letters_takes_no_room(rng):
    X, queries = rng.standard_normal((1000, 3)), rng.standard_normal((3000, 3))
    names = np.array(["a" * 100_000, "b"], dtype=object)
    codes, truth_codes = rng.integers(0, 2, 1000), rng.integers(0, 2, 3000)
    evaluation = evaluate_classes(
        BeforeAfter(X, X / 2),
        BeforeAfter(queries, queries),
        names[codes],
        names[truth_codes],
        BeforeAfter(1, 1),
    )
    nearest = ((queries[:, None] - X) ** 2).sum(axis=2).argmin(axis=1)
    assert evaluation.figures[0].before == pytest.approx(np.mean(codes[nearest] == truth_codes))


def test_other_files_are_not_overwritten(shop, capsys, tmp_path):
    (tmp_path / "table.csv").write_text("precious")
    code, out, err = run_verb(capsys, "report", *shop, "--parquet", "table.csv")
    assert (code, out) == (1, "")
    assert "table.csv exists and is not a table of hubless" in err
    code, _, err = run_verb(capsys, "report", *shop, "-o", "table.csv")
    assert code == 1
    assert "not a hubless page" in err
    assert (tmp_path / "table.csv").read_text() == "precious"
    assert not (tmp_path / "report.html").exists()  # refused before any work
    code, _, err = run_verb(capsys, "report", *shop, "-o", "same", "--parquet", "same")
    assert code == 1
    assert run_verb(capsys, "report", *shop, "--parquet", "deep/points.parquet")[0] == 0
    assert (
        run_verb(capsys, "report", *shop, "--parquet", "deep/points.parquet")[0] == 0
    )  # ours may be replaced


def test_a_source_is_not_overwritten(tmp_path, capsys):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X, y = blobs(200)
    file = tmp_path / "items.parquet"
    parquet.write_table(pyarrow.table({"id": range(200), "vector": list(X), "kind": y.tolist()}), file)
    before = file.read_bytes()
    given = ["report", file, "--metric", "l2", "--labels", "kind", "-o", tmp_path / "page.html"]
    assert run_verb(capsys, *given, "--parquet", file)[0] == 1
    assert file.read_bytes() == before


def test_a_password_is_nowhere_on_the_page(monkeypatch, shop, capsys, tmp_path):
    """A store with an address is shown by its name, which has no password."""
    store = NpyFile("index.npy", metric="l2", items="items.json")
    store.name = "postgresql://me@host/shop#items"
    monkeypatch.setattr("hubless.cli.options.VerbOptions.open_source", lambda options: store)
    code, out, _ = run_verb(capsys, "report", "postgresql://me:secret@host/shop#items", *shop[5:], "--json")
    assert code == 0
    assert "secret" not in out + (tmp_path / "report.html").read_text()
    assert "postgresql://me@host/shop#items" in out


def test_ignored_rows_are_reported(shop, capsys, tmp_path):
    X, y = blobs(400)
    X[:7] = np.nan
    np.save("index.npy", X)
    labels = [
        None if 10 <= i < 15 else "" if i == 20 else float("nan") if i == 21 else label
        for i, label in enumerate(y)
    ]
    (tmp_path / "items.json").write_text(json.dumps({"kind": labels}))
    code, out, _ = run_verb(capsys, "report", *shop, "--json")
    assert code == 0
    figures = json.loads(out)
    assert "7 items have no label and are ignored." in figures["summary"]["notes"]
    assert "7 rows have no usable vector and are ignored." in figures["summary"]["notes"]
    assert figures["counts"]["classes"] == 5
    assert figures["counts"]["items"] + figures["counts"]["queries"] == 400 - 14


def test_letters_that_cannot_be_written_do_not_stop_json(shop, capsys, tmp_path):
    labels = [f"{label}\ud800" for label in blobs(500)[1][:400]]
    (tmp_path / "items.json").write_text(json.dumps({"kind": labels}))
    code, out, err = run_verb(capsys, "report", *shop, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["classes"]["names"][0] == "0?"
