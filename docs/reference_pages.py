"""Write the pages of reference: of Python from the public names, of the command line from the parsers.

`make docs` calls this; what it writes, docs/reference, is not committed.
"""

import argparse
import shutil
from importlib import import_module
from pathlib import Path

from hubless import cli

ROOMS = {  # public modules, and what they are for
    "hubless": "what most programs need",
    "hubless.movers": "ways to move stored objects",
    "hubless.corrections": "ways to correct stored objects for the queries of a log",
    "hubless.repair": "repair an index",
    "hubless.plot": "figures",
    "hubless.baselines": "metric learners that the paper compares with",
    "hubless.calibration": "how far probabilities can be trusted",
}
FORMULAS = ("targets", "moments", "solve", "hubness", "chance", "retrieval", "theory")  # functions on arrays


def write(folder: Path) -> None:
    """Write all pages into a folder that has nothing else."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "python.rst").write_text(_python_page(), encoding="utf-8")
    (folder / "command-line.md").write_text(_command_page(), encoding="utf-8")


def public_names(module: str) -> list[str]:
    """Return the public names of a module: those it lists, or its functions and classes."""
    found = import_module(module)
    names = getattr(found, "__all__", None)
    if names is None:
        names = [
            name
            for name, value in vars(found).items()
            if not name.startswith("_") and getattr(value, "__module__", "") == module and callable(value)
        ]
    return [name for name in names if not name.startswith("_")]


def _python_page() -> str:
    lines = ["Python", "======", ""]
    rooms = {**ROOMS, **{f"hubless.{name}": "" for name in FORMULAS}}
    shown = set()
    for module, purpose in rooms.items():
        values = {name: getattr(import_module(module), name) for name in public_names(module)}
        names = [name for name, value in values.items() if value not in shown]  # each once
        shown |= {*values.values()}
        title = f"{module}: {purpose}" if purpose else f"{module}: formulas"
        lines += [title, "-" * len(title), "", f".. currentmodule:: {module}", ""]
        lines += [".. autosummary::", "   :toctree: python", "   :nosignatures:", ""]
        lines += [*(f"   {name}" for name in names), ""]
    return "\n".join(lines)


def _command_page() -> str:
    lines = ["# Command line", "", "```text", cli.parser("").format_help().strip(), "```", ""]
    (verbs,) = (action for action in cli.parser()._actions if isinstance(action, argparse._SubParsersAction))
    for name, verb in verbs.choices.items():
        lines += [f"## hubless {name}", "", "```text", verb.format_help().strip(), "```", ""]
    return "\n".join(lines)
