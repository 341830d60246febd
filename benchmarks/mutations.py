"""Defects put into the source on purpose, one at a time: does the fast suite notice, does the full one?

A mutation replaces a text that occurs once in its file. The suites run on a copy of the repository and stop
at the first test that fails; the tests of the mutated room run first, as they most often notice.
"""

import itertools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, NamedTuple

from hubless.support.progress import step

from .record import Options

ROOT = Path(__file__).parent.parent
FOLDER, PEERS = ROOT / "benchmarks" / "results" / "tests", ("pytest", "pytest-xdist", "hypothesis")
FOLDERS = ("src", "tests", "benchmarks", "docs", "web")
FILES = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "CITATION.cff",
    "LICENSE",
    "Makefile",
    "pyproject.toml",
)
MARKS = "torch or services or browser or faults or slow"
# tests of this list of mutations: the first looks for the text that was replaced, the second for the results
NOT_RUN = (
    "test_every_mutation_can_be_made_and_changes_the_file",
    "test_mutations_noticed_are_those_of_the_page",
)
NO_TESTS = 5  # what pytest returns where a room has no test with the marks
QUICK = "tests/core/test_moments.py"  # all that --quick runs
SUITES = {"fast": f"not ({MARKS})", "rest": MARKS}  # `make test`, and what `make test-more` adds


class Mutation(NamedTuple):
    """A defect."""

    what: str
    file: str  # in src/hubless
    old: str
    new: str

    def applied(self, text: str) -> str:
        """Return the text of the file with the defect in it."""
        if text.count(self.old) != 1:
            raise ValueError(f"{self.old!r} occurs {text.count(self.old)} times in {self.file}, not once.")
        return text.replace(self.old, self.new)


MUTATIONS = (
    Mutation(
        "an origin is shifted the wrong way",
        "moments.py",
        "delta = self.origin - origin",
        "delta = origin - self.origin",
    ),
    Mutation("no penalty", "solve.py", "K + alpha * identity", "K + 0 * identity"),
    Mutation(
        "the pull is toward zero, not the identity",
        "solve.py",
        "A=self.moments.A - self.moments.K",
        "A=self.moments.A",
    ),
    Mutation("objects that were left out stay targets", "targets.py", ") & (rows >= 0)", ") | (rows >= 0)"),
    Mutation(
        "rounding decides which objects are candidates",
        "neighbors/full_pass.py",
        "xp.astype(bound + 2 * error, frame.dtype)",
        "xp.astype(bound - 2 * error, frame.dtype)",
    ),
    Mutation(
        "the bound of bfloat16 forgets how far objects were rounded",
        "neighbors/bfloat16_pass.py",
        "self.share * reach + least",
        "least",
    ),
    Mutation(
        "ties go to the higher index",
        "neighbors/ranking.py",
        "xp.argsort(candidates, stable=True)",
        "xp.argsort(-candidates, stable=True)",
    ),
    Mutation(
        "ties between blocks go to the higher index",
        "neighbors/blocks.py",
        "np.lexsort((joined[1], joined[0])",
        "np.lexsort((-joined[1], joined[0])",
    ),
    Mutation(
        "a tie of votes goes to any class",
        "neighbors/knn.py",
        "xp.argmax(take_cells(votes, near), axis=1)",
        "xp.argmax(votes, axis=1) * 0",
    ),
    Mutation(
        "a source is its own target",
        "outofcore/block_steps.py",
        "squared[is_source], numbers[is_source] = np.inf, -1",
        "squared[is_source] *= 1",
    ),
    Mutation(
        "a sample of pairs counts as all",
        "outofcore/learn.py",
        "scaled(moments, seen.n / n_sources)",
        "scaled(moments, 1.0)",
    ),
    Mutation(
        "checkpoints of another number of targets are used",
        "outofcore/pair_sums.py",
        "how = (self.k, not self.within_classes",
        "how = (0, not self.within_classes",
    ),
    Mutation(
        "hubs begin one answer later",
        "hubness.py",
        "xp.where(occurrence >= threshold, occurrence, 0)",
        "xp.where(occurrence > threshold, occurrence, 0)",
    ),
    Mutation(
        "a discount is one rank off",
        "retrieval.py",
        "np.arange(2, gains.shape[1] + 2)",
        "np.arange(3, gains.shape[1] + 3)",
    ),
    Mutation("an interval of one standard error", "evaluation.py", "NORMAL = 1.96", "NORMAL = 1.0"),
    Mutation(
        "crowded places are preferred",
        "movers/bias.py",
        "with_bias(-float(self.strength)",
        "with_bias(float(self.strength)",
    ),
    Mutation(
        "queries of a fold are learned from",
        "selection/folds.py",
        "(np.flatnonzero(fold != i), np.fl",
        "(np.flatnonzero(fold >= 0), np.fl",
    ),
    Mutation("the best by chance is chosen", "selection/race.py", "CAUTION = 1.5", "CAUTION = 0.0"),
    Mutation(
        "a reader settles switches",
        "stores/opening.py",
        "    is_folder = os.path",
        "    import_module('.journal', __package__).recover_switch(path)\n    is_folder = os.path",
    ),
    Mutation(
        "a journal is believed by its names alone",
        "stores/journal.py",
        "    return remedies.get((identity_of(served), identity_of(new), identity_of(kept)))",
        "    return next(iter(remedies.values()))",
    ),
    Mutation("two processes hold one lock", "support/locks.py", "fcntl.LOCK_EX |", "fcntl.LOCK_SH |"),
    Mutation(
        "half a file takes the place of a whole one",
        "support/writing.py",
        "        part.unlink(missing_ok=True)\n        raise",
        "        os.replace(part, path)\n        raise",
    ),
    Mutation(
        "a link out of the folder of a model is followed",
        "saving/untrusted.py",
        "if os.path.commonpath([inside, path]) != inside:",
        "if not inside:",
    ),
    Mutation(
        "class numbers that no class has are loaded",
        "saving/state.py",
        "not (low >= 0 and high < ",
        "not (low >= 0 or high < ",
    ),
    Mutation(
        "a moved index is learned from",
        "repair/before_reading.py",
        "    mark = store.mark()\n    if mark is not None:\n        since",
        "    mark = store.mark()\n    if mark is None and facts is None:\n        since",
    ),
    Mutation(
        "lengths are ignored under inner product",
        "repair/index_items.py",
        '    if are_unit(X):\n        return "cosine"',
        '    if len(X):\n        return "cosine"',
    ),
    Mutation(
        "texts of users may end the script of a page",
        "report/page.py",
        'for letter in "<>&\\u2028\\u2029":',
        'for letter in "\\u2028\\u2029":',
    ),
)


