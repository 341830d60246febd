"""Files of data sets: found, downloaded and checked; and the folder for what is computed from them."""

import hashlib
import os
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from http.client import HTTPException
from pathlib import Path
from typing import IO, NamedTuple
from urllib.error import HTTPError
from urllib.request import Request, urlopen
from uuid import uuid4

import numpy as np
from tqdm import tqdm

Folder = str | os.PathLike[str] | None

CHUNK = 1 << 20
TIMEOUT = 30  # seconds of silence


class DatasetError(OSError):
    """A file of a data set is missing or damaged, or cannot be downloaded."""


class File(NamedTuple):
    """A file and where it is public."""

    name: str
    sha256: str
    url: str | None = None  # None: it was computed and is nowhere to download
    member: str | None = None  # the path in the tar.gz at `url`, where that is an archive


def cache_folder(cache_dir: Folder = None) -> Path:
    """The folder for what is computed: the argument, else $HUBLESS_CACHE, else ~/.cache/hubless."""
    return Path(cache_dir or os.environ.get("HUBLESS_CACHE") or "~/.cache/hubless").expanduser()


def data_folder(data_dir: Folder = None, cache_dir: Folder = None) -> Path:
    """The folder of the data sets: the argument, else $HUBLESS_DATA, else `data` in the cache folder."""
    given = data_dir or os.environ.get("HUBLESS_DATA")
    return Path(given).expanduser() if given else cache_folder(cache_dir) / "data"


def provide(folder: Path, files: Sequence[File], about: str) -> list[Path]:
    """Paths of the files in `folder`, each with the right checksum; missing ones are downloaded.

    `about` tells the reader of an error what the files are and their public page.
    """
    missing = [file for file in files if not (folder / file.name).is_file()]
    for file in missing:
        if file.url is None:
            raise DatasetError(
                f"{folder / file.name} is not there and cannot be downloaded: it belongs to {about}. "
                + _by_hand(folder, [file])
            )
    if missing:
        _check_writable(folder, missing)
    for url in dict.fromkeys(file.url for file in missing if file.url):
        _download(url, [file for file in missing if file.url == url], folder)
    for file in files:
        _check_stored(folder / file.name, file)
    return [folder / file.name for file in files]


def _by_hand(folder: Path, files: Sequence[File]) -> str:
    names = " and ".join(file.name for file in files)
    return (
        f"Put {names} into {folder}, or set HUBLESS_DATA to a folder in which {folder.name}/ has "
        f"{'it' if len(files) == 1 else 'them'}."
    )


def _check_writable(folder: Path, missing: Sequence[File]) -> None:
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        raise DatasetError(
            f"{folder / missing[0].name} is not there, and {folder} cannot be written to, so nothing can be "
            f"downloaded into it. It is public at {missing[0].url}. " + _by_hand(folder, missing)
        )


def _check_stored(path: Path, file: File) -> None:
    with path.open("rb") as stored:
        got = hashlib.file_digest(stored, "sha256").hexdigest()
    if got != file.sha256:
        again = "have it downloaded again" if file.url else "make room for the right one"
        raise DatasetError(
            f"{path} is damaged or another version: its sha256 is {got}, expected {file.sha256}. "
            f"Delete it to {again}, or set HUBLESS_DATA to a folder with the right file."
        )


def _download(url: str, files: Sequence[File], folder: Path) -> None:
    """One transfer, from which all `files` are stored."""
    try:
        with urlopen(Request(url, headers={"User-Agent": "hubless"}), timeout=TIMEOUT) as response:
            size = int(response.headers.get("Content-Length") or 0) or None
            bar = {"desc": url.rsplit("/", 1)[-1], "total": size, "disable": None}  # None: on a terminal only
            with tqdm.wrapattr(response, "read", **bar) as stream:
                if files[0].member is None:
                    _store(stream, size, files[0], folder)
                else:
                    _store_members(stream, files, folder)
    except DatasetError:
        raise
    except (OSError, HTTPException, EOFError, tarfile.TarError, zlib.error) as error:
        if isinstance(error, HTTPError):
            error.close()
        raise DatasetError(f"{url} cannot be downloaded ({error}). {_by_hand(folder, files)}") from error


