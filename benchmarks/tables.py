"""Raw results as tables in Markdown, for the page and for the end of a run."""

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

from .claims import least_seconds, shown
from .record import Found
from .timing import is_timed, ratio

Cases = Mapping[str, Any]


def grid(head: Sequence[str], rows: Sequence[Sequence[str]], align: str = "---:") -> list[str]:
    """A table: names to the left, figures to the right unless they are words."""
    lines = ["| " + " | ".join(head) + " |", "| --- |" + f" {align} |" * (len(head) - 1)]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows)]


def of(verb: str, cases: Cases) -> list[str]:
    """The tables of one verb."""
    return SECTIONS.get(verb, _any)(cases)


def _rows(cases: Cases, field: str) -> list[str]:
    """Names that occur in a field of any case, in their order."""
    return list(dict.fromkeys(name for case in cases.values() for name in case.get(field, {})))


def _by_case(cases: Cases, field: str, cell: Callable[[Any, str], str]) -> list[str]:
    own = {title: case for title, case in cases.items() if field in case}
    rows = [[name, *(cell(case, name) for case in own.values())] for name in _rows(own, field)]
    return grid(["", *own], rows)


def _time(case: Any, name: str) -> str:
    """Median seconds, and median and quartiles of the ratio to the reference."""
    seconds, to = case["seconds"], case.get("reference")
    if not is_timed(seconds, name):
        return "—"
    took = shown(median(seconds[name]))
    if to is None or name == to or not is_timed(seconds, to):
        return took
    return took + " ({} ×, {} to {})".format(*map(shown, ratio(seconds, name, to)))


def _errors(cases: Cases, field: str) -> list[str]:
    """Why some have no figure, each reason once, below a table."""
    where: dict[tuple[str, str], list[str]] = {}
    for title, case in cases.items():
        for name, entry in case.get(field, {}).items():
            if isinstance(entry, dict) and "error" in entry:
                where.setdefault((name, " ".join(entry["error"].split())), []).append(title)
    lines = [f"- {name} ({'; '.join(titles)}): {why}" for (name, why), titles in where.items()]
    return ["", *lines] if lines else []


def _search(cases: Cases) -> list[str]:
    return [
        *_by_case(cases, "seconds", _time),
        *_errors(cases, "seconds"),
        "",
        "Rows with the neighbours that hubless finds; where others differ, by how much distances do:",
        "",
        *_by_case(cases, "neighbors", _agreement),
    ]


def _agreement(case: Any, name: str) -> str:
    seen = case["neighbors"].get(name)
    if seen is None:
        return "—"
    same = f"{seen['same_rows']:.2%}"
    return same if seen["same_rows"] == 1 else f"{same} (≤ {seen['largest_difference']:.1g})"


def _fit(cases: Cases) -> list[str]:
    notes = {name: text for case in cases.values() for name, text in case.get("notes", {}).items()}
    return [
        *_by_case(cases, "seconds", _time),
        *_errors(cases, "seconds"),
        "",
        *(f"- {name}: {text}." for name, text in notes.items()),
        "",
        "Learners, once each, and how many times as long as hubless they take:",
        "",
        *_by_case(cases, "learners", _learner),
        *_errors(cases, "learners"),
    ]


def _learner(case: Any, name: str) -> str:
    entry = case["learners"].get(name, {})
    took = least_seconds(entry)
    if took is None:
        return "—"
    more = "> " if "more_than" in entry else ""
    times = took / median(case["seconds"]["hubless"])
    return f"{more}{shown(took)} ({more}{shown(times)} ×)"


def _growth(cases: Cases) -> list[str]:
    rows = []
    for name, case in cases.items():
        sizes = case["sizes"]
        first, last = (shown(median(case["seconds"][str(size)])) for size in (sizes[0], sizes[-1]))
        fitted = f"{case['exponent']:.2f} ± {case['standard_error']:.2f}"
        span = (f"{sizes[0]:,} to {sizes[-1]:,}", f"{first} to {last}")
        rows.append([name, *span, fitted, f"{case['last_exponent']:.2f}"])
    return grid(["", "sizes", "seconds", "exponent", "between the two largest"], rows)


def _memory(cases: Cases) -> list[str]:
    def cell(case: Any, name: str) -> str:
        seen = case["bytes"].get(name, {})
        return f"{round(seen['beyond'] / 1e6):,}" if "beyond" in seen else "—"

    return [*_by_case(cases, "bytes", cell), *_errors(cases, "bytes")]


def _gpu(cases: Cases) -> list[str]:
    """Medians of what has seconds, then the parts of a fit, then all other figures as they are."""
    lines = []
    for title, case in cases.items():
        timed = {name: median(seen) for name, seen in case.items() if _is_seconds(name, seen)}
        others = {name: seen for name, seen in case.items() if isinstance(seen, float | bool)}
        parts = {name: seen for name, seen in case.items() if isinstance(seen, dict)}
        shape = " × ".join(f"{size:,}" for size in case.get("shape", []))
        lines += ["", f"**{title}** ({shape})" if shape else f"**{title}**", ""]
        lines += grid(["", "seconds"], [[name, shown(took)] for name, took in timed.items()])
        lines += [""] if others or parts else []
        for name, part in parts.items():
            told = ", ".join(f"{step} {shown(took)}" for step, took in part.items())
            lines.append(f"- {name}: {told}.")
        lines += [
            f"- {name}: {seen if isinstance(seen, bool) else shown(seen)}." for name, seen in others.items()
        ]
    return lines[1:]


def _is_seconds(name: str, seen: Any) -> bool:
    return isinstance(seen, list) and name != "shape" and bool(seen)


def _tests(cases: Cases) -> list[str]:
    names = ("tests", "failure", "error", "skipped")
    return grid(["", *names], [[file, *(str(seen[name]) for name in names)] for file, seen in cases.items()])


def _any(cases: Cases) -> list[str]:
    """Cases that hold nothing but their contenders' seconds."""
    plain = {name: case if "seconds" in case else {"seconds": case} for name, case in cases.items()}
    return [*_by_case(plain, "seconds", _time), *_errors(plain, "seconds")]


SECTIONS: dict[str, Callable[[Cases], list[str]]] = {
    "search": _search,
    "fit": _fit,
    "growth": _growth,
    "memory": _memory,
    "gpu": _gpu,
    "gpu-stream": _gpu,
    "gpu-tests": _tests,
}


def machine(found: Found) -> str:
    """The machine and the software of a raw file, in a line."""
    about = found["machine"]
    parts = [f"{about.get('processor')}, {about.get('cores')} cores, {about.get('memory_gib')} GiB"]
    parts += [str(about["accelerator"])] if "accelerator" in about else []
    software = {name: about.get(name) for name in ("python", "hubless", "numpy", "scipy", "torch")}
    software |= found.get("versions", {})
    parts.append(", ".join(f"{name} {value}" for name, value in software.items() if value))
    return "; ".join(parts)


def blas(found: Found) -> list[str]:
    """The BLAS libraries of a raw file, a line each."""
    return [
        f"{library['package']}: {library['internal_api']} {library['version']} for "
        f"{library['architecture']} on {library['num_threads']} threads"
        + (f" (`{library['file']}`)" if library["file"] else "")
        for library in found["machine"].get("blas", [])
    ]
