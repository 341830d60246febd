"""Which correction is chosen by judged queries: against plain loops, on made scores, and on made data."""

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

import hubless
from hubless.corrections import NNN, MeanQuery
from hubless.repair import learn_across, learn_in_memory
from hubless.repair.learn_index import fit_index
from hubless.selection import from_log
from hubless.selection.from_log import (
    NONE,
    CorrectionScores,
    LogFold,
    candidates_for,
    fold_numbers,
    name_of,
    score_corrections,
)
from hubless.selection.pair_map import JudgedQueries
from hubless.stores.opening import open_store
from hubless.stores.store import StoreError
from tests import reference

NAMES = [f"c{i}" for i in range(8)]


def unit(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def scores_of(query, items, metric):
    """How similar items are to a query, one after another."""
    if metric == "l2":
        return np.array([-0.5 * sum((query - z) ** 2) for z in items])
    return np.array([sum(query * z) for z in items])


def one_ndcg(scores, relevant):
    """nDCG@10 of one query."""
    order = np.argsort(-scores, kind="stable").tolist()
    gain = sum(relevant.get(i, 0.0) / np.log2(rank + 2) for rank, i in enumerate(order[:10]))
    best = sorted(relevant.values(), reverse=True)[:10]
    return gain / sum(value / np.log2(rank + 2) for rank, value in enumerate(best))


def folds_of(rng, is_unit, n=60, m=40, d=5):
    """Two folds of judged queries with two answers each, which are worth 1 and 2."""
    space = unit if is_unit else np.asarray
    items, log = space(rng.normal(size=(n, d)) + 1), space(rng.normal(size=(m, d)) + 1)
    folds = []
    for _ in range(2):
        queries = space(rng.normal(size=(15, d)) + 1)
        answers = rng.permuted(np.tile(np.arange(n), (15, 1)), axis=1)[:, :2].tolist()
        folds.append(LogFold(items, JudgedQueries(queries, [{a: 1.0, b: 2.0} for a, b in answers]), log))
    return folds


@pytest.mark.parametrize("metric", ["ip", "cosine", "l2"])
def test_scores_are_those_of_loops(rng, metric, monkeypatch):
    """With a column, by the formulas; without, by the vectors that a correction writes."""
    corrections = [MeanQuery(0.5), NNN(0.5, 3)]
    monkeypatch.setattr(from_log, "all_candidates", lambda: tuple(corrections))
    folds = folds_of(rng, metric == "cosine")
    column = metric == "l2"
    found = score_corrections(folds, 2, metric, column=column)
    none, scores = [], {name_of(each): [] for each in corrections}
    for items, judged, log in folds:
        stored = [clone(each).set_params(metric=metric).fit(log, items).move(items) for each in corrections]
        apart = [[0.5 * sum((q - z) ** 2) for q in log] for z in items]
        biases = [
            [-0.5 * reference.mean(row) for row in apart],
            [-0.5 * reference.mean(sorted(row)[:3]) for row in apart],
        ]
        for query, relevant in zip(*judged, strict=True):
            plain = scores_of(query, items, metric)
            none.append(one_ndcg(plain, relevant))
            for name, moved, bias in zip(scores, stored, biases, strict=True):
                wanted = plain - bias if column else scores_of(query, moved, metric)
                scores[name].append(one_ndcg(wanted, relevant))
    np.testing.assert_allclose(found.none, none, atol=1e-9)
    for name, wanted in scores.items():
        assert not np.allclose(wanted, none)  # so the lines below can fail
        np.testing.assert_allclose(found.scores[name], wanted, atol=1e-9)


def test_judged_items_are_kept_where_they_are_more_than_the_sample(rng, monkeypatch):
    folds = folds_of(rng, False)
    monkeypatch.setattr(from_log, "all_candidates", lambda: (MeanQuery(1.0),))
    monkeypatch.setattr(from_log, "POOL", 1)
    found, wanted = score_corrections(folds, 2, "ip"), []
    for items, judged, _ in folds:
        rows = sorted({item for relevant in judged.relevant for item in relevant})
        assert 1 < len(rows) < len(items)
        for query, relevant in zip(*judged, strict=True):
            kept = {rows.index(item): worth for item, worth in relevant.items()}
            wanted.append(one_ndcg(scores_of(query, items[rows], "ip"), kept))
    np.testing.assert_allclose(found.none, wanted, atol=1e-9)


def test_corrections_learn_from_the_log_of_their_fold_alone(rng, monkeypatch):
    """A log that changes in one fold changes the scores of that fold alone."""
    monkeypatch.setattr(from_log, "all_candidates", lambda: (MeanQuery(1.0),))
    folds = folds_of(rng, False)
    other = [folds[0], folds[1]._replace(log=rng.normal(size=(40, 5)) - 3)]
    (first,), (then,) = ([*score_corrections(f, 2, "ip").scores.values()] for f in (folds, other))
    np.testing.assert_array_equal(first[:15], then[:15])
    assert (first[15:] != then[15:]).any()


class TestRule:
    """Which correction is best, by made scores."""

    def test_one_that_is_truly_better_is_chosen(self):
        chosen = []
        for seed in range(40):
            rng = np.random.default_rng(seed)
            none = rng.uniform(size=50)
            scores = {name: none + 0.1 * rng.normal(size=50) for name in NAMES}
            scores["better"] = none + 0.08 + 0.1 * rng.normal(size=50)
            chosen.append(CorrectionScores(none, scores).best())
        assert chosen.count("better") >= 38

    @pytest.mark.parametrize("n", [20, 50, 300])
    def test_noise_is_rarely_chosen(self, n):
        """The rule allows 10 % of the time; 120 seeds with 22 or more have a chance below 1 in 200."""
        taken = 0
        for seed in range(120):
            rng = np.random.default_rng(seed)
            none, shared = rng.uniform(size=n), 0.1 * rng.normal(size=n)
            scores = {name: none + shared + 0.05 * rng.normal(size=n) for name in NAMES}
            taken += CorrectionScores(none, scores).best() != NONE
        assert taken <= 21

    def test_what_changes_nothing_is_not_ahead(self):
        none = np.linspace(0, 1, 30)
        scores = CorrectionScores(none, {name: none.copy() for name in NAMES})
        assert scores.best() == NONE
        assert "changes nDCG@10 by +0.000 ± 0.000" in scores.explain(NONE)

    def test_few_hubs_are_no_reason_and_a_loss_is_never_chosen(self):
        none = np.random.default_rng(0).uniform(0.3, 1, size=100)
        assert CorrectionScores(none, {"worse": none - 0.2}).best() == NONE

    def test_a_higher_score_by_chance_is_not_passed_over_in_silence(self):
        rng = np.random.default_rng(1)
        none = np.full(60, 0.5)
        wild = rng.permutation(np.repeat([-1.0, 1.0], 30)) + 0.1
        scores = CorrectionScores(none, {"sure": none + rng.uniform(0.04, 0.06, 60), "wild": none + wild})
        assert scores.scores["wild"].mean() > scores.scores["sure"].mean()
        assert scores.best() == "sure"
        assert "the best of the 1 of 2 corrections that are ahead of none" in scores.explain("sure")

    def test_words_and_rows_give_the_figures(self):
        rng = np.random.default_rng(1)
        none = rng.uniform(size=60)
        scores = CorrectionScores(none, {"good": none + rng.uniform(0, 0.2, 60), "bad": none - 0.1})
        assert scores.best() == "good"
        differences = scores.scores["good"] - none
        error = 1.96 * differences.std(ddof=1) / np.sqrt(60)
        said = scores.explain("good")
        assert f"nDCG@10 {none.mean():.3f} → {scores.scores['good'].mean():.3f} on 60 judged queries" in said
        assert (
            f"({differences.mean():+.3f} ± {error:.3f}); the best of the 1 of 2 corrections that are ahead"
            in said
        )
        rows = scores.tried_rows("good")
        assert [row["score"] for row in rows] == sorted((row["score"] for row in rows), reverse=True)
        assert [row["chosen"] for row in rows] == [True, False, False]
        assert [bool(row["why_not"]) for row in rows] == [False, False, True]


def test_candidates_are_those_that_a_metric_allows():
    names = {metric: {name_of(each) for each in candidates_for(metric, False)} for metric in ("l2", "ip")}
    assert {name.split("(")[0] for name in names["l2"] - names["ip"]} == {"LocalScaling", "DisSimLocal"}
    assert all(each.column and each.metric == "l2" for each in candidates_for("l2", True))


def test_few_judged_queries_are_too_few():
    with pytest.raises(ValueError, match="19 judged queries are too few to choose a correction by: give 20"):
        fold_numbers(19)
    assert [len(fold_numbers(n)) for n in (20, 400, 1000, 4000)] == [5, 5, 2, 1]


# --- data on which a correction helps -----------------------------------------------------------------------


def write_files(folder, width=24, n=400, m=900, judged=150, seed=0):
    """Items, queries that ask for one of them each, about one of 24 topics, and an item that is all topic.

    That item comes before the right answer, whatever it is, and no map can hide all of the 24: they span the
    space. The first `judged` queries are known to learn from, the last 400 to test by, and the others are in
    the log alone.
    """
    rng = np.random.default_rng(seed)
    topics = np.linalg.qr(rng.normal(size=(24, 24)))[0]
    X = np.concatenate([unit(rng.normal(size=(n, 24))), topics])
    answers = rng.integers(0, n, m)
    queries = unit(X[answers] + 1.3 * topics[rng.integers(0, 24, m)] + 0.1 * rng.normal(size=(m, 24)))
    queries = queries if width == 24 else queries @ np.linalg.qr(rng.normal(size=(width, width)))[0][:24]
    np.save(folder / "items.npy", X.astype(np.float32))
    np.save(folder / "queries.npy", queries.astype(np.float32))
    (folder / "queries.json").write_text(json.dumps([f"q{i}" for i in range(m)]))
    for name, rows in (("train", range(judged)), ("test", range(m - 400, m))):
        lines = [f"q{i}\t{answers[i]}\t1\n" for i in rows]
        (folder / f"{name}.tsv").write_text("".join(["query-id\tcorpus-id\tscore\n", *lines]))
    np.save(folder / "log.npy", queries[: m - 400].astype(np.float32))
    (folder / "log.json").write_text(json.dumps([f"q{i}" for i in range(m - 400)]))
    return X, queries, answers


def fitted(folder, metric="l2", **options):
    log = open_store(folder / "log.npy", items=folder / "log.json")
    store = open_store(folder / "items.npy", metric=metric)
    hubless.save(fit_index(store, pairs=folder / "train.tsv", queries=log, **options), folder / "model")
    return hubless.load(folder / "model")


def ndcg_of(model, X, queries, answers):
    """nDCG@10 of queries with one answer each, by plain search among moved items."""
    Z, ids = model.move(X.astype(np.float32), [*range(len(X))]).astype(np.float64), answers.tolist()
    asked = np.pad(queries, ((0, 0), (0, model.width - queries.shape[1])))
    scores = [-((Z - q) ** 2).sum(axis=1) for q in asked]
    return np.array([one_ndcg(row, {i: 1.0}) for row, i in zip(scores, ids, strict=True)])


def check_gain(model, X, queries, answers):
    """What was measured held out is found again with fresh queries, within both errors."""
    before = ndcg_of(replace(model, correction=None), X, queries, answers)
    gains = ndcg_of(model, X, queries, answers) - before
    (figure,) = [row for row in model.facts["figures"] if "of the correction" in row["measure"]]
    error = (figure["high"] - figure["low"]) / 2 + 1.96 * gains.std() / np.sqrt(len(gains))
    assert gains.mean() > 0.05
    assert abs(figure["after"] - figure["before"] - gains.mean()) < error
    return figure


@pytest.mark.parametrize(
    ("n_log", "judged", "width", "why"),
    [
        (30, 30, 24, "The log has 30 different queries, too few for a correction: give 50 or more."),
        (60, 15, 24, "15 judged queries are too few to choose a correction by: give 20 or more."),
        (60, 15, 32, "15 judged queries are too few to choose a correction by: give 20 or more."),
    ],
)
def test_few_queries_with_answers_are_learned_from_without_a_correction(tmp_path, n_log, judged, width, why):
    write_files(tmp_path, width=width, m=400 + n_log, judged=judged)
    model = fitted(tmp_path)
    assert model.correction is None
    assert model.learned["queries"] == judged
    assert model.learned["correction"] == NONE
    assert model.learned["correction chosen by"] == why


@pytest.mark.parametrize("width", [24, 32])
def test_a_column_that_changes_nothing_is_refused_before_anything_is_learned(tmp_path, monkeypatch, width):
    write_files(tmp_path, width=width, m=460, judged=40)
    for module, name in ((learn_in_memory, "score_held_out"), (learn_across, "score_penalties")):
        monkeypatch.setattr(module, name, None)
    with pytest.raises(StoreError, match=r"compares by cosine.*Leave out --column"):
        fitted(tmp_path, metric="cosine", column=True)
    np.save(tmp_path / "log.npy", 2 * np.load(tmp_path / "log.npy"))  # the items have length 1
    if width == 24:
        with pytest.raises(StoreError, match="Bring the queries to length 1, or leave out --column"):
            fitted(tmp_path, metric="l2", column=True)


@pytest.mark.parametrize("options", [{}, {"column": True}, {"judged": 50}], ids=str)
def test_a_correction_that_helps_is_chosen_by_few_judged_queries(tmp_path, options):
    column = options.pop("column", False)
    X, queries, answers = write_files(tmp_path, seed=3, **options)
    model = fitted(tmp_path, column=column)
    assert model.correction is not None
    assert model.correction.column == column
    learned = model.facts["learned"]
    assert learned["from"] == "pairs"
    assert learned["correction"] == name_of(model.correction)
    assert learned["correction chosen by"].endswith(
        " of 12 corrections that are ahead of none by more than chance."
    )
    (chosen,) = [row for row in learned["corrections tried"] if row["chosen"]]
    assert len(learned["corrections tried"]) == 13
    assert chosen["score"] == max(row["score"] for row in learned["corrections tried"] if not row["why_not"])
    check_gain(model, X, queries[-400:], answers[-400:])


def test_a_file_that_does_not_say_how_it_compares_may_have_a_column(tmp_path):
    write_files(tmp_path)
    model = fitted(tmp_path, metric=None, column=True)
    assert (model.correction.metric, model.width) == ("l2", 25)
    assert fitted(tmp_path, metric=None).correction.metric == "cosine"  # items keep length 1: good for both


def test_queries_of_other_lengths_than_the_items_have_no_column(tmp_path):
    write_files(tmp_path)
    np.save(tmp_path / "log.npy", 3 * np.load(tmp_path / "log.npy"))
    with pytest.raises(StoreError, match="Bring the queries to length 1, or leave out --column"):
        fitted(tmp_path, column=True)
    assert fitted(tmp_path).correction.metric == "cosine"


def test_where_answers_are_random_no_correction_is_chosen(tmp_path):
    write_files(tmp_path, judged=60)
    lines = [f"q{i}\t{i}\t1\n" for i in range(60)]  # any item, whatever was asked
    (tmp_path / "train.tsv").write_text("".join(["query-id\tcorpus-id\tscore\n", *lines]))
    model = fitted(tmp_path)
    assert model.correction is None
    assert model.facts["learned"]["correction"] == NONE
    assert (
        "No correction is ahead of none on 60 judged queries"
        in model.facts["learned"]["correction chosen by"]
    )


@pytest.mark.parametrize("column", [False, True])
def test_a_correction_on_top_of_a_map_between_spaces(tmp_path, column):
    X, queries, answers = write_files(tmp_path, width=32, judged=450, m=1000)
    model = fitted(tmp_path, column=column)
    assert (model.dimension, model.query_width, model.width) == (24, 32, 32 + column)
    assert model.correction is not None
    assert model.correction.n_features_in_ == 32
    figure = check_gain(model, X, queries[-400:], answers[-400:])
    assert figure["part"] == "unseen"  # of items that no map was learned from
