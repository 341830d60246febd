"""Models on the Hugging Face Hub: the real client against a stand-in server on this machine."""

import os
import time
from threading import Event

import numpy as np
import pytest
import yaml
from huggingface_hub import ModelCard, constants

import hubless
from hubless import cli
from hubless.movers import Shrink
from hubless.repair.repair import Repair
from hubless.saving.folder import ARRAYS, CARD, CONFIG
from tests.saving.hub_server import TOKEN, Hub

pytestmark = pytest.mark.services  # needs huggingface_hub

FIGURES = [{"measure": "nDCG@10, held out", "part": "all", "n": 9, "before": 0.5, "after": 0.625}]


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """The server, as the environment of a user names it; the cache is empty, and nobody is logged in."""
    server = Hub()
    for name, value in {
        "HF_HUB_CACHE": str(tmp_path / "cache"),
        "HF_TOKEN_PATH": str(tmp_path / "no"),
    }.items():
        monkeypatch.setattr(constants, name, value)
    for name in ("HF_HUB_DOWNLOAD_TIMEOUT", "HF_HUB_ETAG_TIMEOUT"):
        monkeypatch.setattr(constants, name, 0.5)
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)  # between the retries of the client
    yield server
    server.close()


@pytest.fixture
def model(blobs):
    X, y, _ = blobs
    return Repair(
        Shrink(0.5).fit(X, y), "cosine", "kind", facts={"figures": FIGURES, "data": {"source": "a: b"}}
    )


@pytest.fixture
def pushed(hub, model, tmp_path):
    """The bytes of a saved model, in the repository user/model."""
    hubless.save(model, tmp_path / "saved")
    files = {name: (tmp_path / "saved" / name).read_bytes() for name in (CONFIG, ARRAYS, CARD)}
    hub.commit("user/model", files)
    return files


# --- there and back -----------------------------------------------------------------------------------------


def test_a_pushed_model_is_loaded_bit_for_bit(hub, model, blobs, monkeypatch, capfd):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    address = hubless.push_to_hub(model, "user/model", private=True, license="bsd-3-clause", tag="v1")
    assert address == f"hf://user/model@{hub.refs['user/model', 'v1']}"
    assert hub.created["user/model"]["visibility" if "visibility" in hub.created["user/model"] else "private"]
    monkeypatch.delenv("HF_TOKEN")
    X, y, _ = blobs
    for name in ("hf://user/model", "hf://user/model@v1", "hf://user/model@main", address):
        np.testing.assert_array_equal(hubless.load(name).move(X, labels=y), model.move(X, labels=y))
    files = hub.files("user/model", "main")[1]
    assert {*files} == {CONFIG, ARRAYS, CARD}
    assert not any(TOKEN.encode() in content for content in files.values())
    assert TOKEN not in "".join(capfd.readouterr())


