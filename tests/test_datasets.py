"""Data sets against the paper's Table 1 and independent truths; downloads from a server on this machine."""

import hashlib
import io
import re
import tarfile
import threading
from collections import Counter
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from sklearn.datasets import load_iris, load_wine
from sklearn.decomposition import PCA

from hubless import datasets
from hubless.datasets import EXTRA, NAMES, RECIPES, Raw, drop_small_classes, load, log_tfidf, read
from hubless.download import FILES, DatasetError, File, cache_folder, data_folder, provide, replacing

# Objects, classes, columns: the paper's Table 1; columns of AwA, CUB, SUN and aPY, and all of rcv and
# banking77, as the files are known to have them.
TABLE = {
    "ionosphere": (351, 2, 34),
    "balance-scale": (625, 3, 4),
    "iris": (150, 3, 4),
    "wine": (178, 3, 13),
    "glass": (214, 6, 9),
    "rcv": (10705, 4, 23086),
    "news": (18846, 20, 26214),
    "reuters": (8213, 41, 18933),
    "tdt": (10021, 56, 36771),
    "awa": (30475, 50, 300),
    "cub": (11788, 200, 1280),
    "sun": (14340, 717, 102),
    "apy": (15339, 32, 64),
    "banking77": (13083, 77, 384),
}

# Objects of the classes as published with the data: all of them, or the smallest and the largest.
SIZES = {
    "ionosphere": {"g": 225, "b": 126},
    "balance-scale": {"L": 288, "B": 49, "R": 288},
    "iris": {"Iris-setosa": 50, "Iris-versicolor": 50, "Iris-virginica": 50},
    "wine": {"1": 59, "2": 71, "3": 48},
    "glass": {"1": 70, "2": 76, "3": 17, "5": 13, "6": 9, "7": 29},
    "news": (628, 999),
    "awa": (92, 1168),
    "cub": (41, 60),
    "sun": (20, 20),
}


