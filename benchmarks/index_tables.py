"""Raw results of repaired indexes as tables in Markdown, for the page and for the end of a run."""

from collections import Counter
from collections.abc import Callable, Mapping
from statistics import fmean, median, stdev
from typing import Any

from .markdown import grid, shown
from .planted_page import tables as planted_tables
from .rivals import NONE, OURS

PARTS = ("all", "seen", "unseen")
OTHERS = ("MRR@10", "hit rate@10", "recall@10")
Cases = Mapping[str, Any]


def of(verb: str, cases: Cases) -> list[str]:
    """Return the tables of one verb."""
    return SECTIONS[verb](cases)


def _pair_tables(cases: Cases) -> list[str]:
    methods = measured(cases["SciFact"])
    head = ("moves", *(f"nDCG@10, {part}" for part in PARTS), "all, by draw", "N10 skewness", "seconds")
    rows = [
        [
            name,
            row["moves"],
            *(change(figure(row, "nDCG@10", part)) for part in PARTS),
            spread(row),
            f"{skewness(row):.2f}",
            _seconds([run["seconds"] for run in row["runs"]]),
        ]
        for name, row in methods.items()
    ]
    chosen = [[name, settings(row)] for name, row in methods.items() if name != NONE]
    more = [
        [name, *(f"{figure(row, measure, part)['after']:.3f}" for measure in OTHERS for part in PARTS)]
        for name, row in methods.items()
    ]
    differences = [
        [name, *(_difference(entry) for entry in row["from_hubless"])]
        for name, row in methods.items()
        if name != OURS
    ]
    return [
        *grid(["", *head], rows),
        *_errors(cases["SciFact"]["methods"]),
        "\nSettings that were chosen, and in how many draws:\n",
        *grid(["", "setting"], chosen, "---"),
        "\nOther measures:\n",
        *grid(["", *(f"{measure}, {part}" for measure in OTHERS for part in PARTS)], more),
        f"\nnDCG@10 minus that of `{OURS}`, with the 95 % interval, paired by query:\n",
        *grid(["", *PARTS], differences),
    ]


def _few_tables(cases: Cases) -> list[str]:
    rows = [
        [case_name, name, *(_of_draws(case["methods"], name, part) for part in PARTS), *_stays(runs)]
        for case_name, case in cases.items()
        for name, runs in case["methods"].items()
        if "error" not in runs[0]
    ]
    errors = {name: runs[0] for case in cases.values() for name, runs in case["methods"].items()}
    return [
        *grid(["", "", *(f"nDCG@10, {part}" for part in PARTS), "draws", "stays"], rows),
        *_errors(errors),
    ]


def _stays(runs: list[dict[str, Any]]) -> list[str]:
    """Return how many draws there are, and in how many of them nothing is moved."""
    return [str(len(runs)), str(sum(run["setting"] in ("", "not moving", "γ = 0.00") for run in runs))]


def changes(methods: Mapping[str, Any], name: str, part: str) -> list[float]:
    """Return how far a method is ahead of not moving in each draw that has queries of a part."""
    both = zip(methods[name], methods[NONE], strict=True)
    scores = [(run["nDCG"][part], before["nDCG"][part]) for run, before in both]
    return [after - before for after, before in scores if after is not None]


def _of_draws(methods: Mapping[str, Any], name: str, part: str) -> str:
    """Return the mean over the draws, and the mean change with its standard error."""
    scores = [run["nDCG"][part] for run in methods[name] if run["nDCG"][part] is not None]
    ahead = changes(methods, name, part)
    if not any(ahead):
        return f"{fmean(scores):.3f}"
    error = stdev(ahead) / len(ahead) ** 0.5 if len(ahead) > 1 else float("nan")
    return f"{fmean(scores):.3f} ({fmean(ahead):+.4f} ± {error:.4f})"


def _label_tables(cases: Cases) -> list[str]:
    about = ("chosen", "neighbours", "accuracy", "precision@10", "N10 skewness", "fixed", "broken", "seconds")
    rows = []
    for name, row in cases["banking77"]["methods"].items():
        figures = [
            change(entry) if name != "original" else f"{entry['after']:.3f}" for entry in row["figures"]
        ]
        counts = [f"{row['fixed']}", f"{row['broken']}"] if name != "original" else ["—", "—"]
        hubs, seconds = f"{row['skewness'][1]:.2f}", _seconds(row["seconds"])
        rows.append([name, f"`{row['mover']}`", str(row["n_neighbors"]), *figures, hubs, *counts, seconds])
    return grid(["", *about], rows)


