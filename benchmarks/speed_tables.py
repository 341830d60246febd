"""Raw results of speed as tables in Markdown, for the page and for the end of a run."""

from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

from .markdown import grid, shown
from .speed_goals import least_seconds
from .startup import HELP, IMPORTS, MODULES_BEFORE, SECONDS_BEFORE
from .timing import is_timed, ratio

Cases = Mapping[str, Any]


def of(verb: str, cases: Cases) -> list[str]:
    """Return the tables of one verb."""
    return SECTIONS.get(verb, _any)(cases)


def _rows(cases: Cases, field: str) -> list[str]:
    """Return the names that occur in a field of any case, in their order."""
    return list(dict.fromkeys(name for case in cases.values() for name in case.get(field, {})))


def _by_case(cases: Cases, field: str, cell: Callable[[Any, str], str]) -> list[str]:
    columns = {title: case for title, case in cases.items() if field in case}
    rows = [[name, *(cell(case, name) for case in columns.values())] for name in _rows(columns, field)]
    return grid(["", *columns], rows)


def _by_name(cases: Cases, field: str, cell: Callable[[Any, str], str]) -> list[str]:
    """Return a table as `_by_case` does, with a row for each case: for many cases."""
    named = {title: case for title, case in cases.items() if field in case}
    names = _rows(named, field)
    return grid(
        ["", *names], [[title, *(cell(case, name) for name in names)] for title, case in named.items()]
    )


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
    """Return why some contenders have no figure, each reason once, below a table."""
    where: dict[tuple[str, str], list[str]] = {}
    for title, case in cases.items():
        for name, entry in case.get(field, {}).items():
            if isinstance(entry, dict) and "error" in entry:
                where.setdefault((name, " ".join(entry["error"].split())), []).append(title)
    lines = [f"- {name} ({'; '.join(titles)}): {why}" for (name, why), titles in where.items()]
    return ["", *lines] if lines else []


def _search(cases: Cases) -> list[str]:
    return [
        *_by_name(cases, "seconds", _time),
        *_errors(cases, "seconds"),
        "",
        "Rows with the neighbours that hubless finds; where others differ, by how much distances do:",
        "",
        *_by_name(cases, "neighbors", _agreement),
        *_candidates(cases),
    ]


def _folding(cases: Cases) -> list[str]:
    return [*_by_name(cases, "seconds", _time), *_errors(cases, "seconds")]


def _candidates(cases: Cases) -> list[str]:
    """How many objects are left to be settled, where that was counted."""

    def cell(case: Any, name: str) -> str:
        return shown(case["candidates"][name]) if name in case["candidates"] else "—"

    if not _rows(cases, "candidates"):
        return []
    text = (
        "Objects that a first pass leaves to be settled for each query, by its precision; — where none did:"
    )
    return ["", text, "", *_by_name(cases, "candidates", cell)]


def _agreement(case: Any, name: str) -> str:
    measured = case["neighbors"].get(name)
    if measured is None:
        return "—"
    same = f"{measured['same_rows']:.2%}"
    return same if measured["same_rows"] == 1 else f"{same} (≤ {measured['largest_difference']:.1g})"


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
        measured = case["bytes"].get(name, {})
        return f"{round(measured['beyond'] / 1e6):,}" if "beyond" in measured else "—"

    later = [
        f"- {name}, {title}: measured on {measured['date']}."
        for title, case in cases.items()
        for name, measured in case["bytes"].items()
        if "date" in measured
    ]
    return [*_by_case(cases, "bytes", cell), *_errors(cases, "bytes"), *([""] if later else []), *later]


def _startup(cases: Cases) -> list[str]:
    """Seconds and modules now and before; the helps of all verbs in one row."""
    seconds, modules = cases["startup"]["seconds"], cases["startup"]["modules"]
    rows = []
    for name in (*IMPORTS, HELP):
        before = (SECONDS_BEFORE.get(name), MODULES_BEFORE.get(name))
        times, counts = ("" if value is None else shown(value) for value in before)
        rows.append([f"`{name}`", _span(seconds, [name]), times, f"{modules[name]}", counts])
    if verbs := [name for name in seconds if name not in (*IMPORTS, HELP)]:
        counts = sorted({modules[name] for name in verbs})
        most = " to ".join(str(count) for count in dict.fromkeys((counts[0], counts[-1])))
        rows.append([f"`hubless VERB --help`, {len(verbs)} verbs", _span(seconds, verbs), "", most, ""])
    return grid(["", "seconds", "before", "modules of hubless", "before"], rows)


def _span(seconds: Mapping[str, Any], names: list[str]) -> str:
    """Return the least and the greatest median of the names that have times."""
    medians = sorted(median(seconds[name]) for name in names if is_timed(seconds, name))
    return " to ".join(dict.fromkeys(shown(value) for value in medians[:: max(1, len(medians) - 1)])) or "—"


GPU_FIGURES = {  # how the page names what the raw results have
    "parts tf32": "seconds of each step, tf32",
    "parts float32": "seconds of each step, float32",
    "targets that TF32 changes": "share of the targets that TF32 changes",
    "neighbours that TF32 changes": "share of the neighbours that TF32 changes",
    "gigabytes": "size of the array in GB",
    "whole: fits": "whole: fits into the memory of the device",
    "in blocks: fits": "in blocks: fits into the memory of the device",
    "same answers": "share of the queries with the same answer both ways",
}


def _gpu(cases: Cases) -> list[str]:
    """Medians of what has seconds, then the steps of a fit, then all other figures."""
    lines = []
    for title, case in cases.items():
        timed = {name: median(measured) for name, measured in case.items() if _is_seconds(name, measured)}
        others = {name: measured for name, measured in case.items() if isinstance(measured, float | bool)}
        parts = {name: measured for name, measured in case.items() if isinstance(measured, dict)}
        shape = " × ".join(f"{size:,}" for size in case.get("shape", []))
        lines += ["", f"**{title}** ({shape})" if shape else f"**{title}**", ""]
        lines += grid(["", "seconds"], [[name, shown(took)] for name, took in timed.items()])
        lines += [""] if others or parts else []
        for name, part in parts.items():
            steps = ", ".join(f"{step} {shown(took)}" for step, took in part.items())
            lines.append(f"- {GPU_FIGURES.get(name, name)}: {steps}.")
        lines += [
            f"- {GPU_FIGURES.get(name, name)}: {_figure(measured)}." for name, measured in others.items()
        ]
    return lines[1:]


def _figure(measured: float | bool) -> str:
    return ("yes" if measured else "no") if isinstance(measured, bool) else shown(measured)


def _is_seconds(name: str, measured: Any) -> bool:
    return isinstance(measured, list) and name != "shape" and bool(measured)


def _tests(cases: Cases) -> list[str]:
    names = ("tests", "failure", "error", "skipped")
    return grid(
        ["", *names], [[file, *(str(measured[name]) for name in names)] for file, measured in cases.items()]
    )


def _any(cases: Cases) -> list[str]:
    """Cases that hold nothing but their contenders' seconds."""
    plain = {name: case if "seconds" in case else {"seconds": case} for name, case in cases.items()}
    return [*_by_case(plain, "seconds", _time), *_errors(plain, "seconds")]


SECTIONS: dict[str, Callable[[Cases], list[str]]] = {
    "search": _search,
    "folding": _folding,
    "fit": _fit,
    "growth": _growth,
    "memory": _memory,
    "startup": _startup,
    "gpu": _gpu,
    "gpu-stream": _gpu,
    "gpu-tests": _tests,
}
