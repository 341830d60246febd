"""The journal of a loop as a page: gains with intervals over time, what served when, and why.

One HTML file without a script. Every text in it is escaped.
"""

import html
import os
from pathlib import Path
from typing import Any

from ..report.colours import system_colour_rules
from ..report.numerals import change_in_form
from ..report.page import GENERATOR, check_page
from ..support.text import encodable
from ..support.writing import new_file
from .history import SHOWN, History, figure_of, read_history, slices_in_words, when

NEWEST, LEFT, TOP, BOTTOM, WIDTH, HEIGHT = 60, 52, 16, 44, 720, 300  # decisions drawn; pixels
STYLE = (
    "*{box-sizing:border-box}body{margin:0;background:var(--background);color:var(--text);"
    "font:16px/1.55 system-ui,sans-serif;font-variant-numeric:tabular-nums}"
    "main{max-width:860px;margin:0 auto;padding:1.5rem 1.25rem 4rem}h1{font-size:1.7rem;margin:0;"
    "line-height:1.25}h2{font-size:1.15rem;margin:0 0 .5rem}p{margin:.4rem 0}.muted{color:var(--muted)}"
    "section,article{background:var(--surface);border:1px solid var(--line);border-radius:8px;"
    "padding:1rem 1.25rem;margin:1rem 0;overflow-wrap:anywhere}"
    "article h3{font-size:1rem;margin:0}.promote{border-left:5px solid var(--accent)}"
    ".rolled{border-left:5px solid var(--wrong)}.keep{border-left:5px solid var(--line)}"
    ".scroll{overflow-x:auto}.newest{direction:rtl}svg{direction:ltr}"  # narrow screens begin at the newest
    "svg{display:block;width:100%;min-width:520px;height:auto}"
    "svg text{fill:var(--muted);font:12px system-ui,sans-serif}.axis{stroke:var(--line)}"
    ".zero{stroke:var(--muted);stroke-dasharray:4 4}.bar{stroke:var(--after);stroke-width:2}"
    ".dot{fill:var(--after)}.held .bar{stroke:var(--muted)}.held .dot{fill:var(--surface);"
    "stroke:var(--muted);stroke-width:2}.serves{fill:var(--after)}.none{fill:var(--before)}"
    "svg .in{fill:var(--surface)}table{border-collapse:collapse;width:100%;font-size:.85rem}"
    "td,th{padding:.2rem .6rem .2rem 0;text-align:left;vertical-align:top;border-top:1px solid var(--line)}"
    "td+td,th+th{text-align:right;white-space:nowrap}.falls td{color:var(--wrong);font-weight:600}"
    "summary{cursor:pointer;padding:.4rem 0;color:var(--muted);font-size:.9rem}.key{font-weight:600}"
    ".of-original{color:var(--before)}.of-versions{color:var(--after)}"
    "@media(max-width:640px){main{padding:1rem .75rem 3rem}section,article{padding:.8rem .9rem}}"
    "@media print{article{break-inside:avoid}}"
)
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def write_history(folder: str | os.PathLike[str], path: str | os.PathLike[str]) -> Path:
    """Write the page of a loop's journal; ValueError where another file than such a page is there.

    Examples
    --------
    >>> import json, numpy as np
    >>> from hubless.loop import watch_index, write_history
    >>> with open("log.jsonl", "w") as log:
    ...     log.writelines(json.dumps({"query": i, "item": i, "score": 1}) + "\\n" for i in range(20))
    >>> np.save("items.npy", np.eye(20))
    >>> how = {"queries": "items.npy", "slice_size": 20, "write": True}
    >>> step = watch_index("items.npy", "log.jsonl", "loop", **how)
    >>> page = write_history("loop", "page.html").read_text()
    >>> "The loop of items.npy" in page
    True
    """
    target, page = check_page(path), history_page(read_history(folder))
    with new_file(target) as file:
        file.write(page.encode())
    return target


def history_page(history: History) -> str:
    """Return the page."""
    last = history.decisions[-1]
    title = f"The loop of {Path(str(last.get('index', ''))).name or 'an index'}"
    counts = [
        sum(each["decision"] == what for each in history.decisions) for what in ("promote", "roll back")
    ]
    lead = f"{history.serving.capitalize()} serves. {_counted(len(history.decisions), 'decision')}, of which "
    lead += f"{_counted(counts[0], 'promotion')} and {_counted(counts[1], 'way back', 'ways back')}."
    body = [
        f"<h1>{_text(title)}</h1><p>{_text(lead)}</p>",
        "<section><h2>Gain of each candidate over the original</h2>",
        f"{_chart(history)}{_key(history)}</section>",
        "<h2>Decisions, the newest first</h2>",
        *(_article(decision) for decision in reversed(history.decisions)),
    ]
    return encodable(
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">{GENERATOR.decode()}'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_text(title)}</title><style>{system_colour_rules()}{STYLE}</style></head>"
        f"<body><main>{''.join(body)}</main></body></html>\n"
    )


def _counted(n: int, one: str, more: str | None = None) -> str:
    return f"{n:,} {one if n == 1 else more or one + 's'}"


def _text(value: Any) -> str:
    return html.escape(str(value))


def _key(history: History) -> str:
    drawn = min(len(history.decisions), NEWEST)
    only = f" The newest {drawn} decisions are drawn." if drawn < len(history.decisions) else ""
    return (
        '<p class="muted">Score on the questions of each slice, which the candidate had not learned from, '
        "with the 95 % interval; filled where it was promoted. Below, what served afterwards: "
        '<span class="key of-original">the original</span> or '
        f'<span class="key of-versions">a version</span>.{only}</p>'
    )


# --- the chart ----------------------------------------------------------------------------------------------