def _store_tables(cases: Cases) -> list[str]:
    timed = {name: case for name, case in cases.items() if "error" not in case["seconds"]}
    steps = list(dict.fromkeys(step for case in timed.values() for step in case["seconds"]))
    rows = [
        [name, f"{case['rows']:,}", *(_seconds(case["seconds"][step]) for step in steps)]
        for name, case in timed.items()
    ]
    errors = _errors({name: case["seconds"] for name, case in cases.items()})
    return [*grid(["", "rows", *steps], rows), *errors]


def _client_tables(cases: Cases) -> list[str]:
    rows, loads = [], []
    for name, case in cases.items():
        told = case["banking77"]
        for where in ("accuracy", "accuracy on files"):
            shares = [told[where].get(step) for step in ("before", "after", "rolled back")]
            who = name if where == "accuracy" else f"{name}: the same vectors in files"
            rows.append([who, *("—" if share is None else f"{share:.4f}" for share in shares)])
        rows.append([f"{name}: recall@10", *(f"{share:.4f}" for share in told["recall"].values()), "—"])
        took = case["bulk"]["seconds"]
        times = f"{took['apply'] / took['bulk load']:.2f}"
        loads.append([name, f"{case['bulk']['rows']:,}", *(shown(took[step]) for step in took), times])
    steps = ("rows", "bulk load", "apply", "promote", "roll back", "apply / bulk load")
    return [*grid(["", "before", "after", "rolled back"], rows), "", *grid(["seconds", *steps], loads)]


def measured(case: Mapping[str, Any]) -> dict[str, Any]:
    """Return the methods that have figures."""
    return {name: row for name, row in case["methods"].items() if "error" not in row}


def _errors(rows: Mapping[str, Any]) -> list[str]:
    """Return why some methods have no figures."""
    lines = [f"- {name}: {' '.join(row['error'].split())}" for name, row in rows.items() if "error" in row]
    return ["", *lines] if lines else []


def figure(row: Mapping[str, Any], measure: str, part: str) -> dict[str, Any]:
    """Return one figure of a method; `before` is that of not moving."""
    return next(entry for entry in row["figures"] if (entry["measure"], entry["part"]) == (measure, part))


def score(methods: Mapping[str, Any], name: str, part: str) -> str:
    """Return the nDCG@10 of a method, as it is shown."""
    return f"{figure(methods[name], 'nDCG@10', part)['after']:.3f}"


def settings(row: Mapping[str, Any]) -> str:
    """Return the settings of all draws, each with how often it was chosen."""
    counts = Counter(run["setting"] for run in row["runs"])
    return "; ".join(f"{setting} ({count})" for setting, count in counts.most_common())


def spread(row: Mapping[str, Any]) -> str:
    """Return the lowest and the highest nDCG@10 over all queries, from draw to draw."""
    shown = sorted(f"{run['nDCG']['all']:.3f}" for run in row["runs"])
    return shown[0] if shown[0] == shown[-1] else f"{shown[0]} to {shown[-1]}"


def skewness(row: Mapping[str, Any]) -> float:
    """Return the mean N10 skewness over the draws."""
    return fmean(run["skewness"] for run in row["runs"])


def change(figure: Mapping[str, Any]) -> str:
    """Return a figure with the interval of its change, where it changed."""
    if figure["low"] == figure["high"]:
        return f"{figure['after']:.3f}"
    return f"{figure['after']:.3f} ({figure['low']:+.3f} to {figure['high']:+.3f})"


def _difference(figure: Mapping[str, Any]) -> str:
    return f"{figure['after'] - figure['before']:+.3f} ({figure['low']:+.3f} to {figure['high']:+.3f})"


def side(figure: Mapping[str, Any]) -> int:
    """Return 1 or -1 where a change is measurably positive or negative, else 0."""
    return int(figure["low"] > 0) - int(figure["high"] < 0)


def _seconds(seconds: list[float]) -> str:
    return shown(median(seconds)) if any(seconds) else "—"


SECTIONS: dict[str, Callable[[Cases], list[str]]] = {
    "pairs": _pair_tables,
    "few": _few_tables,
    "labels": _label_tables,
    "planted": planted_tables,
    "stores": _store_tables,
    "clients": _client_tables,
    "client-files": _client_tables,
}