def _store(stream: IO[bytes], size: int | None, file: File, folder: Path) -> None:
    digest, count = hashlib.sha256(), 0
    with replacing(folder / file.name) as target:
        while chunk := stream.read(CHUNK):
            target.write(chunk)
            digest.update(chunk)
            count += len(chunk)
        if size is not None and count < size:
            raise EOFError(f"the connection ended after {count} of {size} bytes")
        if digest.hexdigest() != file.sha256:
            raise DatasetError(
                f"{file.url} gives another {file.name}: its sha256 is {digest.hexdigest()}, expected "
                f"{file.sha256}. Nothing was kept; try again. {_by_hand(folder, [file])}"
            )


def _store_members(stream: IO[bytes], files: Sequence[File], folder: Path) -> None:
    """Files of an archive as it streams by; names in the archive never become paths."""
    wanted = {file.member: file for file in files}
    with tarfile.open(fileobj=stream, mode="r|gz") as archive:
        for entry in archive:
            name = entry.name.removeprefix("./")
            content = archive.extractfile(entry) if name in wanted and entry.isfile() else None
            if content is not None:
                _store(content, entry.size, wanted.pop(name), folder)
            if not wanted:
                return
    raise DatasetError(f"{files[0].url} has no {sorted(map(str, wanted))}. {_by_hand(folder, files)}")


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file to write that becomes `path` at the end, whole, or is removed; a kill leaves a hidden part."""
    part = path.with_name(f".{path.name}.{uuid4().hex[:8]}.part")
    try:
        with part.open("xb") as file:
            yield file
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def save_arrays(path: Path, **arrays: np.ndarray) -> None:
    """Arrays kept for `load_arrays`; where nothing can be written, nothing is kept."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]  # its stub takes `allow_pickle` for an array


