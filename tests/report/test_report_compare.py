"""`hubless.compare`: every kind of model and data it may be given, and what it refuses."""

import importlib.util
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.neighbors import KNeighborsClassifier

from hubless import MoveLabeledClassifier, MoveLabeledClassifierCV, compare
from hubless.movers import Balance, Chain, Scale, Shrink, Stay, Steer, Unit, Whiten
from hubless.report import choice
from tests import reference

TRUTH = np.array(["ant", "bee", "cat", "dog"])


@pytest.fixture
def animals(blobs, rng):
    """The objects and queries of `blobs`, with classes of both."""
    X, y, queries = blobs
    return X, TRUTH[y], queries, TRUTH[rng.integers(0, 4, 25)]


@pytest.fixture
def no_surface(monkeypatch):
    """Without the surface, which takes most of the time and is not tested here."""
    monkeypatch.setattr(choice, "measure_surface", lambda *given: None)


def tile(report, key="score"):
    return next(figure for figure in report.figures["summary"]["figures"] if figure["key"] == key)


def as_json(report):
    """The figures inside of the page; anything but strict JSON fails."""
    page = report.html()
    figures = page.split('id="figures">')[1].split("</script>")[0]
    return json.loads(figures, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))


def accuracy_before(X, y, queries, truth, k):
    """Of the vote of the nearest of the original objects, by loops."""
    _, near = reference.nearest(queries, X, k)
    return np.mean(reference.vote(y[near]) == truth)


# --- models -------------------------------------------------------------------------------------------------


def test_a_model_that_is_not_fitted_stays_so(animals):
    X, y, queries, truth = animals
    model = MoveLabeledClassifier(3)
    report = compare(model, X, y, queries, truth)
    assert set(vars(model)) == set(vars(MoveLabeledClassifier(3)))
    fitted = MoveLabeledClassifier(3).fit(X, y)
    assert tile(report)["after"] == pytest.approx(fitted.score(queries, truth))
    assert tile(report)["before"] == pytest.approx(accuracy_before(*animals, 3))
    seconds = {row["what"]: row["seconds"] for row in report.figures["choice"]["seconds"]}
    assert {"choosing and learning", "measuring λ × k for this page"} < set(seconds)
    assert min(seconds.values()) >= 0


def test_a_fitted_model_is_used_as_it_is(animals, no_surface):
    X, y, queries, truth = animals
    model = MoveLabeledClassifier(3).fit(X, y)
    model.moved_ = X[::-1].copy()  # nothing that a fit would come to
    report = compare(model, X, y, queries, truth)
    assert tile(report)["after"] == pytest.approx(accuracy_before(X[::-1], y, queries, truth, 3))
    assert "choosing and learning" not in [row["what"] for row in report.figures["choice"]["seconds"]]


def test_the_ring_of_the_papers_map_is_where_the_model_is(animals):
    """alpha="scale" is one mean eigenvalue, and the model moves no other way."""
    surface = compare(MoveLabeledClassifier(5), *animals).figures["choice"]["surface"]
    x, y = surface["chosen"]
    assert "another way" not in surface["words"]
    assert surface["x"]["values"][x] == pytest.approx(1)
    assert surface["y"]["values"][y] == 5


def test_votes_by_distance(animals, no_surface):
    X, y, queries, truth = animals
    model = MoveLabeledClassifier(7, weights="distance").fit(X, y)
    report = compare(model, *animals)
    plain = KNeighborsClassifier(7, weights="distance", algorithm="brute").fit(X, y)
    assert tile(report)["before"] == pytest.approx(plain.score(queries, truth))
    assert tile(report)["after"] == pytest.approx(model.score(queries, truth))


