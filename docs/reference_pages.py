"""Write the pages of reference: of Python from the public names, of the command line from the parsers.

`make docs` calls this; what it writes, docs/reference, is not committed.
"""

import argparse
import shutil
from importlib import import_module
from pathlib import Path
from typing import Any

from hubless import cli

ROOMS = {  # public modules, and what they are for
    "hubless": "what most programs need",
    "hubless.movers": "ways to move stored objects",
    "hubless.corrections": "ways to correct stored objects for the queries of a log",
    "hubless.repair": "repair an index",
    "hubless.loop": "let an index keep learning",
    "hubless.plot": "figures",
    "hubless.baselines": "metric learners that the paper compares with",
    "hubless.calibration": "how far probabilities can be trusted",
}
FORMULAS = {  # functions on arrays, and what they return
    "targets": "same_class_targets restrict pairs",
    "moments": "Moments moments_of_targets",
    "solve": "mean_eigenvalue Penalty relative_penalties ridge ridge_path ridge_path_of_pairs RidgeProblem "
    "problem_of_targets",
    "hubness": "k_occurrence bad_k_occurrence skewness antihub_share largest_occurrence robin_hood n_hubs "
    "hub_occurrence busiest_share bad_share",
    "chance": "measure_chance Chance chance_of_occurrence hub_threshold chance_skewness chance_antihub_share "
    "least_antihub_share chance_busiest_share chance_gini chance_largest",
    "retrieval": "gains ndcg reciprocal_rank hit recall",
    "theory": "centrality_bias simulate_centrality_bias SimulatedMean variance_ratio compare_directions",
}


def write(folder: Path) -> None:
    """Write all pages into a folder that has nothing else."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "python.rst").write_text(_python_page(), encoding="utf-8")
    (folder / "command-line.md").write_text(_command_page(), encoding="utf-8")


def public_names() -> dict[str, dict[str, Any]]:
    """Return the public names of each module with their values, each value once."""
    listed = {module: import_module(module).__all__ for module in ROOMS}
    listed |= {f"hubless.{module}": names.split() for module, names in FORMULAS.items()}
    shown: list[Any] = []
    found: dict[str, dict[str, Any]] = {}
    for module, names in listed.items():
        values = {name: getattr(import_module(module), name) for name in names if not name.startswith("_")}
        found[module] = {name: value for name, value in values.items() if value not in shown}
        shown += values.values()
    return found


def _python_page() -> str:
    lines = ["Python", "======", ""]
    for module, names in public_names().items():
        title = f"{module}: {ROOMS.get(module, 'formulas')}"
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
