"""The nearest known name: of columns, tables, models and files."""

import numpy as np
import pytest

from hubless.support.nearest import did_you_mean, files_near, nearest


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("categroy", "category"), ("Category", "category"), ("titel", "title"), ("xyzzy", None), ("", None)],
)
def test_nearest(typed, meant):
    assert nearest(typed, ["title", "category", "id"]) == meant
    assert did_you_mean(typed, ["title", "category"]) == (f" Did you mean {meant!r}?" if meant else "")


def test_files_near(tmp_path):
    for name in ("vectors.npy", "labels.npy", ".vectors.npx", "notes.txt"):
        (tmp_path / name).touch()
    assert files_near(tmp_path / "vector.npy") == f" There is {tmp_path / 'vectors.npy'}."
    assert files_near(tmp_path / "vectors.npz") == f" There is {tmp_path / 'vectors.npy'}."
    both = f" There is {tmp_path / 'labels.npy'} and {tmp_path / 'vectors.npy'}."
    assert files_near(tmp_path / "x.npy") == both
    assert files_near(tmp_path / "x.csv") == ""
    assert files_near(tmp_path / "missing" / "vectors.npy") == ""
    assert files_near("a\0b") == ""


def test_errors_name_what_is_near(refused, shop, model, tmp_path, monkeypatch):
    monkeypatch.chdir(shop.folder)
    np.save("vectors.npy", shop.X)
    assert "There is vectors.npy." in refused("doctor", "vectros.npy").replace(f"{shop.folder}/", "")
    assert "items.csv" in refused("doctor", shop.index, "--items", "item.csv")
    assert f"There is {model}" in refused("explain", f"{model}s")
    fit = ["fit", shop.index, "--items", shop.items, "--labels", "categroy", "-o", tmp_path / "new"]
    said = refused(*fit)
    assert f"index.faiss with {shop.items} has no column 'categroy'" in said
    assert "Did you mean 'category'?" in said
