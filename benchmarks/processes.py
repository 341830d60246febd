"""Work measured in separate processes: `python -m benchmarks.MODULE NAMES` prints each step as JSON."""

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from hubless.paper.raw import cores
from hubless.support.progress import step

from .record import Options
from .timing import failure

ROOT = Path(__file__).parent.parent


def measure_apart(module: str, jobs: Sequence[tuple[str, str]], options: Options) -> list[dict[str, Any]]:
    """Measure each job in a separate process: one at a time, unless in a quick look."""
    with (
        ThreadPoolExecutor(cores() if options.quick else 1) as pool,
        step(module, len(jobs), "jobs") as bar,
    ):

        def run(job: tuple[str, str]) -> dict[str, Any]:
            result = run_process(module, *job, options=options)
            bar.update()
            return result

        return list(pool.map(run, jobs))


def run_process(module: str, *names: str, options: Options) -> dict[str, Any]:
    """Return what one process prints; the limit counts from its first line, when all is ready."""
    command = [sys.executable, "-W", "ignore", "-m", f"benchmarks.{module}", *names]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True, "cwd": ROOT}
    with subprocess.Popen(command + ["--quick"] * options.quick, **pipes) as child:
        result = _last(child.stdout.readline() if child.stdout else "")
        try:
            result |= _last(child.communicate(timeout=options.limit)[0])
        except subprocess.TimeoutExpired:
            child.kill()
            return result | {"more_than": options.limit}
    if not result.keys() - {"model"}:  # killed, perhaps for lack of memory
        result["error"] = f"its process ended with code {child.returncode}"
    return result


def _last(text: str) -> dict[str, Any]:
    """Return the last line; the package that is measured may print lines before."""
    lines = text.strip().splitlines()
    return json.loads(lines[-1]) if lines else {}


def print_steps(steps: Iterable[dict[str, Any]]) -> None:
    """Print each step as it is done, or why it failed; what the other process calls."""
    try:
        for result in steps:
            print(json.dumps(result), flush=True)
    except Exception as error:  # a peer that fails or is not installed is a result too
        print(json.dumps(failure(error)))