def digest(content):
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def at_home(tmp_path, monkeypatch):
    """No folder is set, and the home folder is a new one."""
    for name in ("HUBLESS_DATA", "HUBLESS_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


# --- the data


def test_names_in_the_order_of_the_paper():
    assert NAMES + EXTRA == tuple(TABLE) == tuple(RECIPES) == tuple(FILES)
    assert [name for name in RECIPES if RECIPES[name].standardize] == ["wine"]
    assert {name for name in NAMES if RECIPES[name].note} == {"rcv", "awa", "cub", "sun", "apy"}


@pytest.mark.parametrize("name", TABLE)
def test_shape_and_classes(name, data_dir):
    data, (objects, classes, columns) = read(name, data_dir), TABLE[name]
    assert data.X.shape == (objects, columns)
    assert data.original_dimension == columns
    assert np.isfinite(data.X.data if scipy.sparse.issparse(data.X) else data.X).all()
    assert data.y.dtype == np.int64
    assert len(data.y) == objects
    assert len(data.classes) == len(set(data.classes)) == classes
    sizes = np.bincount(data.y)
    assert len(sizes) == classes
    assert sizes.min() > 0
    known = SIZES.get(name)
    if isinstance(known, dict):
        assert dict(zip(data.classes, sizes.tolist(), strict=True)) == known
    elif known:
        assert (sizes.min(), sizes.max()) == known


@pytest.mark.parametrize("name", [name for name in NAMES if RECIPES[name].kind == "UCI"])
def test_uci_sets_are_kept_as_they_are(name, data_dir, tmp_path):
    data = load(name, data_dir=data_dir, cache_dir=tmp_path)
    assert data.X.dtype == np.float64
    np.testing.assert_array_equal(data.X, read(name, data_dir).X)
    assert not list(tmp_path.iterdir())


def test_iris_and_wine_same_as_scikit_learn(data_dir):
    iris, wine = read("iris", data_dir), read("wine", data_dir)
    X, y = load_iris(return_X_y=True)
    assert np.count_nonzero(iris.X != X) == 3  # scikit-learn's has Fisher's figures, UCI's has three errors
    np.testing.assert_array_equal(iris.y, y)
    X, y = load_wine(return_X_y=True)
    np.testing.assert_allclose(wine.X, X)
    np.testing.assert_array_equal(wine.y, y)


def test_reuters_same_as_loops(data_dir):
    raw = scipy.io.loadmat(data_dir / "reuters" / "Reuters21578.mat")
    sizes = Counter(raw["gnd"].ravel().tolist())
    kept = [i for i, label in enumerate(raw["gnd"].ravel().tolist()) if sizes[label] >= 10]
    counts = raw["fea"].tocsr()[kept]
    data = read("reuters", data_dir)
    assert [data.classes[i] for i in data.y] == [str(raw["gnd"][i, 0]) for i in kept]
    df = (counts > 0).sum(axis=0).A1
    assert (df == 0).any()  # terms of the dropped documents only
    for i in (0, 4000, 8212):
        row = counts[[i]].toarray()[0]
        truth = [(1 + np.log(row[j])) * np.log(8213 / df[j]) if row[j] else 0.0 for j in range(18933)]
        np.testing.assert_allclose(data.X[[i]].toarray()[0], truth)


def test_reuters_components_same_as_scikit_learn(data_dir, tmp_path):
    data = load("reuters", 10, data_dir, tmp_path)
    assert data.X.shape == (8213, 10)
    assert data.X.dtype == np.float32
    X = scipy.sparse.csr_matrix(read("reuters", data_dir).X)
    truth = PCA(4, svd_solver="arpack", random_state=0).fit_transform(X)
    signs = np.sign(np.sum(truth * data.X[:, :4], axis=0))
    assert np.linalg.norm(data.X[:, :4] - signs * truth) < 0.01 * np.linalg.norm(truth)


def test_features_other_than_the_papers(data_dir):
    assert len(np.unique(read("apy", data_dir).X, axis=0)) == 4252
    banking = read("banking77", data_dir)
    np.testing.assert_allclose(np.linalg.norm(banking.X, axis=1), 1, atol=1e-3)
    assert (np.bincount(banking.y[10003:]) == 40).all()  # as its paper says of the test part
    sun = read("sun", data_dir)
    assert sun.classes[sun.y[0]] == "a/abbey"
    images = [line.split("/")[1] for line in (data_dir / "cub" / "cub_images.txt").read_text().split()]
    cub = read("cub", data_dir)
    assert [cub.classes[i] for i in cub.y] == images


# --- the steps


@pytest.fixture
def counts(rng):
    """80 documents of 50 terms about 4 topics."""
    topics = rng.gamma(0.3, 4.0, (4, 50))
    return scipy.sparse.csr_array(rng.poisson(topics[rng.integers(0, 4, 80)]))


def weighted_by_loops(dense):
    n, d = dense.shape
    found = np.zeros((n, d))
    for i in range(n):
        for j in range(d):
            if dense[i, j]:
                found[i, j] = (1 + np.log(dense[i, j])) * np.log(n / np.count_nonzero(dense[:, j]))
    return found


def test_term_weights_same_as_loops(counts):
    np.testing.assert_allclose(log_tfidf(counts).toarray(), weighted_by_loops(counts.toarray()))


def test_term_in_no_document_and_stored_zero_have_no_weight(counts):
    counts = scipy.sparse.csr_array(scipy.sparse.hstack([counts, scipy.sparse.csr_array((80, 1))]))
    counts.data[:3] = 0
    found = log_tfidf(counts)
    np.testing.assert_allclose(found.toarray(), weighted_by_loops(counts.toarray()))
    assert counts.nnz == found.nnz + 3  # the argument is left as it was


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array], ids=["dense", "sparse"])
def test_components_same_as_scikit_learn(form, counts):
    dense = counts.toarray() + 3.0
    found = datasets.principal_components(form(dense), 3)
    truth = PCA(3, svd_solver="full").fit_transform(dense)
    np.testing.assert_allclose(np.abs(found), np.abs(truth), atol=1e-6)
    assert (found.max(axis=0) >= -found.min(axis=0)).all()  # the direction of each axis is settled


