"""Files of data sets: downloads from a server on this machine, checksums, and missing files."""

import io
import re
import tarfile
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from hubless.paper.datasets import load
from hubless.paper.download import FILES, DatasetError, File, cache_folder, data_folder, provide
from hubless.support.writing import new_file
from tests.paper.data_files import cut, digest


def test_folders(at_home, monkeypatch):
    assert cache_folder() == at_home / ".cache" / "hubless"
    assert data_folder(None, "here").as_posix() == "here/data"
    monkeypatch.setenv("HUBLESS_CACHE", "~/kept")
    assert cache_folder() == at_home / "kept"
    assert data_folder() == at_home / "kept" / "data"
    monkeypatch.setenv("HUBLESS_DATA", "~/sets")
    assert data_folder(None, "here") == at_home / "sets"
    assert data_folder("~/mine") == at_home / "mine"


@pytest.fixture
def server(monkeypatch):
    """Serves `server.content`, half of it where a path ends in -half, noting paths in `server.requests`."""
    monkeypatch.setenv("no_proxy", "*")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            server.requests.append(self.path)
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
    server.content, server.requests = {}, []
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
    monkeypatch.setitem(FILES, "iris", (File("iris.csv", digest(table), server.base + "/iris.csv"),))
    for _ in range(2):
        data = load("iris")
        np.testing.assert_array_equal(data.X, [[i + 0.5, i % 3] for i in range(20)])
        assert [data.classes[i] for i in data.y] == ["a", "b"] * 10
    assert server.requests == ["/iris.csv"]
    assert (at_home / ".cache/hubless/data/iris/iris.csv").read_bytes() == table
    own_folder = at_home / "mine"
    load("iris", data_dir=own_folder)
    assert [path.name for path in (own_folder / "iris").iterdir()] == ["iris.csv"]
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
    assert len(server.requests) == 1


CONTENT = b"0123456789" * 100_000
SHA256 = digest(CONTENT)

# path asked for, member of an archive, what the error says beside the address
FAILURES = {
    "wrong checksum": ("/other", None, f"its sha256 is {digest(CONTENT[1:])}, expected {SHA256}"),
    "half of a file": ("/file-half", None, "the connection ended after 500000 of 1000000 bytes"),
    "not found": ("/nowhere", None, "cannot be downloaded (HTTP Error 404: Not Found)"),
    "half of an archive": ("/tar-half", "d/file", "cannot be downloaded"),
    "no archive": ("/file", "d/file", "cannot be downloaded"),
    "no such member": ("/tar", "d/none", "it has no file 'd/none'"),
    "member is a link": ("/tar", "d/link", "it has no file 'd/link'"),
    "member with wrong checksum": ("/tar", "d/other", f"expected {SHA256}"),
}


@pytest.mark.parametrize("case", FAILURES)
def test_failed_download_leaves_nothing(case, server, tmp_path):
    path, member, message = FAILURES[case]
    members = {"d/other": CONTENT[1:], "d/file": np.random.default_rng(0).bytes(100_000)}
    server.content |= {"/file": CONTENT, "/other": CONTENT[1:], "/tar": archive(members, ["d/link"])}
    with pytest.raises(DatasetError) as caught:
        provide(tmp_path / "set", [File("file", SHA256, server.base + path, member)], "")
    assert server.base + path in str(caught.value)
    assert message in str(caught.value)
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
        with new_file(path) as file:
            file.write(b"ne")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_damaged_file_says_how_to_repair(tmp_path):
    (tmp_path / "file").write_bytes(b"other")
    message = rf"sha256 is {digest(b'other')}, expected {SHA256}. {{}}, or set HUBLESS_DATA"
    for url, repair in (("http://x", "Delete it to have it downloaded again"), (None, "Replace it")):
        with pytest.raises(DatasetError, match=message.format(repair)):
            provide(tmp_path, [File("file", SHA256, url)], "")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("rcv", "rcv1_4topic.mat does not exist .*RCV1-v2, see scikit-learn's fetch_rcv1"),
        ("cub", "cub_effnetlite0_1280.npy does not exist .*CUB-200-2011, https://www.vision.caltech"),
        ("awa", "awa_bow_pca300.npy does not exist .*Animals with Attributes, https://cvml"),
        ("banking77", "train_minilm_384.npy does not exist .*computed from https://github.com/PolyAI-LDN"),
    ],
)
def test_file_that_is_nowhere_public_is_described(name, message, at_home):
    with pytest.raises(DatasetError, match=message):
        load(name, cache_dir=at_home)
    assert not list(at_home.iterdir())


def test_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "set").write_text("no folder")
    with pytest.raises(DatasetError, match=re.escape(f"{tmp_path / 'set'} cannot be written to")):
        provide(tmp_path / "set", [File("file", SHA256, "http://127.0.0.1:1/file")], "")