def _chart(history: History) -> str:
    """Draw gains with their intervals, and what served after each decision."""
    decisions = history.decisions[-NEWEST:]
    figures = [figure_of(decision, SHOWN[0]) for decision in decisions]
    ends = [figure[end] for figure in figures if figure for end in ("low", "high") if figure[end] is not None]
    low, high = min([0.0, *ends]), max([0.01, *ends])
    step = (WIDTH - LEFT - 12) / len(decisions)

    def y(value: float) -> float:
        return TOP + (high - value) / (high - low) * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<line class="{"zero" if value == 0 else "axis"}" x1="{LEFT}" x2="{WIDTH - 12}" y1="{y(value):.1f}" '
        f'y2="{y(value):.1f}"/><text x="{LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end">'
        f"{change_in_form(value, 'fraction')}</text>"
        for value in _ticks(low, high)
    ]
    for place, (decision, figure) in enumerate(zip(decisions, figures, strict=True)):
        x = LEFT + (place + 0.5) * step
        parts.append(_served(decision, x, step))
        if figure is not None and figure["low"] is not None:
            parts.append(_interval(decision, figure, x, y))
    words = "Gain of each candidate over the original with its interval; the same figures are listed below."
    return (
        f'<div class="scroll newest" tabindex="0"><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{words}">'
        f"{''.join(parts)}</svg></div>"
    )


def _ticks(low: float, high: float) -> list[float]:
    """Return about four round values, of which one is 0."""
    step = next(
        unit * 10.0**power
        for power in range(-3, 4)
        for unit in (1, 2, 5)
        if (high - low) / (unit * 10.0**power) <= 5
    )
    return [i * step for i in range(int(low / step) - 1, int(high / step) + 2) if low <= i * step <= high]


def _interval(decision: dict[str, Any], figure: dict[str, Any], x: float, y: Any) -> str:
    kind = "" if decision["decision"] == "promote" else ' class="held"'
    return (
        f'<g{kind}><line class="bar" x1="{x:.1f}" x2="{x:.1f}" y1="{y(figure["high"]):.1f}" '
        f'y2="{y(figure["low"]):.1f}"/>'
        f'<circle class="dot" cx="{x:.1f}" cy="{y(figure["mean"]):.1f}" r="5"/></g>'
    )


def _served(decision: dict[str, Any], x: float, step: float) -> str:
    """Draw a cell of the band that says what served, with the slice below it."""
    number, width = decision.get("serving", 0), max(step - 2, 1)
    band, words = HEIGHT - BOTTOM + 8, slices_in_words(decision)
    cell = (
        f'<rect class="{"serves" if number else "none"}" x="{x - width / 2:.1f}" y="{band}" '
        f'width="{width:.1f}" height="16"/>'
    )
    if step < 26:  # no room for words
        return cell
    return (
        f'{cell}<text class="in" x="{x:.1f}" y="{band + 12.5}" text-anchor="middle">{number or "0"}</text>'
        f'<text x="{x:.1f}" y="{HEIGHT - 6}" text-anchor="middle">{_text(words)}</text>'
    )


# --- the decisions ------------------------------------------------------------------------------------------

WORDS = {"promote": "promoted", "roll back": "rolled back", "keep": "kept what served"}


def _article(decision: dict[str, Any]) -> str:
    kind = {"promote": "promote", "roll back": "rolled"}.get(decision.get("decision", ""), "keep")
    slices = decision.get("slices", [])
    what = WORDS.get(decision.get("decision", ""), "decided")
    learned = (decision.get("candidate") or {}).get("learned from")
    facts = [f"slice {slices_in_words(decision)}", *(_about(entry) for entry in slices[-1:])]
    facts += [_learned(learned, kind == "promote")] if learned else []
    left_out = (decision.get("state") or {}).get("left_out") or []
    facts += [f"left out: slice {', '.join(map(str, left_out))}"] if left_out else []
    notes = "".join(f"<p>{_text(note)}</p>" for note in decision.get("notes", []))
    return (
        f'<article class="{kind}"><h3>{decision["number"]}. {what}, {_text(when(decision))} UTC</h3>'
        f'<p>{_text(decision.get("why", ""))}</p>{notes}<p class="muted">{_text("; ".join(facts))}</p>'
        f"{_figures(decision)}</article>"
    )


def _learned(slices: list[int], is_promoted: bool) -> str:
    """Return what a model learned from; figures are those without the slice that confirmed it."""
    words = f"learned from slices {', '.join(map(str, slices))}"
    if not is_promoted:
        return f"candidate {words}"
    return f"version {words}; its figures are from before slice {slices[-1]} was learned from"


def _about(entry: dict[str, Any]) -> str:
    first, last = entry["lines"]
    return f"lines {first:,} to {last:,}, {entry['questions']:,} questions, {entry['pairs']:,} pairs"


def _figures(decision: dict[str, Any]) -> str:
    rows = [(entry, False) for entry in decision.get("figures", [])]
    rows += [(entry, bool(entry.get("falls"))) for entry in decision.get("guards", [])]
    if not rows:
        return ""
    cells = [
        f"<tr{' class=falls' if falls else ''}><td>{_text(entry['what'])}</td><td>{entry['n']:,}</td>"
        f"<td>{_number(entry['mean'])}</td><td>{_number(entry['low'])} to {_number(entry['high'])}</td></tr>"
        for entry, falls in rows
    ]
    head = '<tr><th scope="col">change</th><th scope="col">questions</th><th scope="col">mean</th>'
    head += '<th scope="col">interval</th></tr>'
    return (
        f'<details><summary>Figures and guards</summary><div class="scroll"><table>{head}{"".join(cells)}'
        "</table></div></details>"
    )


def _number(value: Any) -> str:
    return "unknown" if value is None else change_in_form(float(value), "fraction")