def test_components_beyond_the_rank_are_zero(rng):
    X = rng.standard_normal((40, 2)) @ rng.standard_normal((2, 9))
    for found in (datasets.principal_components(form(X), 5) for form in (np.asarray, scipy.sparse.csr_array)):
        np.testing.assert_allclose(found[:, 2:], 0, atol=1e-6)


def test_small_classes_are_dropped_and_the_rest_numbered_anew():
    raw = Raw(np.arange(7)[:, None], np.array([0, 1, 2, 2, 0, 2, 3]), ("a", "b", "c", "d"))
    X, y, classes = drop_small_classes(raw, 2)
    assert X[:, 0].tolist() == [0, 2, 3, 4, 5]
    assert y.tolist() == [0, 1, 1, 0, 1]
    assert classes == ("a", "c")


# --- the cache


@pytest.fixture
def tiny(counts, at_home, monkeypatch):
    """The cache folder, with 80 documents in place of Reuters; class 2 has one document, fewer than 10."""
    labels = np.repeat([1, 2, 3, 4], [40, 1, 29, 10])
    file = io.BytesIO()
    scipy.io.savemat(file, {"fea": scipy.sparse.csc_matrix(counts, dtype=float), "gnd": labels[:, None]})
    folder = at_home / ".cache" / "hubless" / "data" / "reuters"
    folder.mkdir(parents=True)
    (folder / "tiny.mat").write_bytes(file.getvalue())
    files = (File("tiny.mat", digest(file.getvalue())),)
    monkeypatch.setitem(RECIPES, "reuters", RECIPES["reuters"]._replace(files=files))
    return at_home / ".cache" / "hubless"


def failing(*arguments):
    raise AssertionError("computed again")


def assert_same(found, truth):
    for a, b in zip(found, truth, strict=True):
        np.testing.assert_array_equal(a, b)
        assert type(a) is type(b)


def test_all_steps_on_tiny_data(tiny, counts):
    data = load("reuters", 2)
    rows = np.delete(np.arange(80), 40)
    truth = PCA(2, svd_solver="full").fit_transform(weighted_by_loops(counts.toarray()[rows]))
    np.testing.assert_allclose(np.abs(data.X), np.abs(truth), atol=1e-4)
    assert data.classes == ("1", "3", "4")
    assert np.bincount(data.y).tolist() == [40, 29, 10]
    assert data[:3] == ("reuters", "Reuters", "document")
    assert data[6:] == (50, False, "")


def test_second_load_takes_the_cache_without_the_files(tiny, monkeypatch):
    first = load("reuters", 2)
    (tiny / "data" / "reuters" / "tiny.mat").unlink()
    monkeypatch.setattr(datasets, "principal_components", failing)
    assert_same(load("reuters", 2), first)
    assert [path.suffix for path in tiny.iterdir() if path.is_file()] == [".npz"]


def test_another_dimension_file_or_recipe_is_computed_again(tiny, monkeypatch):
    load("reuters", 2)
    recipe = RECIPES["reuters"]
    monkeypatch.setattr(datasets, "principal_components", failing)
    with pytest.raises(AssertionError, match="computed again"):
        load("reuters", 3)
    for change in ({"min_class_size": 9}, {"weighting": None}):
        monkeypatch.setitem(RECIPES, "reuters", recipe._replace(**change))
        with pytest.raises(AssertionError, match="computed again"):
            load("reuters", 2)
    monkeypatch.setitem(RECIPES, "reuters", recipe._replace(files=(File("tiny.mat", "0" * 64),)))
    with pytest.raises(DatasetError, match="is damaged or another version"):
        load("reuters", 2)


def cut(content):
    return content[: len(content) // 2]


def flipped(content):
    middle = content.index(b"NUMPY") + 300  # in the numbers of X
    return content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :]


def an_array(content):
    file = io.BytesIO()
    np.save(file, np.zeros(3))
    return file.getvalue()


