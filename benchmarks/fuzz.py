"""Fuzzing: damaged and hostile files of every kind that hubless reads, in processes that may crash.

A case follows from the target, the seed and its number alone, so every finding can be made again. Findings
are written to a folder of their own, each case once for what it shows; the raw result says how many were
read.
"""

import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hubless.support.progress import step

from .fuzz_child import MEMORY, PATIENCE, PROCESSOR
from .fuzz_targets import TARGETS, case
from .processes import ROOT

FOLDER = Path(__file__).parent / "results" / "reliability"
PEERS = (
    *("numpy", "pyarrow", "h5py", "faiss-cpu", "usearch", "hnswlib", "safetensors", "psycopg"),
    "qdrant-edge-py",
)
LIMITS = {"memory_bytes": MEMORY, "processor_seconds": PROCESSOR, "seconds": PATIENCE}
# What only the engine that reads a format could mend: (target, kind of finding) → why. See SECURITY.md.
OF_ENGINES = {
    ("hdf5", "time"): "libhdf5 never ends on a global heap with an object of length 0",
}
ENOUGH = 1 << 60  # more cases than any run has


def measure(
    targets: Sequence[str], seconds: float, seed: int = 0, found_in: Path | None = None, most: int = ENOUGH
) -> dict[str, Any]:
    """Fuzz each target for an equal share of the time, or until `most` cases; return counts and findings."""
    cases: dict[str, Any] = {}
    with step("fuzz", len(targets), "kinds") as bar:
        for name in targets:
            if find_spec(TARGETS[name].package) is None:
                cases[name] = {"left out": f"{TARGETS[name].package} is not installed"}
            else:
                cases[name] = fuzz(name, seconds / len(targets), seed, most)
            bar.update()
    if found_in is not None:
        keep(cases, seed, found_in)
    return cases


def fuzz(name: str, seconds: float, seed: int, most: int = ENOUGH) -> dict[str, Any]:
    """Fuzz one target; a process that crashes is followed by another, from the next case on."""
    start, number, findings = time.monotonic(), 0, dict[str, dict[str, Any]]()
    while number < most and (left := seconds - (time.monotonic() - start)) > 0:
        lines, crash, last = _run(name, seed, number, most, left)
        for line in lines:
            _add(findings, line)
        if crash is None:
            number += last
            break
        number = last + 1
        _add(findings, {"case": last, **crash})
    seconds = round(time.monotonic() - start, 1)
    for finding in findings.values():
        if why := OF_ENGINES.get((name, finding["kind"])):
            finding["of the engine"] = why
    return {"executions": number, "seconds": seconds, "findings": list(findings.values())}


def defects(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the findings that are defects of hubless."""
    return [finding for finding in result.get("findings", ()) if "of the engine" not in finding]


def _add(findings: dict[str, dict[str, Any]], one: dict[str, Any]) -> None:
    """Add a finding to those of the same kind and place."""
    known = findings.setdefault(f"{one['kind']} {one['where']}", {**one, "times": 0})
    known["times"] += 1


def _run(
    name: str, seed: int, first: int, most: int, seconds: float
) -> tuple[list[dict[str, Any]], dict[str, str] | None, int]:
    """Return what one process found; how it crashed, if it did; and the cases that it read, or the last."""
    with tempfile.TemporaryDirectory() as work:
        numbers = map(str, (seed, first, most, seconds))
        command = [sys.executable, "-m", "benchmarks.fuzz_child", name, *numbers, work]
        child = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
        lines = [json.loads(line) for line in child.stdout.splitlines() if line.startswith("{")]
        if lines and "done" in lines[-1]:
            return lines[:-1], None, lines[-1]["done"]
        at = Path(work, "at")
        if not at.exists() or not at.stat().st_size:
            raise RuntimeError(f"fuzzing of {name} could not begin: {child.stderr[-2000:]}")
        return lines, _crash(child), int(at.read_text())


def _crash(child: "subprocess.CompletedProcess[str]") -> dict[str, str]:
    how = f"exit code {child.returncode}"
    if child.returncode < 0:
        how = signal.Signals(-child.returncode).name
    kind = "time" if how in ("SIGALRM", "SIGPROF") else "crash"
    return {"kind": kind, "where": how, "text": child.stderr[-300:]}


def keep(cases: dict[str, Any], seed: int, folder: Path) -> None:
    """Write the first case of every finding into a folder of its own."""
    for name, result in cases.items():
        for finding in result.get("findings", ()):
            made = folder / f"{name.replace(' ', '-')}-{seed}-{finding['case']}"
            made.mkdir(parents=True, exist_ok=True)
            (made / "finding.json").write_text(json.dumps(finding, indent=1))
            for file, content in case(name, seed, finding["case"]).items():
                (made / file).parent.mkdir(parents=True, exist_ok=True)
                data = content if isinstance(content, bytes) else f"({content})".encode()
                (made / file).write_bytes(data)