def measure(options: Options) -> dict[str, Any]:
    """Run the suites with each defect: the full one where the fast one does not notice."""
    mutations = MUTATIONS[:1] if options.quick else MUTATIONS
    suites = {"fast": SUITES["fast"]} if options.quick else SUITES
    rows = []
    with step("mutations", len(mutations), "mutations") as bar:
        for mutation in mutations:
            rows.append(of_mutation(mutation, suites, [QUICK] if options.quick else None))
            bar.update()
    return {"core": {"settings": {"suites": suites}, "rows": rows}}


def of_mutation(
    mutation: Mutation, suites: dict[str, str], tests: Sequence[str | None] | None = None
) -> dict[str, Any]:
    """Return which suite notices a defect first, and by which test; those of its room run before all."""
    row: dict[str, Any] = {**mutation._asdict(), "noticed by": None}
    for (suite, marks), some in itertools.product(
        suites.items(), tests or (tests_of_room(mutation.file), None)
    ):
        paths = () if some is None else (some,)
        row[suite] = run_suite(marks, paths, mutation)
        if row[suite]["failed"] is not None:
            check_passes(marks, paths)
            return row | {"noticed by": suite}
    return row


@cache
def check_passes(marks: str, tests: tuple[str, ...]) -> None:
    """Refuse tests that fail without any defect, and so notice nothing."""
    if (failed := run_suite(marks, tests)["failed"]) is not None:
        raise RuntimeError(f"{failed} fails without a defect. Repair it first.")


def tests_of_room(file: str) -> str:
    """Return the folder of tests that mirrors the room of a file."""
    folder = f"tests/{Path(file).parts[0]}"
    return folder if (ROOT / folder).is_dir() else "tests/core"


def copy_repository(folder: Path) -> None:
    """Copy what the tests need."""
    for name in FOLDERS:
        shutil.copytree(
            ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "node_modules")
        )
    for name in FILES:
        shutil.copy2(ROOT / name, folder / name)


def run_suite(marks: str, tests: tuple[str, ...], mutation: Mutation | None = None) -> dict[str, Any]:
    """Run tests (none given: all) of a copy with a defect until one fails.

    Returns
    -------
    outcome : "failed", the name of the test, None where all pass; and the "seconds"
    """
    left_out = " or ".join(NOT_RUN)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-n",
        "0" if tests == (QUICK,) else "auto",
        "-m",
        marks,
        "-k",
        f"not ({left_out})",
        *tests,
    ]
    with TemporaryDirectory(prefix="hubless-mutation-") as folder:
        copy_repository(Path(folder))
        if mutation is not None:
            file = Path(folder, "src", "hubless", mutation.file)
            file.write_text(mutation.applied(file.read_text()))
        environment = {**os.environ, "PYTHONPATH": f"{Path(folder, 'src')}{os.pathsep}{folder}"}
        started = perf_counter()
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    if done.returncode not in (0, NO_TESTS) and failed is None:
        raise RuntimeError(f"the tests could not run: {done.stdout[-500:]} {done.stderr[-500:]}")
    return {"failed": failed and failed[1], "seconds": perf_counter() - started}