@pytest.mark.parametrize("damage", [cut, flipped, an_array, lambda content: b"", lambda content: b"text"])
def test_damaged_cache_is_made_anew(damage, tiny, monkeypatch):
    first = load("reuters", 2)
    (kept,) = tiny.glob("*.npz")
    kept.write_bytes(damage(kept.read_bytes()))
    assert_same(load("reuters", 2), first)
    monkeypatch.setattr(datasets, "principal_components", failing)
    assert_same(load("reuters", 2), first)


def test_cache_that_cannot_be_written_is_no_error(tiny, tmp_path):
    (tmp_path / "file").write_text("no folder")
    assert load("reuters", 2, tiny / "data", tmp_path / "file").X.shape == (79, 2)


@pytest.mark.parametrize("dim", [0, -1, 2.0, True, "300"])
def test_wrong_dimension_is_told(dim):
    with pytest.raises(ValueError, match=r"dim must be a whole number from 1, or None .*; got "):
        load("iris", dim)


@pytest.mark.parametrize("dim", [None, 50])
def test_terms_are_never_made_dense(dim, tiny):
    told = f"reuters has 50 sparse columns and 79 objects, so dim must be from 1 to 49; got {dim}"
    with pytest.raises(ValueError, match=told):
        load("reuters", dim)


def test_unknown_name_is_told():
    for function in (load, read):
        with pytest.raises(ValueError, match="'mnist' is no data set; name one of ionosphere, balance"):
            function("mnist")


def test_folders(at_home, monkeypatch):
    assert cache_folder() == at_home / ".cache" / "hubless"
    assert data_folder(None, "here").as_posix() == "here/data"
    monkeypatch.setenv("HUBLESS_CACHE", "~/kept")
    assert cache_folder() == at_home / "kept"
    assert data_folder() == at_home / "kept" / "data"
    monkeypatch.setenv("HUBLESS_DATA", "~/sets")
    assert data_folder(None, "here") == at_home / "sets"
    assert data_folder("~/mine") == at_home / "mine"


# --- downloads


@pytest.fixture
def server(monkeypatch):
    """Serves `server.content`, half of it where a path ends in -half, noting paths in `server.asked`."""
    monkeypatch.setenv("no_proxy", "*")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            server.asked.append(self.path)
            content = server.content.get(self.path.removesuffix("-half"))
            if content is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            with suppress(ConnectionError):  # who asks may hang up when it has seen enough
                self.wfile.write(cut(content) if self.path.endswith("-half") else content)

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.content, server.asked = {}, []
    server.base = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def archive(members, links=()):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as tar:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
        for name in links:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/hostname"
            tar.addfile(entry)
    return file.getvalue()


def test_missing_file_is_downloaded_once(server, at_home, monkeypatch, capfd):
    table = "".join(f"{i}.5,{i % 3},{'ab'[i % 2]}\n" for i in range(20)).encode()
    server.content["/iris.csv"] = table
    files = (File("iris.csv", digest(table), server.base + "/iris.csv"),)
    monkeypatch.setitem(RECIPES, "iris", RECIPES["iris"]._replace(files=files))
    for _ in range(2):
        data = load("iris")
        np.testing.assert_array_equal(data.X, [[i + 0.5, i % 3] for i in range(20)])
        assert [data.classes[i] for i in data.y] == ["a", "b"] * 10
    assert server.asked == ["/iris.csv"]
    assert (at_home / ".cache/hubless/data/iris/iris.csv").read_bytes() == table
    mine = at_home / "mine"
    load("iris", data_dir=mine)
    assert [path.name for path in (mine / "iris").iterdir()] == ["iris.csv"]
    assert capfd.readouterr() == ("", "")  # the bar is for terminals