def test_votes_by_weight(animals, no_surface, rng):
    X, y, queries, truth = animals
    weights = rng.random(60) * np.where(y == "bee", 0.01, 1)
    model = MoveLabeledClassifier(7).fit(X, y, sample_weight=weights)
    report = compare(model, *animals)
    _, near = reference.nearest(queries, X, 7)
    truly = reference.vote(y[near], weights[near])
    assert tile(report)["before"] == pytest.approx(np.mean(truly == truth))
    assert np.any(truly != reference.vote(y[near]))  # else weights would prove nothing
    assert tile(report)["after"] == pytest.approx(model.score(queries, truth))


def test_objects_without_weight_are_refused(animals, no_surface):
    """The model does not hold them, so X has more rows than the model; the message must say why."""
    X, y, _, _ = animals
    model = MoveLabeledClassifier(3).fit(X, y, sample_weight=np.arange(60) > 1)
    with pytest.raises(ValueError, match="weight"):
        compare(model, *animals)


@pytest.mark.parametrize(
    "mover",
    [
        Stay(),
        Scale(0.5),
        Shrink(),
        Balance(),
        Steer(),
        Chain([Whiten(), Unit()]),
        Chain([Shrink(), Balance()]),
    ],
    ids=str,
)
def test_movers_of_every_kind(animals, no_surface, mover):
    X, y, queries, truth = animals
    model = MoveLabeledClassifier(5, mover=mover).fit(X, y)
    report = compare(model, *animals)
    assert tile(report)["before"] == pytest.approx(accuracy_before(*animals, 5))
    assert tile(report)["after"] == pytest.approx(model.score(queries, truth))
    counts = reference.k_occurrence(model.kneighbors(queries, 10, return_distance=False), 60)
    assert tile(report, "skewness")["after"] == pytest.approx(reference.skewness(counts))
    assert as_json(report)["counts"]["dimension"] == 6
    assert ("not moved" in report.figures["summary"]["verdict"]["words"]) == isinstance(mover, Stay)


def test_a_race_lists_every_mover(animals):
    X, y, _, _ = animals
    model = MoveLabeledClassifierCV((1, 3, 5), mover=[Stay(), Shrink(0.3), Scale(0.7)]).fit(X, y)
    report = compare(model, *animals)
    rows, table = report.figures["choice"]["movers"], model.cv_results_
    assert sorted(row["name"] for row in rows) == ["Scale(g=0.7)", "Shrink()", "Stay()"]
    for row, score, k in zip(rows, table["mean_test_score"], table["n_neighbors"], strict=True):
        assert (row["score"], row["k"]) == (score, k)
    assert sum(row["chosen"] for row in rows) == 1
    stay = next(row for row in rows if row["name"] == "Stay()")
    assert report.figures["counts"]["k_before"] == stay["k"]
    assert tile(report)["before"] == pytest.approx(accuracy_before(*animals, stay["k"]))


# --- data ---------------------------------------------------------------------------------------------------


@pytest.mark.torch
def test_tensors_give_the_same_figures(animals, no_surface):
    import torch

    X, y, queries, truth = animals
    arrays = X, np.searchsorted(TRUTH, y), queries, np.searchsorted(TRUTH, truth)
    expected = compare(MoveLabeledClassifier(3), *arrays)
    report = compare(MoveLabeledClassifier(3), *map(torch.as_tensor, arrays))
    assert report.figures["summary"]["figures"] == expected.figures["summary"]["figures"]
    assert report.figures["classes"]["names"] == ["0", "1", "2", "3"]


def test_lists_and_frames_give_the_same_figures(animals, no_surface):
    X, y, queries, truth = animals
    want = compare(MoveLabeledClassifier(3), *animals).figures["summary"]["figures"]
    from_lists = compare(MoveLabeledClassifier(3), *(part.tolist() for part in animals))
    assert from_lists.figures["summary"]["figures"] == want
    rows, query_rows = np.arange(60)[::-1], np.arange(25)[::-1]  # an index in another order than the rows
    columns = [f"c{i}" for i in range(6)]
    frames = [
        pd.DataFrame(X, rows, columns),
        pd.Series(y, rows),
        pd.DataFrame(queries, query_rows, columns),
        pd.Series(truth, query_rows),
    ]
    assert compare(MoveLabeledClassifier(3), *frames).figures["summary"]["figures"] == want


