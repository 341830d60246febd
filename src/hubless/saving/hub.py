"""`push_to_hub`: a saved model, with a card that the Hugging Face Hub reads, in a repository there."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..support.version import __version__
from .folder import CARD, FILES, save
from .hub_card import hub_card
from .hub_download import ADDRESS, asked, endpoint, hub_client


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

    Examples
    --------
    >>> import hubless
    >>> from hubless.movers import Shrink
    >>> mover = Shrink(0.5).fit([[0.0], [4.0], [9.0]], ["a", "a", "b"])
    >>> hubless.push_to_hub(mover, "https://huggingface.co/user/model")
    Traceback (most recent call last):
    ValueError: repo_id must be a name such as "user/model"; got 'https://huggingface.co/user/model'.
    """
    if not isinstance(repo_id, str) or ADDRESS.fullmatch(f"hf://{repo_id}") is None or "@" in repo_id:
        raise ValueError(f'repo_id must be a name such as "user/model"; got {repo_id!r}.')
    hub = hub_client()
    api = hub.HfApi(endpoint=endpoint(), library_name="hubless", library_version=__version__)
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

        done = asked(upload, f"hf://{repo_id}")
    return f"hf://{repo_id}@{done.oid}"
