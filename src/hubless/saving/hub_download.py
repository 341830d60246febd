"""Models at addresses such as hf://user/model@revision: two files of a repository of the Hugging Face Hub.

The token is that of the environment or of `hf auth login`; huggingface_hub sends it, and it is never an
argument here. What is downloaded is untrusted: two files by their names, of bounded size, which are then
checked as those of any model folder.
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..support.imports import need
from ..support.text import reason
from ..support.version import __version__

ADDRESS = re.compile(r"hf:/{1,2}([\w-][\w.-]*/[\w-][\w.-]*)(?:@([\w][\w./-]*))?", re.ASCII)
COMMIT = re.compile(r"[0-9a-f]{40}")
ETAG = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")  # SHA-1 of a file in git, SHA-256 of a large one


def fetch(address: str, limits: Mapping[str, int]) -> dict[str, Path]:
    """Return where files of a repository are on this machine: downloaded, or from the cache of the Hub.

    Parameters
    ----------
    address : str, hf://user/model, or with a branch, tag or commit after @
    limits : the largest size of each file, by its name; a larger one is refused before it is downloaded
    """
    found = ADDRESS.fullmatch(address)
    if found is None or ".." in address:
        raise ValueError(
            f"{address} is not an address of a model on the Hub: expected hf://user/model, or with a branch, "
            "tag or commit, hf://user/model@v1."
        )
    hub, (repo_id, revision) = hub_client(), found.groups()
    return asked(lambda: _fetched(hub, address, repo_id, revision, limits), address)


def _fetched(
    hub: Any, address: str, repo_id: str, revision: str | None, limits: Mapping[str, int]
) -> dict[str, Path]:
    """Return the files, all of one commit."""
    online, commits, paths = not _constants().HF_HUB_OFFLINE, set(), {}
    for name, most in limits.items():
        if online and (metadata := _metadata(hub, repo_id, name, revision)) is not None:
            commits.add(_checked(metadata, address, name, most))
        else:
            online = False
        path = hub.hf_hub_download(
            repo_id,
            name,
            revision=revision,
            endpoint=endpoint(),
            etag_timeout=_constants().HF_HUB_ETAG_TIMEOUT,
            local_files_only=not online,
            library_name="hubless",
            library_version=__version__,
            tqdm_class=_bounded(address, name, most),
        )
        paths[name] = Path(os.path.realpath(path))  # the cache has links to where files are
    if len(commits) > 1:
        raise ValueError(f"{address} changed while it was downloaded. Load it again.")
    return paths


def _metadata(hub: Any, repo_id: str, name: str, revision: str | None) -> Any:
    """Return what the Hub says of a file; None where it cannot be reached, as the cache may have the file."""
    url = hub.hf_hub_url(repo_id, name, revision=revision, endpoint=endpoint())
    try:
        return hub.get_hf_file_metadata(url, timeout=_constants().HF_HUB_ETAG_TIMEOUT)
    except Exception as error:
        if getattr(error, "response", None) is not None:
            raise
        return None


def _checked(metadata: Any, address: str, name: str, most: int) -> str:
    """Return the commit of a file; ValueError where it is too large, or what the server says is no answer."""
    if metadata.size is None or metadata.size > most:
        size = "an unknown number of" if metadata.size is None else f"{metadata.size:,}"
        raise ValueError(f"{name} of {address} has {size} bytes; at most {most:,} are downloaded.")
    commit, etag = str(metadata.commit_hash), str(metadata.etag)
    if COMMIT.fullmatch(commit) is None or ETAG.fullmatch(etag) is None:
        raise ValueError(f"the answer of the server for {name} of {address} names no commit and no hash.")
    return commit


def _bounded(address: str, name: str, most: int) -> Any:
    """Return a progress bar that ends a download which is larger than announced."""

    progress: Any = need("huggingface_hub.utils", "hub").tqdm

    class Bounded(progress):
        received: float = 0

        def update(self, n: float | None = 1) -> bool | None:
            self.received += n or 0
            if self.received > most:
                raise ValueError(f"{name} of {address} is larger than {most:,} bytes; the rest is not read.")
            return super().update(n)

    return Bounded


# --- the client of the Hub ----------------------------------------------------------------------------------


def hub_client() -> Any:
    """Return the package huggingface_hub."""
    return need("huggingface_hub", "hub")


def _constants() -> Any:
    return need("huggingface_hub.constants", "hub")


def endpoint() -> str | None:
    """Return the address of the Hub, where it is not the usual one."""
    return os.environ.get("HF_ENDPOINT")  # as it is now: huggingface_hub reads it once, when it is imported


def asked(ask: Callable[[], Any], address: str) -> Any:
    """Return what the Hub answers; OSError says in plain words why it does not."""
    try:
        return ask()
    except ValueError:
        raise
    except Exception as error:
        raise _in_words(error, address) from error


def _in_words(error: Exception, address: str) -> OSError:
    """Return an error that says what to do."""
    errors = need("huggingface_hub.errors", "hub")
    login = "log in with `hf auth login`, or set HF_TOKEN"
    if isinstance(error, errors.GatedRepoError):
        return PermissionError(
            f"{address}: its owner gives access on request. Ask on its page, then {login}."
        )
    if isinstance(error, errors.RevisionNotFoundError):
        return FileNotFoundError(f"{address}: the repository has no such branch, tag or commit.")
    if isinstance(error, errors.RepositoryNotFoundError):
        return FileNotFoundError(
            f"{address} is not on the Hub, or it is private: check the name, or {login}."
        )
    if isinstance(error, errors.LocalEntryNotFoundError):
        return FileNotFoundError(
            f"{address}: the Hub cannot be reached (or HF_HUB_OFFLINE is set), and there is no earlier "
            "download. Try again with a connection."
        )
    if isinstance(error, errors.EntryNotFoundError):
        return FileNotFoundError(
            f"{address} is not a model that hubless.push_to_hub uploaded: a file is missing."
        )
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status in (401, 403):
        return PermissionError(f"{address}: the Hub refuses this ({status}). Check your rights, and {login}.")
    if status is not None:
        return OSError(f"{address}: the Hub answered with an error ({status}). Try again later.")
    return OSError(f"{address}: the Hub could not be asked: {reason(error)}. Try again.")