def test_texts_of_a_table_go_by_their_order(animals, no_surface):
    """A part of a table keeps the row numbers of the whole; texts are still those of the first row on."""
    rows, query_rows = np.arange(60)[::-1], np.arange(25)[::-1]
    texts, named = pd.Series([f"text {i}" for i in range(60)], rows), pd.Series(range(100, 160), rows)
    wanted = pd.Series([f"query {i}" for i in range(25)], query_rows)
    report = compare(
        MoveLabeledClassifier(3), *animals, texts=texts, ids=named, query_texts=wanted, query_ids=wanted
    )
    assert report.details["items"]["text"] == [f"text {i}" for i in range(60)]
    assert report.details["items"]["id"] == [str(i) for i in range(100, 160)]
    assert report.details["queries"]["text"] == [f"query {i}" for i in range(25)]


@pytest.mark.parametrize("kind", [float, np.float32, np.int8, str, bool])
def test_labels_of_every_kind(animals, no_surface, kind):
    X, y, queries, truth = animals
    codes, truth_codes = (np.searchsorted(TRUTH, classes) for classes in (y, truth))
    codes, truth_codes = (numbers > 0 if kind is bool else numbers for numbers in (codes, truth_codes))
    model = MoveLabeledClassifier(3).fit(X, codes.astype(kind))
    report = compare(model, X, codes.astype(kind), queries, truth_codes.astype(kind))
    assert tile(report)["after"] == pytest.approx(model.score(queries, truth_codes.astype(kind)))


def test_a_class_is_the_same_as_a_whole_number_and_as_a_float(animals, no_surface):
    """scikit-learn takes 1 and 1.0 for one class, so does `score`."""
    X, y, queries, truth = animals
    codes, truth_codes = (np.searchsorted(TRUTH, classes) for classes in (y, truth))
    model = MoveLabeledClassifier(3).fit(X, codes)
    report = compare(model, X, codes, queries, truth_codes.astype(float))
    assert tile(report)["after"] == pytest.approx(model.score(queries, truth_codes.astype(float)))
    assert report.figures["counts"]["classes"] == 4


def shapes(rng):
    """Data with almost nothing in it: objects, classes, queries, their classes."""
    X, queries = rng.standard_normal((12, 4)), rng.standard_normal((6, 4))
    y, truth = np.repeat(["a", "b"], 6), np.array(["a", "b", "a", "b", "a", "b"])
    few = [0, 1, 6, 7]
    return {
        "few objects": (X[few], y[few], queries, truth),
        "three objects": (X[[0, 1, 6]], y[[0, 1, 6]], queries, truth),
        "one query": (X, y, queries[:1], truth[:1]),
        "one dimension": (X[:, :1], y, queries[:, :1], truth),
        "one place": (np.ones((12, 4)), y, queries, truth),
        "one place for all": (np.ones((12, 4)), y, np.ones((6, 4)), truth),
        "queries of one class": (X, y, queries, np.repeat("a", 6)),
        "a class of queries alone": (X, y, queries, np.repeat("c", 6)),
        "objects of one class": (X, np.repeat("a", 12), queries, truth),
        "classes of one object": (X[:3], np.array(["a", "a", "b"]), queries, truth),
        "the same object twice": (np.repeat(X[:6], 2, axis=0), y, queries, truth),
        "far away": (X + 1e6, y, queries + 1e6, truth),
    }


