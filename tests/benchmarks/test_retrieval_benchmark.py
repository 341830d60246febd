"""Repaired indexes compared: each part against plain loops, every verb at tiny sizes, and the page."""

import contextlib
import importlib
import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import few_pairs, index_stores, index_tables, record, retrieval, retrieval_page, rivals
from benchmarks.__main__ import INDEX, main
from benchmarks.index_data import LABEL, banking77, folder_of, scifact
from hubless.repair.evaluate import evaluate_pairs
from hubless.repair.learn_in_memory import learn_from_pairs

ROOT = Path(__file__).parents[2]


def measured(out, verb):
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        assert main([verb, "--quick", "--out", str(out)]) == 0
    assert shown.getvalue().startswith("|  |")  # its table, and nothing that NUDGE prints


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """The folder of raw results of every verb with --quick; it needs NUDGE and every store."""
    out = tmp_path_factory.mktemp("index")
    for verb in INDEX:
        measured(out, verb)
    return out


@pytest.fixture(scope="module")
def quick_labels(tmp_path_factory):
    """The same of `labels`, which needs no other package."""
    out = tmp_path_factory.mktemp("labels")
    measured(out, "labels")
    return out


@pytest.fixture(scope="module")
def data():
    with folder_of("scifact", quick=True) as folder:
        return scifact(folder)


@pytest.fixture(scope="module")
def pairs(data):
    return rivals.pair_map(data.train, data.items)


def naive_ndcg(stored, queries, relevant):
    """nDCG@10 of each query by plain loops, every relevant document worth 1."""
    scores = []
    for query, answers in zip(queries, relevant, strict=True):
        order = sorted(range(len(stored)), key=lambda i: ((stored[i] - query) ** 2).sum())[:10]
        gain = sum(1 / np.log2(rank + 2) for rank, i in enumerate(order) if i in answers)
        scores.append(gain / sum(1 / np.log2(rank + 2) for rank in range(min(len(answers), 10))))
    return np.array(scores)


def ridge(targets, sources, alpha, toward):
    """(W, centre) of the regression from sources to targets about the mean of the sources, by its formula."""
    centre = sources.mean(axis=0)
    T, S = (side.astype(np.float64) - centre for side in (targets, sources))
    K = S.T @ S
    shrunk = alpha * np.trace(K) / len(K)
    anchor = np.eye(len(K)) if toward == "identity" else np.zeros_like(K)
    return (T.T @ S + shrunk * anchor) @ np.linalg.inv(K + shrunk * np.eye(len(K))), centre