def test_the_card_says_what_the_hub_reads(hub, model, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    hubless.push_to_hub(model, "user/model", license="mit")
    text = hub.files("user/model", "main")[1][CARD].decode()
    card = ModelCard(text)
    assert (card.data.library_name, card.data.license) == ("hubless", "mit")
    assert {"hubless", "hubness", "Repair"} <= {*card.data.tags}
    results = {result.metric_name: result for result in card.data.eval_results}
    assert {name: result.metric_value for name, result in results.items()} == {
        "nDCG@10, held out (moved items)": 0.625,
        "nDCG@10, held out (items as they are)": 0.5,
    }
    assert {result.metric_type for result in results.values()} == {"ndcg_at_10"}
    assert 'hubless.load("hf://user/model")' in card.text
    assert yaml.safe_load(text.split("---")[1])["model-index"][0]["name"] == "user/model"


def test_branches_are_made_and_the_main_one_is_unchanged(hub, model, pushed, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    before = hub.refs["user/model", "main"]
    hubless.push_to_hub(
        Shrink(0.25).fit([[0.0], [4.0], [9.0]], ["a", "a", "b"]), "user/model", revision="try"
    )
    assert hub.refs["user/model", "main"] == before
    assert hubless.load("hf://user/model@try").step == 0.25
    assert hubless.load("hf://user/model").metric == "cosine"


def test_only_the_two_files_that_are_read_are_downloaded_and_once(hub, pushed):
    hub.commit("user/model", {"evil.py": b"raise SystemExit", "../up": b"x"})
    hubless.load("hf://user/model")
    hubless.load("hf://user/model")
    read = [path.rpartition("/")[2] for method, path, _ in hub.asked if method == "GET"]
    assert sorted(read) == [CONFIG, ARRAYS]


def test_every_verb_takes_an_address(hub, pushed, run, words, tmp_path):
    assert "Shrink" in str(run("explain", "hf://user/model"))
    assert "Shrink" in words("explain", "hf://user/model")
    np.save(tmp_path / "v.npy", np.eye(6, 4, dtype=np.float32))
    assert cli.main(["apply", "hf://user/nobody", str(tmp_path / "v.npy"), "-o", "moved.npy"]) == 1


# --- what goes wrong ----------------------------------------------------------------------------------------


def test_without_rights_and_without_names(hub, model, pushed, monkeypatch, capfd):
    for name, kind, why in (
        ("hf://user/nobody", FileNotFoundError, "not on the Hub, or it is private"),
        ("hf://user/model@v9", FileNotFoundError, "no such branch, tag or commit"),
        ("hf://user", ValueError, "expected hf://user/model"),
        ("hf://user/../../etc", ValueError, "expected hf://user/model"),
        ("hf://user/model@../x", ValueError, "expected hf://user/model"),
        ("hf://user/model/tree/main", ValueError, "expected hf://user/model"),
    ):
        with pytest.raises(kind, match=why):
            hubless.load(name)
    hub.commit("user/empty", {CARD: b"nothing"})
    with pytest.raises(FileNotFoundError, match="a file is missing"):
        hubless.load("hf://user/empty")
    for token in (None, "hf_wrongwrongwrongwrong"):
        monkeypatch.setenv("HF_TOKEN", token) if token else monkeypatch.delenv("HF_TOKEN", raising=False)
        with pytest.raises(OSError, match="hf auth login") as error:
            hubless.push_to_hub(model, "user/model")
        assert "hf_wrong" not in str(error.value)
    assert "hf_wrong" not in "".join(capfd.readouterr())
    for wrong in ("model", "user/model@v1", "a/b/c", "", None, "user/.."):
        with pytest.raises(ValueError, match="such as"):
            hubless.push_to_hub(model, wrong)


@pytest.mark.parametrize("status", [401, 403, 404, 500, 503])
def test_errors_of_the_server_are_in_plain_words(hub, pushed, status):
    hub.trouble = lambda handler: handler.answer(status, b"<html>\x1b[31m</html>") or True
    with pytest.raises(OSError, match=r"hf://user/model") as error:
        hubless.load("hf://user/model")
    assert str(error.value).isprintable()
    assert "Traceback" not in str(error.value)


def test_offline_the_cache_is_used(hub, pushed, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(FileNotFoundError, match="no earlier download"):
        hubless.load("hf://user/model")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    hubless.load("hf://user/model")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    n = len(hub.asked)
    assert hubless.load("hf://user/model").metric == "cosine"
    assert len(hub.asked) == n
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # nobody listens
    assert hubless.load("hf://user/model").metric == "cosine"


def heads(**headers):
    """Answer HEAD with other headers."""

    def trouble(handler):
        if handler.command != "HEAD":
            return False
        oid = handler.hub.refs["user/model", "main"]
        handler.answer(200, **{"ETag": '"' + "a" * 64 + '"', "X_Repo_Commit": oid, **headers})
        return True

    return trouble


def longer(handler):
    """Send more than was announced, in chunks, without end as far as the client knows."""
    if handler.command != "GET":
        return heads(Content_Length="100")(handler)
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    try:
        for _ in range(300):
            handler.wfile.write(b"%x\r\n" % (1 << 20) + bytes(1 << 20) + b"\r\n")
    except OSError:
        pass  # the client went away
    handler.close_connection = True
    return True


def truncated(handler):
    if handler.command != "GET":
        return False
    handler.send_response(200)
    handler.send_header("Content-Length", "5000000")
    handler.end_headers()
    handler.wfile.write(b"{")
    handler.close_connection = True
    return True


def hanging(handler):
    Event().wait(3)
    handler.close_connection = True
    return True


@pytest.mark.parametrize(
    ("trouble", "kind", "why"),
    [
        (heads(Content_Length=str(1 << 40)), ValueError, "at most 67,108,864 are downloaded"),
        (heads(X_Linked_Size=str(1 << 40)), ValueError, "at most"),
        (heads(ETag='"../../../../etc/passwd"'), ValueError, "names no commit and no hash"),
        (heads(X_Linked_ETag='"../up"'), ValueError, "names no commit and no hash"),
        (heads(X_Repo_Commit="../../up"), ValueError, "names no commit and no hash"),
        (longer, (OSError, ValueError), "larger than|size"),
        (truncated, OSError, "hf://user/model"),
        (hanging, OSError, "hf://user/model"),
    ],
    ids=["large", "large link", "etag", "linked etag", "commit", "longer", "truncated", "hanging"],
)
def test_hostile_answers_are_refused_and_leave_nothing(hub, pushed, tmp_path, trouble, kind, why):
    hub.trouble = trouble
    with pytest.raises(kind, match=why):
        hubless.load("hf://user/model")
    left = [path for path in tmp_path.rglob("*") if path.is_file() and "saved" not in path.parts]
    assert sum(path.stat().st_size for path in left) < 80 << 20  # the bound of config.json, and a little
    assert not [path for path in left if tmp_path / "cache" not in path.parents]
    hub.trouble = lambda handler: False
    assert hubless.load("hf://user/model").metric == "cosine"  # what is left behind does no harm


def test_what_arrives_is_checked_like_any_folder(hub, pushed):
    arrays = bytearray(pushed[ARRAYS])
    arrays[-1] ^= 1
    for files, why in (
        ({ARRAYS: bytes(arrays)}, "sha256"),
        ({CONFIG: b"{}"}, "not one of a saved model"),
        ({CONFIG: b"[" * 100_000}, "cannot be loaded"),
        ({ARRAYS: b""}, "damaged"),
    ):
        hub.commit("user/model", {**pushed, **files})
        with pytest.raises(ValueError, match=why):
            hubless.load("hf://user/model")
    hub.commit("user/model", pushed)
    with pytest.raises(ValueError, match=r"at most 10 are downloaded"):
        hubless.load("hf://user/model", max_bytes=10)


def test_a_token_goes_to_the_hub_alone(hub, pushed, monkeypatch):
    """Large files are elsewhere: the client is sent there, and its token is not."""
    elsewhere = Hub()
    elsewhere.trouble = lambda handler: handler.answer(200, pushed[handler.path.strip("/")]) or True

    def redirect(handler):
        name = handler.path.rpartition("/")[2]
        size, oid = str(len(pushed[name])), hub.refs["user/model", "main"]
        handler.answer(
            302,
            Location=f"{elsewhere.url.replace('127.0.0.1', 'localhost')}/{name}",
            X_Repo_Commit=oid,
            X_Linked_Size=size,
            X_Linked_ETag='"' + ("b" if name == CONFIG else "c") * 64 + '"',
        )
        return True

    hub.trouble = redirect
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert hubless.load("hf://user/model").metric == "cosine"
    assert {token for _, _, token in hub.asked} == {f"Bearer {TOKEN}"}
    assert {token for _, _, token in elsewhere.asked} == {None}
    assert len(elsewhere.asked) == 2
    elsewhere.close()


def test_without_the_package_the_extra_is_named(model, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "huggingface_hub", None)
    for ask in (lambda: hubless.load("hf://user/model"), lambda: hubless.push_to_hub(model, "user/model")):
        with pytest.raises(ImportError, match=r"hubless\[hub\]"):
            ask()


def test_a_folder_named_like_an_address_can_be_given_as_a_path(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkdir("hf:")
    hubless.save(model, "./hf:/model")
    assert hubless.load("./hf:/model").metric == "cosine"
