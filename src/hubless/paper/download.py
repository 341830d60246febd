"""Files of data sets, as files.txt lists them: find them, download missing ones and check all.

Written by hand: pooch does transfer and checksum as well, but brings three more packages to everybody,
unpacks an archive under the names that are in it, and does not say what to do where a download fails.
"""

import hashlib
import os
import shutil
import tarfile
import zlib
from collections.abc import Sequence
from contextlib import suppress
from http.client import HTTPException
from importlib.resources import files as package_files
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from ..support.progress import step
from ..support.writing import new_file

Folder = str | os.PathLike[str] | None

CHUNK = 1 << 20
TIMEOUT = 30  # seconds of silence


class DatasetError(OSError):
    """A file of a data set is missing or damaged, or cannot be downloaded."""


class File(NamedTuple):
    """A file and where it is public."""

    name: str
    sha256: str
    url: str | None = None  # None: it was computed and cannot be downloaded
    member: str | None = None  # the path in the tar.gz at `url`, where that is an archive


def _listed_files() -> dict[str, tuple[File, ...]]:
    """Read files.txt; the files of a data set are in the order in which its reader takes them."""
    listed: dict[str, tuple[File, ...]] = {}
    for line in package_files(__package__).joinpath("files.txt").read_text().splitlines()[1:]:
        path, *details = line.split()
        dataset, name = path.split("/")
        listed[dataset] = (*listed.get(dataset, ()), File(name, *details))
    return listed


FILES = _listed_files()


def cache_folder(cache_dir: Folder = None) -> Path:
    """Return the folder for what is computed: the argument, else $HUBLESS_CACHE, else ~/.cache/hubless."""
    return Path(cache_dir or os.environ.get("HUBLESS_CACHE") or "~/.cache/hubless").expanduser()


def data_folder(data_dir: Folder = None, cache_dir: Folder = None) -> Path:
    """Return the folder of the data: the argument, else $HUBLESS_DATA, else `data` in the cache folder."""
    given = data_dir or os.environ.get("HUBLESS_DATA")
    return Path(given).expanduser() if given else cache_folder(cache_dir) / "data"


def provide(folder: Path, files: Sequence[File], about: str) -> list[Path]:
    """Return the paths of the files in `folder`, each with the right checksum; download missing ones.

    `about` says in an error what the files are, and their public page.
    """
    missing = [file for file in files if not (folder / file.name).is_file()]
    for file in missing:
        if file.url is None:
            raise DatasetError(
                f"{folder / file.name} does not exist and cannot be downloaded: it belongs to {about}. "
                + _by_hand(folder, [file])
            )
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


def _check_stored(path: Path, file: File) -> None:
    with path.open("rb") as stored:
        sha256 = _sha256(stored)
    if sha256 != file.sha256:
        repair = "Delete it to have it downloaded again" if file.url else "Replace it"
        raise DatasetError(
            f"{path} is damaged or another version: its sha256 is {sha256}, expected {file.sha256}. "
            f"{repair}, or set HUBLESS_DATA to a folder with the right file."
        )


def _sha256(content: Any) -> str:
    return hashlib.file_digest(content, "sha256").hexdigest()


def _download(url: str, files: Sequence[File], folder: Path) -> None:
    """Store all `files` from one transfer."""
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        raise DatasetError(
            f"{folder} cannot be written to, so {url} cannot be downloaded. {_by_hand(folder, files)}"
        )
    try:
        with TemporaryFile(dir=folder) as content:
            _transfer(url, content)
            if files[0].member is None:
                _store(content, files[0], folder)
            else:
                _store_members(content, files, folder)
    except (OSError, HTTPException, EOFError, tarfile.TarError, zlib.error) as error:
        if isinstance(error, HTTPError):
            error.close()
        raise DatasetError(f"{url} cannot be downloaded ({error}). {_by_hand(folder, files)}") from error


def _transfer(url: str, content: IO[bytes]) -> None:
    """Copy what is at an address into an open file."""
    request = Request(url, headers={"User-Agent": "hubless"})
    # the addresses are those of files.txt, and what comes is compared with the SHA-256 there
    with urlopen(request, timeout=TIMEOUT) as response:  # nosec B310
        size = int(response.headers.get("Content-Length") or 0) or None
        with step(f"downloading {url.rsplit('/', 1)[-1]}", size, "B") as downloading:
            while chunk := response.read(CHUNK):
                downloading.update(content.write(chunk))
    if size is not None and content.tell() < size:
        raise EOFError(f"the connection ended after {content.tell()} of {size} bytes")
    content.seek(0)


def _store_members(content: IO[bytes], files: Sequence[File], folder: Path) -> None:
    """Store files of an archive; names in the archive are never used as paths."""
    with tarfile.open(fileobj=content, mode="r:gz") as archive:
        entries = {entry.name.removeprefix("./"): entry for entry in archive if entry.isfile()}
        for file in files:
            entry = entries.get(file.member or "")
            member = archive.extractfile(entry) if entry else None
            if member is None:
                raise OSError(f"it has no file {file.member!r}")
            _store(member, file, folder)


def _store(content: IO[bytes], file: File, folder: Path) -> None:
    """Store a file in one step; nothing where its checksum is wrong."""
    sha256 = _sha256(content)
    if sha256 != file.sha256:
        raise OSError(f"it has another {file.name}: its sha256 is {sha256}, expected {file.sha256}")
    content.seek(0)
    with new_file(folder / file.name) as target:
        shutil.copyfileobj(content, target)