def scaled(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


@pytest.mark.parametrize("metric", ["l2", "ip"])
def test_an_index_is_searched_by_its_metric(metric, rng):
    stored, queries = rng.standard_normal((40, 5)) * rng.uniform(0.5, 2, (40, 1)), rng.standard_normal((7, 5))
    result = rivals.Index(stored, metric, prepare=lambda x: 2 * x).answer(queries)
    for row, query in zip(result, 2 * queries, strict=True):
        likeness = stored @ query if metric == "ip" else -((stored - query) ** 2).sum(axis=1)
        assert row.tolist() == np.argsort(-likeness)[:10].tolist()


@pytest.mark.parametrize("toward", ["zero", "identity"])
def test_documents_are_moved_by_the_regression_on_pairs(toward, data, pairs):
    W, centre = ridge(pairs.x, pairs.z, 0.5, toward)
    index = rivals.move_documents(toward, pairs, data.items)(0.5)
    expected = scaled(centre + (data.items.vectors - centre) @ W.T)
    np.testing.assert_allclose(index.stored, expected, atol=1e-5)
    assert index.prepare(data.test.queries) is data.test.queries


def test_queries_are_moved_by_the_opposite_regression(data, pairs):
    W, centre = ridge(pairs.z, pairs.x, 2.0, "identity")
    index = rivals.move_queries(pairs, data.items)(2.0)
    assert index.stored is data.items.vectors
    expected = scaled(centre + (data.test.queries - centre) @ W.T)
    np.testing.assert_allclose(index.prepare(data.test.queries), expected, atol=1e-5)


def test_a_step_moves_only_documents_with_queries(data, pairs):
    moved = rivals.step_alone(pairs, data.items)(0.5).stored
    same = (moved == data.items.vectors).all(axis=1)
    assert set(np.flatnonzero(~same)) == set(pairs.rows.tolist())
    assert 0 < len(pairs.rows) < len(moved)
    relevant, queries = data.train.rows(data.items.places), data.train.queries
    means = {
        int(row): np.mean([queries[i] for i, found in enumerate(relevant) if row in found], axis=0)
        for row in pairs.rows
    }
    common = np.mean([means[row] - data.items.vectors[row] for row in means], axis=0)
    for row, mean in means.items():
        goal = 0.5 * data.items.vectors[row] + 0.5 * (mean - common)
        np.testing.assert_allclose(moved[row], goal / np.linalg.norm(goal), atol=1e-5)


def test_held_out_queries_are_searched_once_per_repeat_and_never_learned_from(data, monkeypatch):
    searched = []

    def learn(pairs, items):
        known = {row.tobytes() for row in pairs.x}

        def ask(queries):
            assert known.isdisjoint(row.tobytes() for row in queries)
            searched.extend(row.tobytes() for row in queries)
            return queries

        return lambda setting: rivals.Index(items.vectors, prepare=ask)

    monkeypatch.setattr(rivals, "REPEATS", 2)
    result = rivals.held_out(rivals.Way("", "{}", (7.0,), learn), data, seed=3)
    assert sorted(searched) == sorted(2 * [row.tobytes() for row in data.train.queries])
    relevant = data.train.rows(data.items.places)
    expected = naive_ndcg(data.items.vectors, data.train.queries, relevant).mean()
    assert result == {7.0: pytest.approx(expected)}


@pytest.mark.services
@pytest.mark.parametrize(("name", "gamma"), [("NUDGE-M", 0.3), ("NUDGE-N", 0.2), ("NUDGE-N", 0.0)])
def test_the_gamma_of_nudge_is_read_off_what_it_moved(name, gamma, data, capsys):
    tuner = getattr(importlib.import_module("nudge"), name.replace("-", ""))()
    queries = rivals._for_nudge(data.train, data.items)
    moved = tuner.finetune_embeddings(data.items.vectors, queries, queries, gamma=gamma)
    capsys.readouterr()
    assert rivals.gamma_of(name, moved, data.items.vectors) == pytest.approx(gamma, abs=1e-5)


@pytest.mark.services
def test_nudge_validates_on_each_fifth_and_then_gets_its_gamma(data, monkeypatch):
    calls = []

    class Tuner:
        def finetune_embeddings(self, embeddings, train, validation, gamma=None):
            calls.append((len(train["q_embs"]), len(validation["q_embs"]), gamma))
            return embeddings + np.float32(0.25 / 4)  # 16 columns, so 0.25 in all

    monkeypatch.setattr(importlib.import_module("nudge"), "NUDGEN", Tuner)
    result = rivals.nudge("NUDGE-N", data, rivals.DRAWS)
    assert [call[:2] for call in calls] == 5 * [(800, 200), (1000, 200)]
    assert [call[2] for call in calls] == 5 * [None, pytest.approx(0.25**2, rel=1e-5)]
    assert [len(row.runs) for row in result.values()] == [5, 5]


def test_a_rival_that_is_not_installed_is_reported(monkeypatch):
    def ours(data, draws):  # which all are compared with, and takes its time
        return {rivals.OURS: rivals.stay(data, draws)["none"]}

    monkeypatch.setitem(sys.modules, "nudge", None)
    kept = {name: rivals.METHODS[name] for name in ("none", "NUDGE-M")}
    monkeypatch.setattr(retrieval, "METHODS", {**kept, rivals.OURS: ours})
    case = retrieval.pairs(record.Options(quick=True))["SciFact"]
    assert "nudge" in case["methods"]["NUDGE-M"]["error"]
    assert "- NUDGE-M: " in "\n".join(index_tables.of("pairs", {"SciFact": case}))


def test_a_draw_has_as_many_pairs_as_asked_for_and_no_query_too_many(data):
    several = data.train._replace(relevant=[{**found, "other": 1.0} for found in data.train.relevant])
    for size, n in ((20, 10), (21, 11), (1, 1)):
        part = few_pairs.drawn(several, size, 0)
        assert len(part.queries) == n
        assert sum(map(len, part.relevant)) >= size > sum(map(len, part.relevant[:-1]))
    draws = [set(few_pairs.drawn(several, 50, draw).ids) for draw in (0, 0, 1)]
    assert draws[0] == draws[1] != draws[2]


def test_few_pairs_are_compared_draw_by_draw():
    def run(seen, unseen, setting):
        scores = {"all": unseen, "seen": seen, "unseen": unseen}
        return {"setting": setting, "seconds": 1.0, "n seen": 1, "nDCG": scores}

    none = [run(0.2, 0.5, ""), run(None, 0.6, "")]
    ours = [run(0.5, 0.49, "a step"), run(None, 0.6, "not moving")]
    case = {"training pairs": 20, "test queries": 9, "methods": {"none": none, "hubless fit": ours}}
    lines = index_tables.of("few", {"20 pairs": case})
    assert "| 20 pairs | none | 0.550 | 0.200 | 0.550 | 2 | 2 |" in lines
    # of −0.01 and 0: mean −0.005, standard error 0.005
    shown = "0.545 (-0.0050 ± 0.0050)"
    assert f"| 20 pairs | hubless fit | {shown} | 0.500 (+0.3000 ± nan) | {shown} | 2 | 1 |" in lines


@pytest.mark.services
def test_few_pairs_are_measured_on_all_test_queries(quick, data):
    case = record.read(quick)["few"]["cases"]["40 pairs"]
    assert set(case["methods"]) == {"none", "hubless fit", "NUDGE-N, fitted again to all"}
    scores = naive_ndcg(data.items.vectors, data.test.queries, data.test.rows(data.items.places))
    for run in case["methods"]["none"]:
        assert run["nDCG"]["all"] == pytest.approx(scores.mean())
        assert 0 < run["n seen"] < 20


@pytest.mark.services
def test_every_method_has_figures_for_all_parts(quick, data):
    case = record.read(quick)["pairs"]["cases"]["SciFact"]
    assert (case["test queries"], case["unseen"]) == (20, 10)
    names = {*rivals.METHODS, "NUDGE-M, fitted again to all", "NUDGE-N, fitted again to all"}
    assert set(case["methods"]) == names
    for name, row in case["methods"].items():
        counts = {(entry["measure"], entry["part"]): entry["n"] for entry in row["figures"]}
        assert len(counts) == 12
        assert [counts["nDCG@10", part] for part in ("all", "seen", "unseen")] == [20, 10, 10]
        for run in row["runs"]:
            tried = run["held_out"]
            if name in rivals.WAYS:
                best = max(tried, key=tried.get)
                assert run["setting"] == rivals.WAYS[name].text.format(float(best))


@pytest.mark.services
def test_figures_are_those_of_plain_loops(quick, data):
    methods = record.read(quick)["pairs"]["cases"]["SciFact"]["methods"]
    answered = {item for relevant in data.train.relevant for item in relevant}
    seen = np.array([any(item in answered for item in relevant) for relevant in data.test.relevant])
    scores = naive_ndcg(data.items.vectors, data.test.queries, data.test.rows(data.items.places))
    for part, mask in (("all", seen | ~seen), ("seen", seen), ("unseen", ~seen)):
        entry = index_tables.figure(methods["none"], "nDCG@10", part)
        assert entry["after"] == entry["before"] == pytest.approx(scores[mask].mean())
    model = learn_from_pairs(data.items, data.train)
    expected = {
        (entry.measure, entry.part): entry for entry in evaluate_pairs(model, data.items, data.test).figures
    }
    for entry in methods["hubless fit"]["figures"]:
        wanted = expected[entry["measure"], entry["part"]]
        assert (entry["after"], entry["low"]) == pytest.approx((wanted.after, wanted.low))
    names = ("hubless fit", "NUDGE-N")
    ours, theirs = (index_tables.figure(methods[name], "nDCG@10", "all")["after"] for name in names)
    difference = methods["NUDGE-N"]["from_hubless"][0]
    assert difference["after"] - difference["before"] == pytest.approx(theirs - ours)


def test_labels_have_accuracy_and_hubs(quick_labels):
    case = record.read(quick_labels)["labels"]["cases"]["banking77"]
    assert set(case["methods"]) == {"original", "ridge", "auto"}
    assert (case["items"], case["classes"], case["test queries"]) == (90, 3, 30)
    row = case["methods"]["original"]
    with folder_of("banking77", quick=True) as folder:
        items, queries = banking77(folder)
    right = 0
    for vector, label in zip(queries.vectors, queries.columns[LABEL], strict=True):
        order = np.argsort(((items.vectors - vector) ** 2).sum(axis=1), kind="stable")[: row["n_neighbors"]]
        near = [items.columns[LABEL][i] for i in order]
        right += max(near, key=lambda name: (near.count(name), -near.index(name))) == label
    assert row["figures"][0]["after"] == pytest.approx(right / 30)
    assert row["skewness"][0] == row["skewness"][1]


@pytest.mark.services
def test_every_store_is_applied_promoted_and_rolled_back(quick):
    cases = record.read(quick)["stores"]["cases"]
    assert set(cases) == set(index_stores.MAKERS)
    for name, case in cases.items():
        assert case["rows"] == (20 if name in index_stores.FEWER else 200)
        assert {step: len(took) for step, took in case["seconds"].items()} == dict.fromkeys(
            index_stores.STEPS, 1
        )


@pytest.mark.services
def test_clients_answer_as_files_do(quick):
    for case in record.read(quick)["clients"]["cases"].values():
        told = case["banking77"]
        assert (told["items"], told["queries"], case["bulk"]["rows"]) == (90, 30, 200)
        assert told["recall"] == {"before": 1.0, "after": 1.0}
        assert told["accuracy"] == told["accuracy on files"] | {"rolled back": told["accuracy"]["before"]}
        assert told["same bits after rollback"]


def test_a_store_that_fails_is_reported(monkeypatch):
    def broken(folder, X):
        raise ModuleNotFoundError("No module named 'engine'")

    monkeypatch.setattr(index_stores, "MAKERS", {".npy": index_stores.npy, "engine": broken})
    cases = index_stores.measure(record.Options(quick=True))
    assert cases["engine"]["seconds"] == {"error": "ModuleNotFoundError: No module named 'engine'"}
    shown = "\n".join(index_tables.of("stores", cases))
    assert "| .npy | 200 |" in shown
    assert "- engine: ModuleNotFoundError" in shown


def test_a_store_that_loses_rows_is_reported_as_an_error(monkeypatch, tmp_path):
    def half(folder, X):
        return index_stores.npy(folder, X[::2])

    model = index_stores.Repair(index_stores.MoveLabeled(1.0).fit(np.eye(8, dtype=np.float32), [0, 1] * 4))
    with pytest.raises(ValueError, match="200 rows were put in, 100 read"):
        index_stores.way(half, np.ones((200, 8), np.float32), model)


@pytest.mark.services
@pytest.mark.parametrize("verb", INDEX)
def test_every_verb_records_machine_and_versions(verb, quick):
    text = (quick / f"{verb}.json").read_text()
    result = json.loads(text)
    assert result["settings"]["quick"]
    assert result["machine"]["cores"] >= 1
    assert result["date"]
    assert set(result["versions"]) == set(retrieval_page.PEERS)
    assert result["versions"]["nudge-ft"]
    for path in (ROOT, Path(sys.prefix), Path.home(), quick):
        assert f"{path}/" not in text


def test_retrieval_is_one_command(monkeypatch, tmp_path):
    ran = []
    monkeypatch.setattr(subprocess, "run", lambda command: ran.append(command) or _Done())
    assert main(["retrieval", "--quick", "--out", str(tmp_path)]) == 0
    assert [command[3] for command in ran] == list(INDEX)
    assert all(command[4:] == ["--limit", "600", "--out", str(tmp_path), "--quick"] for command in ran)
    assert main(["retrieval"]) == 0
    assert ran[-1][-1] == str(ROOT / "benchmarks" / "results" / "index")


class _Done:
    returncode = 0


@pytest.mark.services
def test_a_quick_look_makes_a_page_too(quick, tmp_path, capsys):
    assert main(["retrieval-page", "--out", str(quick), "--docs", str(tmp_path)]) == 0
    page = (tmp_path / "index-results.md").read_text()
    assert page.count("quick look") == len(INDEX)
    assert capsys.readouterr().out.split() == [str(tmp_path / "index-results.md")]


def test_page_is_made_of_the_raw_results(tmp_path):
    assert main(["retrieval-page", "--docs", str(tmp_path)]) == 0
    expected = (ROOT / "docs" / "index-results.md").read_text()
    assert (tmp_path / "index-results.md").read_text() == expected, "run: python -m benchmarks retrieval-page"
    assert "quick look" not in expected
    assert "**104 of these are unseen**" in expected


def test_page_needs_raw_results(tmp_path, capsys):
    assert main(["retrieval-page", "--out", str(tmp_path), "--docs", str(tmp_path)]) == 1
    assert "python -m benchmarks retrieval" in capsys.readouterr().err


def test_parts_that_were_not_measured_are_missing(quick_labels):
    page = retrieval_page.markdown(record.read(quick_labels))
    assert page.count("Not measured yet.") == len(INDEX) - 1
    assert page.count("quick look") == 1


@pytest.mark.parametrize(
    ("low", "high", "side"), [(0.1, 0.3, 1), (-0.3, -0.1, -1), (-0.1, 0.2, 0), (0, 0, 0)]
)
def test_a_change_is_measurable_if_its_interval_is_on_one_side(low, high, side):
    assert index_tables.side({"low": low, "high": high}) == side