def load_arrays(path: Path, names: Sequence[str]) -> list[np.ndarray] | None:
    """Arrays kept by `save_arrays`; None where the file is not there or damaged."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return [arrays[name] for name in names]
    except (OSError, EOFError, KeyError, RuntimeError, TypeError, ValueError, zipfile.BadZipFile, zlib.error):
        return None  # NotImplementedError of a strange compression is a RuntimeError


SHA256 = {
    "apy/apascal_test.txt": "e1d4673eb3094bd2bb1bbf0420090b5670a515c01bf93f35201055657e926ff3",
    "apy/apascal_train.txt": "afcf1ae97fd885a0b08f62a7ac1942a860af31a1b92ca3081804cf5c442c2262",
    "apy/ayahoo_test.txt": "a3e41250a12cbb5e68d3ff7ee13d614e83f7443b18cb5573c151f326e60602e2",
    "awa/awa_bow_pca300.npy": "07ee279d8b9d66fd76b4722f016f4c23d25a1be13b8b1a78ba3ac33e3fb15dd1",
    "awa/classes.txt": "1d8812ecdda864f30312598d74a1aa9de16bc48457271d898016db43aea922e3",
    "awa/labels.npy": "65136a55e3154f22a9fd6f6edbac246170e38fdb5949d5743ca7c67202c805ea",
    "balance-scale/balance-scale.data": "5611187ef7345d807aa8ae22615945ade52a190537c0b1434bd44c3e877c5bb4",
    "banking77/test.csv": "d12d6e3bc4c3103966ae786dc435913c0c563dfa328f5a3646d0e62cfeeb474d",
    "banking77/test_minilm_384.npy": "ab6a4b103281769b82d59e7d222b9adbe9947ec0c7427ee42a788c9d8d7237a8",
    "banking77/train.csv": "b06e26ac675513959a63135f11b94ea7786ed02da65db93a5650d8838cbc664b",
    "banking77/train_minilm_384.npy": "c04c69395df3354ae346db9056205860b4d430cd96f6488ea5023f5c1d1f1290",
    "cub/cub_classes.txt": "11997b8d4bf6ffb89f9b36124377e62f0296aa718654cc3d97049f2afc61dc44",
    "cub/cub_effnetlite0_1280.npy": "623e64c9780babeb1bd93281eb72b47bee3c8daae699db52b28b5c679a0446b7",
    "cub/cub_labels.npy": "5b87ebea28950db0dbc166cf38b543abbc6e9cbca526bb32b0d0c6436708d75c",
    "glass/glass.csv": "1b7039aa2d617c1827e790b55d45ac138dce06b5f2a3fb6c25f2f135b59ad2d0",
    "ionosphere/ionosphere.csv": "fd6dd7864b55d56dac0a1e6e24af9ccc35bf2555ac79af8ab9f3d1daa065ab83",
    "iris/iris.csv": "f5d0c11e5c78a69a20dbb80baf2b24703f59a6687595752abb397d23732647c5",
    "news/20Newsgroups.mat": "dc1418f7291a4c09a4ab3b6a7d31c129d6edad7643ac5ec6bdaf67180a000ae8",
    "rcv/rcv1_4topic.mat": "182c5ce9e788e9db377be890eb9c8b9491ba1f617badda9ecb7070d1d4f10541",
    "reuters/Reuters21578.mat": "2e442026efc64cfbcd3a531b4bc99b21eed6c5463276dbfa69d096f91dd5c245",
    "sun/attributeLabels_continuous.mat": "e5a9308fc05e9f9779d54ff6c0d5b2b28091d383213c54c952b463b21d171ee2",
    "sun/images.mat": "137e24d1093d1613ab0c416250cf068d13a819a45b6c019ed6c7964ca7c97d09",
    "tdt/TDT2_all.mat": "fc7c23e270159fc98b2e1fc05bbcd9f9fbb62d6d4084f2cb9f170e064cc70612",
    "wine/wine.csv": "e9c16b779f9194945067f65118da6afb317ef60c6515879c50124dc4f6cdd756",
}


def _at(base: str, *paths: str) -> tuple[File, ...]:
    return tuple(file._replace(url=base + file.name) for file in _computed(*paths))


def _in(archive: str, folder: str, *paths: str) -> tuple[File, ...]:
    return tuple(file._replace(url=archive, member=folder + file.name) for file in _computed(*paths))


def _computed(*paths: str) -> tuple[File, ...]:
    return tuple(File(path.split("/")[1], SHA256[path]) for path in paths)


UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/"
UCI_COPY = "https://raw.githubusercontent.com/jbrownlee/Datasets/master/"
CAI = "http://www.cad.zju.edu.cn/home/dengcai/Data/"
SUN = "https://cs.brown.edu/people/gmpatter/Attributes/SUNAttributeDB.tar.gz"
APY = "http://vision.cs.uiuc.edu/attributes/attribute_data.tar.gz"
BANKING = "https://raw.githubusercontent.com/PolyAI-LDN/task-specific-datasets/master/banking_data/"

FILES = {
    "ionosphere": _at(UCI_COPY, "ionosphere/ionosphere.csv"),
    "balance-scale": _at(UCI + "balance-scale/", "balance-scale/balance-scale.data"),
    "iris": _at(UCI_COPY, "iris/iris.csv"),
    "wine": _at(UCI_COPY, "wine/wine.csv"),
    "glass": _at(UCI_COPY, "glass/glass.csv"),
    "rcv": _computed("rcv/rcv1_4topic.mat"),
    "news": _at(CAI + "20Newsgroups/", "news/20Newsgroups.mat"),
    "reuters": _at(CAI + "Reuters21578/", "reuters/Reuters21578.mat"),
    "tdt": _at(CAI + "TDT2/", "tdt/TDT2_all.mat"),
    "awa": _computed("awa/awa_bow_pca300.npy", "awa/labels.npy", "awa/classes.txt"),
    "cub": _computed("cub/cub_effnetlite0_1280.npy", "cub/cub_labels.npy", "cub/cub_classes.txt"),
    "sun": _in(SUN, "SUNAttributeDB/", "sun/attributeLabels_continuous.mat", "sun/images.mat"),
    "apy": _in(
        APY, "attribute_data/", "apy/apascal_train.txt", "apy/apascal_test.txt", "apy/ayahoo_test.txt"
    ),
    "banking77": _at(BANKING, "banking77/train.csv", "banking77/test.csv")
    + _computed("banking77/train_minilm_384.npy", "banking77/test_minilm_384.npy"),
}