@pytest.mark.parametrize("name", shapes(np.random.default_rng(0)))
def test_almost_empty_data_is_drawn_without_a_crash(name, rng):
    X, y, queries, truth = shapes(rng)[name]
    report = compare(MoveLabeledClassifier(1), X, y, queries, truth)
    figures = as_json(report)
    _, near = reference.nearest(queries, X, 1)
    assert figures["summary"]["figures"][0]["before"] == pytest.approx(np.mean(y[near[:, 0]] == truth))
    assert figures["counts"]["hub_k"] == min(10, len(X))
    words = json.dumps([figures["summary"], report.details["layout"]]).lower()
    assert not [word for word in ('nan"', "nan ", "nan%", "inf ", "inf)", "infinity") if word in words], words
    assert "nan" not in report._repr_html_()


# --- where it is written, how it is drawn, what is refused --------------------------------------------------


def test_the_page_is_written_to_the_given_file(animals, no_surface, tmp_path):
    file = tmp_path / "new folder" / "page.html"
    report = compare(MoveLabeledClassifier(3), *animals, report=file)
    assert file.read_text(encoding="utf-8") == report.html()


@pytest.mark.parametrize("d", [6, 1])
def test_tsne_draws_items_and_queries_together(animals, no_surface, d):
    X, y, queries, truth = (part[:20] for part in animals)
    report = compare(MoveLabeledClassifier(1), X[:, :d], y, queries[:, :d], truth, layout="tsne")
    assert report.details["layout"]["name"] == "tsne"
    assert "t-SNE" in report.details["layout"]["words"]
    assert len({*zip(*(report.details["items"][axis].tolist() for axis in "xy"), strict=True)}) > 15


@pytest.mark.skipif(importlib.util.find_spec("umap") is not None, reason="umap-learn is installed")
def test_umap_says_what_to_install(animals, no_surface):
    with pytest.raises(ImportError, match="pip install umap-learn"):
        compare(MoveLabeledClassifier(3), *animals, layout="umap")


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"layout": "spring"}, "layout must be one of 'pca', 'tsne', 'umap'; got 'spring'"),
        ({"max_points": 0}, "max_points must be at least 1; got 0"),
        ({"ids": range(59)}, "ids must have one entry per object, 60; got 59"),
        ({"texts": ["a"]}, "texts must have one entry per object, 60; got 1"),
        ({"query_ids": range(60)}, "query_ids must have one entry per query, 25; got 60"),
        ({"query_texts": []}, "query_texts must have one entry per query, 25; got 0"),
        ({"images": np.zeros((25, 4, 4))}, "images must have one entry per object, 60; got 25"),
    ],
)
def test_invalid_options_are_refused(animals, how, message):
    with pytest.raises(ValueError, match=message):
        compare(MoveLabeledClassifier(3), *animals, **how)


@pytest.mark.parametrize(
    ("objects", "labels", "n_queries", "answers", "message"),
    [
        (59, 59, 25, 25, "holds 60 objects, X has 59: give the X and y it was fitted to"),
        (60, 59, 25, 25, "59"),
        (60, 61, 25, 25, "61"),
        (60, 60, 25, 24, "quer"),
        (60, 60, 25, 1, "quer"),
        (60, 60, 0, 0, "quer"),
    ],
)
def test_data_that_does_not_belong_together_is_refused(animals, objects, labels, n_queries, answers, message):
    X, y, queries, truth = animals
    model = MoveLabeledClassifier(3).fit(X, y)
    with pytest.raises(ValueError, match=message):
        compare(model, X[:objects], np.append(y, "ant")[:labels], queries[:n_queries], truth[:answers])


def test_queries_of_another_dimension_are_refused(animals):
    X, y, queries, truth = animals
    with pytest.raises(ValueError, match=r"5.*6|6.*5"):
        compare(MoveLabeledClassifier(3), X, y, queries[:, :5], truth)


@pytest.mark.parametrize("given", [Shrink(0.3), KNeighborsClassifier(), "auto", None])
def test_other_models_are_refused(animals, given):
    with pytest.raises(ValueError, match=r"MoveLabeledClassifier\(mover=\.\.\.\)\); got"):
        compare(given, *animals)
