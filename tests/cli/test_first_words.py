"""What a newcomer types first: `hubless` alone, a mistyped word, a file of labels, `hubless explain`."""

import json

import numpy as np
import pytest

from hubless import cli
from tests.cli.shops import write_csv


def usage_error(capsys, *arguments):
    with pytest.raises(SystemExit) as stop:
        cli.main([*map(str, arguments)])
    assert stop.value.code == 2
    return capsys.readouterr().err


def test_hubless_alone_shows_every_verb_and_what_to_do_first(words):
    shown = words()
    for verb in cli.VERBS:
        assert f"\n  {verb} " in shown
    assert all(line in shown for line in cli.FIRST_STEPS)
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["aply"], "apply"),
        (["fit", "v.npy", "--lables", "x"], "--labels"),
        (["reproduce", "--datasets", "wine", "irris"], "iris"),
        (["reproduce", "--methods", "movelabeled"], "move-labeled"),
        (["completion", "fisch"], "fish"),
    ],
)
def test_mistyped_words_are_recognised(capsys, typed, meant):
    assert f"Did you mean {meant}?" in usage_error(capsys, *typed)
    assert "Did you mean" not in usage_error(capsys, "xyzzy")
    assert "Did you mean" not in usage_error(capsys, "reproduce", "--datasets", "xyzzy")


def test_a_mistyped_column_is_recognised(refused, shop, tmp_path):
    said = refused("fit", *shop.source, "--labels", "categroy", "-o", tmp_path / "new")
    assert "Did you mean 'category'?" in said


def write_labels(file, labels):
    if file.suffix == ".npy":
        np.save(file, labels)
    elif file.name == "with-header.csv":
        write_csv(file, kind=labels)
    elif file.suffix == ".json":
        file.write_text(json.dumps([{"label": label} for label in labels]))
    else:
        file.write_text("\n".join(labels) + "\n")
    return file


@pytest.mark.parametrize("name", ["y.npy", "y.txt", "y.csv", "with-header.csv", "y.json"])
def test_labels_may_be_a_file(run, shop, tmp_path, name):
    """The model is the one that is learned from a column of a table."""
    of_table = [*shop.source, "--labels", "category"]
    of_file = [shop.index, "--labels", write_labels(tmp_path / name, shop.y)]
    hashes = {
        run("fit", *source, "--mover", "ridge", "-o", tmp_path / out)["hash"]
        for out, source in (("table", of_table), ("file", of_file))
    }
    assert len(hashes) == 1
    asking = ["--queries", shop.folder / "queries.npy"]
    truth = ["--query-labels", write_labels(tmp_path / f"q-{name}", shop.truth)]
    evaluated = [
        run("evaluate", tmp_path / out, *source, *asking, *more)["figures"]
        for out, source, more in (
            ("table", of_table, ["--query-items", shop.folder / "queries.csv"]),
            ("file", of_file, truth),
        )
    ]
    assert evaluated[0] == evaluated[1]


def test_files_of_labels_that_are_refused(capsys, refused, shop, tmp_path):
    fit = ["fit", shop.index, "-o", tmp_path / "new", "--labels"]
    assert "no file is" in usage_error(capsys, *fit, tmp_path / "none.npy")
    both = write_csv(tmp_path / "both.csv", a=shop.y, b=shop.y)
    assert f"--items {both} --labels COLUMN" in usage_error(capsys, *fit, both)
    assert "--items gives" in usage_error(capsys, *fit, both, "--items", shop.items)
    few = write_labels(tmp_path / "few.npy", shop.y[:-1])
    assert f"has {len(shop.y) - 1} rows" in refused(*fit, few)


def test_explain_says_what_fit_said(run, words, shop, model):
    shown = words("explain", model)
    facts = run("explain", model)
    learned = json.loads((model / "config.json").read_text())["model"]["facts"]["learned"]
    assert facts["hash"] in shown
    assert learned["mover"] in shown
    assert learned["chosen by"] in shown
    assert facts["facts"]["n"] == len(shop.y)
    assert f"Queries of {shop.X.shape[1]} columns stay as they are." in shown


def test_explain_takes_any_saved_model(words, tmp_path, shop):
    import hubless

    classifier = hubless.MoveLabeledClassifierCV(mover="auto").fit(shop.X, shop.y)
    hubless.save(classifier, tmp_path / "c")
    assert classifier.explain().split("\n")[0] in words("explain", tmp_path / "c")
