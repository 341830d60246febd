"""20 Newsgroups: the paper's figures, from the committed results and from one split run anew."""

import json

import numpy as np
import pytest
import scipy.sparse
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split

from benchmarks import news
from hubless.demo import CLOSING
from hubless.experiment import METHODS, run


def means(cells, method):
    own = [cell for cell in cells if cell["method"] == method]
    return np.mean([[cell["accuracy"], cell["skewness"]] for cell in own], axis=0)


def assert_reaches_the_paper(euclidean, moved):
    assert euclidean[0] == pytest.approx(0.769, abs=0.015)
    assert euclidean[1] > 15
    assert moved[0] >= 0.81
    assert moved[1] < 3.5


def test_committed_results_reach_the_paper():
    result = json.loads(news.RESULT.read_text())
    cells = result["cells"]
    assert sorted((cell["split"], cell["method"]) for cell in cells) == sorted(
        (split, method) for split in range(4) for method in METHODS
    )
    euclidean, moved = means(cells, "original metric"), means(cells, "Move-labeled")
    assert_reaches_the_paper(euclidean, moved)
    query = means(cells, "Move-query")
    assert query[0] < euclidean[0]
    assert query[1] > euclidean[1]
    told = " ".join(CLOSING.split())
    assert f"lifts accuracy from {100 * euclidean[0]:.0f} to {100 * moved[0]:.0f} %" in told
    assert f"skewness falls from {euclidean[1]:.0f} to {moved[1]:.0f}" in told
    assert {"date", "cores", "numpy", "scikit-learn"} <= set(result["machine"])


def test_a_split_run_anew_reaches_the_paper(data_dir):
    X, y = news.load_news(data_dir)
    assert X.shape == (18846, 300)
    train, test, train_y, test_y = train_test_split(X, y, test_size=0.3, random_state=0)
    found = {m: run(m, train, train_y, test, test_y) for m in ("original metric", "Move-labeled")}
    assert_reaches_the_paper(*((found[m].accuracy, found[m].skewness) for m in found))


@pytest.fixture
def counts(rng):
    """80 documents of 50 terms about 4 topics."""
    topics = rng.gamma(0.3, 4.0, (4, 50))
    return scipy.sparse.csr_array(rng.poisson(topics[rng.integers(0, 4, 80)]))


def test_term_weights_same_as_loops(counts):
    dense, found = counts.toarray(), news.log_tfidf(counts).toarray()
    for i in range(80):
        for j in range(50):
            tf, df = dense[i, j], np.count_nonzero(dense[:, j])
            assert found[i, j] == pytest.approx((1 + np.log(tf)) * np.log(80 / df) if tf else 0.0)


def test_components_same_as_scikit_learn(counts):
    found = news.principal_components(counts.astype(float), 3)
    truth = PCA(3, svd_solver="full").fit_transform(counts.toarray().astype(float))
    np.testing.assert_allclose(np.abs(found), np.abs(truth), atol=1e-6)  # the sign of an axis is free


def test_whole_command_on_tiny_data(tmp_path, monkeypatch, rng, capsys):
    y = np.arange(90) % 3
    X = rng.standard_normal((90, 5)) + 3 * np.eye(5)[y]
    monkeypatch.setattr(news, "load_news", lambda folder: (X, y))
    news.main(["--data-dir", "here", "--splits", "2", "--out", str(tmp_path / "deep" / "news.json")])
    result = json.loads((tmp_path / "deep" / "news.json").read_text())
    assert len(result["cells"]) == 6
    assert "| Move-labeled |" in capsys.readouterr().out


def test_wrong_folder_says_what_is_missing(tmp_path):
    with pytest.raises(SystemExit, match=r"20Newsgroups.mat is not there. Get 20Newsgroups.mat from http"):
        news.main(["--data-dir", str(tmp_path)])


def test_without_data_the_command_says_what_to_set(monkeypatch, capsys):
    monkeypatch.delenv("HUBLESS_DATA", raising=False)
    with pytest.raises(SystemExit):
        news.main([])
    assert "set HUBLESS_DATA or give --data-dir" in capsys.readouterr().err
