"""Models on the Hugging Face Hub: `push_to_hub`, and addresses such as hf://user/model@revision for `load`.

The token is that of the environment or of `hf auth login`; huggingface_hub sends it, and it is never an
argument here. What is downloaded is untrusted: two files by their names, of bounded size, which are then
checked as those of any model folder.
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..support.imports import need
from ..support.text import reason
from ..support.version import __version__
from .folder import CARD, FILES, save
from .hub_card import hub_card

ADDRESS = re.compile(r"hf:/{1,2}([\w-][\w.-]*/[\w-][\w.-]*)(?:@([\w][\w./-]*))?", re.ASCII)
COMMIT = re.compile(r"[0-9a-f]{40}")
ETAG = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")  # SHA-1 of a file in git, SHA-256 of a large one


def push_to_hub(
    model: Any,
    repo_id: str,
    *,
    private: bool | None = None,
    license: str | None = None,
    revision: str | None = None,
    tag: str | None = None,
    commit_message: str | None = None,
) -> str:
    """Upload a fitted model to the Hugging Face Hub, where `load("hf://user/model")` finds it.

    It needs `pip install 'hubless[hub]'`, and a token with the right to write: from `hf auth login`, or in
    the environment variable HF_TOKEN. The repository is made where there is none. All that `save` writes is
    uploaded: sums over the vectors that were learned from, names of classes, ids of items and the name of the
    index are in it.

    Parameters
    ----------
    model : a fitted mover, classifier or other estimator of hubless, or a Repair of an index, as for `save`
    repo_id : str
        "user/model".
    private : bool, optional
        Whether a new repository is private; by default as the settings of the user say.
    license : str, optional
        License of the model, as the Hub spells it, such as "bsd-3-clause", for its card.
    revision : str, optional
        Branch to upload to, which is made where there is none; by default "main".
    tag : str, optional
        Tag for this version, such as "v1".
    commit_message : str, optional

    Returns
    -------
    address : str
        hf://user/model@commit, from which `load` gets exactly this version.
    """
    if not isinstance(repo_id, str) or ADDRESS.fullmatch(f"hf://{repo_id}") is None or "@" in repo_id:
        raise ValueError(f'repo_id must be a name such as "user/model"; got {repo_id!r}.')
    hub = _hub()
    api = hub.HfApi(endpoint=_endpoint(), library_name="hubless", library_version=__version__)
    with TemporaryDirectory() as folder:
        save(model, Path(folder, "model"))
        path = Path(folder, "model", CARD)
        path.write_text(hub_card(model, path.read_text("utf-8"), repo_id, license), encoding="utf-8")

        def upload() -> Any:
            api.create_repo(repo_id, private=private, exist_ok=True)
            if revision is not None:
                api.create_branch(repo_id, branch=revision, exist_ok=True)
            # one commit, so that nobody gets the arrays of one version with the config.json of another
            done = api.create_commit(
                repo_id,
                [hub.CommitOperationAdd(name, Path(folder, "model", name)) for name in FILES],
                revision=revision,
                commit_message=commit_message or f"Model saved by hubless {__version__}",
            )
            if tag is not None:
                api.create_tag(repo_id, tag=tag, revision=done.oid)
            return done

        done = _asked(upload, f"hf://{repo_id}")
    return f"hf://{repo_id}@{done.oid}"


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
    hub, (repo_id, revision) = _hub(), found.groups()
    return _asked(lambda: _fetched(hub, address, repo_id, revision, limits), address)


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
            endpoint=_endpoint(),
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
    url = hub.hf_hub_url(repo_id, name, revision=revision, endpoint=_endpoint())
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


def _hub() -> Any:
    return need("huggingface_hub", "hub")


def _constants() -> Any:
    return need("huggingface_hub.constants", "hub")


def _endpoint() -> str | None:
    return os.environ.get("HF_ENDPOINT")  # as it is now: huggingface_hub reads it once, when it is imported


def _asked(ask: Callable[[], Any], address: str) -> Any:
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
