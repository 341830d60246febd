"""Export a fitted model to other programs: one matrix, one offset, and lengths of 1 where it needs them.

Whatever is exported moves STORED vectors. A moved query would search in the wrong place. So no form is part
of the search: move the vectors to be added, then add them. Do not use `faiss.IndexPreTransform`: it moves the
queries too.
"""

import os
from pathlib import Path

from ..repair.index_items import Model, as_repair
from ..repair.repair import Repair
from ..support.outputs import check_output
from ..support.version import __version__
from ..support.writing import new_folder
from .affine import WARNING, affine
from .forms import WRITERS


def export(model: Model, form: str, path: str | os.PathLike[str]) -> list[Path]:
    """Write a model as a folder for another program, and return the files in it.

    Parameters
    ----------
    model : folder of a saved model, Repair or fitted mover
        One whose map is affine: MoveLabeled, Scale, Stay, or a Chain of those, without steps of single items;
        a chain may begin and end with Unit.
    form : "faiss", "numpy", "onnx" or "sentence-transformers"
        "faiss" has a `VectorTransform` per step, numbered .vt files, to `apply` to vectors that are added,
        never for an `IndexPreTransform`, which moves the queries too. "onnx" has model.onnx, from "vectors"
        to "moved". "sentence-transformers" has modules to append for documents. "numpy" has move.py.
    path : path
        A new folder, which is written whole or not at all. Its README.md says how to use it.
    """
    if form not in WRITERS:
        raise ValueError(f"form must be one of {', '.join(WRITERS)}; got {form!r}.")
    check_output(path)
    repair = as_repair(model)
    affine_map = affine(repair)
    with new_folder(Path(os.path.expanduser(path)).absolute()) as part:
        use = WRITERS[form](affine_map, part)
        (part / "README.md").write_text(_card(repair, form, affine_map.steps, use), encoding="utf-8")
        names = sorted(file.relative_to(part) for file in part.rglob("*") if file.is_file())
    return [Path(os.path.expanduser(path)) / name for name in names]


def _card(repair: Repair, form: str, steps: list[str], use: str) -> str:
    """Return README.md: what it is, and how to use it."""
    note = "" if repair.query_note is None else f"\n{repair.query_note}\n"
    return f"""# Moves vectors of {repair.dimension} columns, for an index by {repair.metric}

**{WARNING}** Move what you add to the index: what is in it was moved by
`hubless apply`, and nothing is moved twice.
{note}
{use}
Written by hubless {__version__} as "{form}", of the model {repair.hash}. Its steps: {", ".join(steps)}.
"""
