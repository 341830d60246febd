"""One HTML file that needs nothing else: the built page of `assets/`, with figures and details inside."""

import base64
import gzip
import html
import json
import re
from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from ..plain import as_json, encodable
from .shown import cut

SIZE = 2_000_000  # bytes, of a page with at most OBJECTS drawn; more may take more
OBJECTS = 10_000
# Characters of the texts of points, of those on cards and of changed queries, and of ids: as the size lets be
LENGTHS = (
    *((300, 2000, 80), (150, 1000, 80), (80, 500, 80), (40, 200, 80)),
    *((0, 200, 80), (0, 80, 80), (0, 80, 40), (0, 40, 24), (0, 40, 12)),
)
TYPES = {"|u1": "u8", "<u2": "u16", "<u4": "u32", "<i4": "i32", "<f4": "f32"}
OURS = b'<meta name="generator" content="hubless report">'
FORMS = {"percent": (100, "0.1", " %"), "number": (1, "0.01", ""), "fraction": (1, "0.001", "")}


def check_ours(file: Path) -> None:
    """ValueError where there is a file that is no page of ours: nobody's data is written over."""
    if file.is_dir():
        raise ValueError(f"{file} is a folder; give the name of a file, as {file / 'page.html'}.")
    if not file.exists():
        return
    with file.open("rb") as opened:
        start = opened.read(1000)
    if OURS not in start:
        raise ValueError(f"{file} is there and is no page of hubless: give another name, or remove it.")


def render(figures: Mapping[str, Any], details: Mapping[str, Any]) -> str:
    """The page; texts and ids are cut shorter until it is small enough."""
    n_drawn = len(details["items"]["id"])
    allowed = SIZE * max(1.0, n_drawn / OBJECTS)
    page = ""
    for lengths in LENGTHS:
        page = _filled(figures, _cut(details, *lengths))
        if len(page.encode()) <= allowed:
            break
    return page


def _cut(details: Mapping[str, Any], point: int, told: int, name: int) -> dict[str, Any]:
    """The same with shorter texts and ids."""
    shorter = dict(details)
    for part in ("items", "queries"):
        texts, ids = details[part]["text"], details[part]["id"]
        kept = None if texts is None or point == 0 else [cut(text, point) for text in texts]
        shorter[part] = {**details[part], "text": kept, "id": [cut(own, name) or "" for own in ids]}
    for part in ("hubs", "changed"):
        shorter[part] = [_cut_told(own, told, name) for own in details[part]]
    return shorter


def _cut_told(value: Any, told: int, name: int) -> Any:
    """A card or a changed query with shorter texts and ids, those of its neighbours too."""
    if isinstance(value, list):
        return [_cut_told(own, told, name) for own in value]
    if not isinstance(value, dict):
        return value
    lengths = {"text": told, "id": name}
    return {
        key: cut(own, lengths[key]) if key in lengths else _cut_told(own, told, name)
        for key, own in value.items()
    }


def _filled(figures: Mapping[str, Any], details: Mapping[str, Any]) -> str:
    """The template with its marks replaced, each once, so that no text of a user is taken for a mark."""
    assets = files(__package__) / "assets"
    parts = {
        "{{title}}": html.escape(str(figures["title"])),
        "{{noscript}}": _without_script(figures),
        "/*{{css}}*/": (assets / "page.css").read_text(encoding="utf-8"),
        "/*{{js}}*/": (assets / "page.js").read_text(encoding="utf-8"),
        "{{figures}}": inside_script(figures),
        "{{details}}": pack(details),
    }
    template = (assets / "page.html").read_text(encoding="utf-8")
    marks = "|".join(re.escape(mark) for mark in parts)
    return encodable(re.sub(marks, lambda found: parts[found.group()], template))


def inside_script(value: Any) -> str:
    """JSON that cannot end the element it is in: no <, no >, no &, no line separators."""
    told = json.dumps(as_json(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for letter in "<>&\u2028\u2029":
        told = told.replace(letter, f"\\u{ord(letter):04x}")
    return encodable(told)


def pack(details: Any) -> str:
    """Base64 of gzip of JSON, with arrays as {"type", "data"}; the same bytes for the same details."""
    told = json.dumps(_encoded(details), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(told.encode("utf-8", "replace"), 6, mtime=0)).decode()


def _encoded(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        little = value.astype(value.dtype.newbyteorder("<"))
        return {"type": TYPES[little.dtype.str], "data": base64.b64encode(little.tobytes()).decode()}
    if isinstance(value, dict):
        return {name: _encoded(own) for name, own in value.items()}
    if isinstance(value, list):
        return [_encoded(own) for own in value]
    return as_json(value)


def _without_script(figures: Mapping[str, Any]) -> str:
    told = figures["summary"]
    return (
        f"<h1>{html.escape(str(figures['title']))}</h1><p>{html.escape(told['sentence'])}</p>"
        f"<p><strong>{html.escape(told['verdict']['title'])}.</strong> "
        f"{html.escape(told['verdict']['words'])}</p>{table(told['figures'])}"
        "<p>The charts of this page need JavaScript; it runs in the page alone and asks no network.</p>"
    )


def table(tiles: list[dict[str, Any]]) -> str:
    """The four figures as a table of HTML."""
    rows = [
        f"<tr><th scope='row' style='text-align:left'>{html.escape(tile['title'])}</th>"
        f"<td>{shown(tile['before'], tile['form'])}</td><td>{shown(tile['after'], tile['form'])}</td></tr>"
        for tile in tiles
    ]
    head = "<tr><th></th><th scope='col'>before</th><th scope='col'>after</th></tr>"
    return f"<table>{head}{''.join(rows)}</table>"


def shown(value: float, form: str) -> str:
    """A number as the script shows it, which rounds halves up."""
    scale, digits, unit = FORMS[form]
    return f"{Decimal(scale * value).quantize(Decimal(digits), ROUND_HALF_UP)}{unit}"


def small(figures: Mapping[str, Any]) -> str:
    """A small version for a notebook: verdict, table and skyline, without a script."""
    told, line = figures["summary"], figures["skyline"]
    return encodable(
        "<div style='max-width:36rem;font-family:sans-serif'>"
        f"<p><strong>{html.escape(told['verdict']['title'])}.</strong> {html.escape(told['sentence'])}</p>"
        f"<div style='display:flex;flex-wrap:wrap;gap:1.5rem;align-items:center'>{table(told['figures'])}"
        f"{_sparkline(line)}</div>"
        f"<p style='opacity:.75'>{html.escape(told['verdict']['words'])} "
        '<code>.save("page.html")</code> writes the whole page.</p></div>'
    )


def _sparkline(line: Mapping[str, Any], width: int = 220, height: int = 90) -> str:
    """N_k in falling order before and after, both axes logarithmic."""
    rank = np.log(np.asarray(line["rank"], dtype=float))
    top = np.log1p(max(float(np.max(line["before"])), float(np.max(line["after"])), 1.0))
    x = rank / (rank[-1] or 1.0) * (width - 4) + 2

    def path(values: Any, colour: str) -> str:
        y = height - 2 - np.log1p(np.asarray(values, dtype=float)) / top * (height - 4)
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
        return f"<polyline points='{points}' fill='none' stroke='{colour}' stroke-width='2'/>"

    title = "N10 of every item in falling order: orange before, blue after; both axes logarithmic"
    return (
        f"<svg role='img' aria-label='{title}' width='{width}' height='{height}'><title>{title}</title>"
        f"{path(line['before'], '#D55E00')}{path(line['after'], '#0072B2')}</svg>"
    )