def test_members_of_an_archive_come_in_one_transfer(server, tmp_path):
    a, b = b"first" * 1000, b"second" * 999
    members = {"./d/other": b"no", "../../outside": b"evil", "d/a.txt": a, "./d/b.txt": b}
    server.content["/d.tar.gz"] = archive(members)
    url = server.base + "/d.tar.gz"
    files = [File("b.txt", digest(b), url, "d/b.txt"), File("a.txt", digest(a), url, "d/a.txt")]
    folder = tmp_path / "deep" / "set"
    assert provide(folder, files, "") == [folder / "b.txt", folder / "a.txt"]
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a.txt", "b.txt", "deep", "set"]
    assert (folder / "a.txt").read_bytes() == a
    assert len(server.asked) == 1


CONTENT = b"0123456789" * 100_000
SHA256 = digest(CONTENT)

# path asked for, member of an archive, what the error says beside the address
FAILURES = {
    "wrong checksum": ("/other", None, f"its sha256 is {digest(CONTENT[1:])}, expected {SHA256}"),
    "half of a file": ("/file-half", None, "the connection ended after 500000 of 1000000 bytes"),
    "not found": ("/nowhere", None, "cannot be downloaded (HTTP Error 404: Not Found)"),
    "half of an archive": ("/tar-half", "d/file", "cannot be downloaded"),
    "no archive": ("/file", "d/file", "cannot be downloaded"),
    "no such member": ("/tar", "d/none", "has no ['d/none']"),
    "member is a link": ("/tar", "d/link", "has no ['d/link']"),
    "member with wrong checksum": ("/tar", "d/other", f"expected {SHA256}"),
}


@pytest.mark.parametrize("case", FAILURES)
def test_failed_download_leaves_nothing(case, server, tmp_path):
    path, member, told = FAILURES[case]
    members = {"d/other": CONTENT[1:], "d/file": np.random.default_rng(0).bytes(100_000)}
    server.content |= {"/file": CONTENT, "/other": CONTENT[1:], "/tar": archive(members, ["d/link"])}
    with pytest.raises(DatasetError) as caught:
        provide(tmp_path / "set", [File("file", SHA256, server.base + path, member)], "")
    assert server.base + path in str(caught.value)
    assert told in str(caught.value)
    assert f"Put file into {tmp_path / 'set'}, or set HUBLESS_DATA" in str(caught.value)
    assert not list((tmp_path / "set").iterdir())


def test_offline_says_what_to_do(server, tmp_path):
    url = "http://127.0.0.1:1/file"  # nobody answers there
    with pytest.raises(DatasetError, match=rf"{url} cannot be downloaded .*refused.* Put a and b into .*set"):
        provide(tmp_path / "set", [File("a", SHA256, url, "a"), File("b", SHA256, url, "b")], "")


def test_interrupted_writing_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def interrupted():
        with replacing(path) as file:
            file.write(b"ne")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_damaged_file_says_how_to_repair(tmp_path):
    (tmp_path / "file").write_bytes(b"other")
    told = rf"sha256 is {digest(b'other')}, expected {SHA256}. Delete it to {{}}, or set HUBLESS_DATA"
    for url, repair in (("http://x", "have it downloaded again"), (None, "make room for the right one")):
        with pytest.raises(DatasetError, match=told.format(repair)):
            provide(tmp_path, [File("file", SHA256, url)], "")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("rcv", "rcv1_4topic.mat is not there .*RCV1-v2, see scikit-learn's fetch_rcv1"),
        ("cub", "cub_effnetlite0_1280.npy is not there .*CUB-200-2011, https://www.vision.caltech"),
        ("awa", "awa_bow_pca300.npy is not there .*Animals with Attributes, https://cvml"),
        ("banking77", "train_minilm_384.npy is not there .*computed from https://github.com/PolyAI-LDN"),
    ],
)
def test_file_that_is_nowhere_public_is_described(name, told, at_home):
    with pytest.raises(DatasetError, match=told):
        load(name, cache_dir=at_home)
    assert not list(at_home.iterdir())


def test_folder_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "set").write_text("no folder")
    with pytest.raises(DatasetError, match=re.escape(f"{tmp_path / 'set'} cannot be written to")):
        provide(tmp_path / "set", [File("file", SHA256, "http://127.0.0.1:1/file")], "")
