"""One HTML file that needs nothing else: the template of `assets/` with figures and details inside."""

import base64
import gzip
import html
import json
import os
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from ..support.outputs import check_output, real_path
from ..support.text import as_json, encodable
from .colours import LIGHT, colour_rules
from .details import LONG, NAME, SHORT, cut
from .numerals import in_form

SIZE = 2_000_000  # bytes, of a page with at most OBJECTS drawn, without pictures; with more, it may be larger
OBJECTS = 10_000
# Characters of the texts of points, of texts on cards and in changed queries, and of ids: the first that fit
LENGTHS = (
    *((SHORT, LONG, NAME), (150, 1000, NAME), (80, 500, NAME), (40, 200, NAME)),
    *((0, 200, NAME), (0, 80, NAME), (0, 60, NAME), (0, 60, 40), (0, 40, 24), (0, 40, 12)),
)
TYPES = {"|u1": "u8", "<u2": "u16", "<u4": "u32", "<i4": "i32", "<f4": "f32"}
GENERATOR = b'<meta name="generator" content="hubless report">'


def check_page(path: str | os.PathLike[str]) -> Path:
    """Return where a page is written, links followed; OSError where it cannot be.

    ValueError where the file exists and is not a hubless page: no data is overwritten.
    """
    file = real_path(path)
    if file.is_dir():
        raise ValueError(f"{path} is a folder; give the name of a file, such as {Path(path) / 'page.html'}.")
    if file.exists() and GENERATOR not in _start_of(file):
        raise ValueError(f"{path} exists and is not a hubless page: give another name, or remove it.")
    return check_output(path)


def _start_of(file: Path) -> bytes:
    with file.open("rb") as opened:
        return opened.read(1000)


def render(figures: Mapping[str, Any], details: Mapping[str, Any]) -> str:
    """Return the page; texts and ids are cut shorter until it is small enough."""
    n_drawn = len(details["items"]["id"])
    pictures = sum(len(picture) for part in details["pictures"].values() for picture in part["picture"])
    allowed = SIZE * max(1.0, n_drawn / OBJECTS) + pictures
    page = ""
    for lengths in LENGTHS:
        page = _fill_template(figures, _shorten(details, *lengths))
        if len(page.encode()) <= allowed:
            break
    return page


def _shorten(details: Mapping[str, Any], point: int, card: int, name: int) -> dict[str, Any]:
    """Return the details with shorter texts and ids."""
    shorter = dict(details)
    for part in ("items", "queries"):
        shorter[part] = _shorten_columns(details[part], point, name)
    others = _shorten_columns(details["explorer"]["items"], point, name)
    shorter["explorer"] = {**details["explorer"], "items": others}
    for part in ("hubs", "families", "changed"):
        shorter[part] = _shorten_entry(details[part], card, name)
    return shorter


def _shorten_columns(columns: Mapping[str, Any], text: int, name: int) -> dict[str, Any]:
    """Return points with shorter texts and ids; without texts where there is no room for any."""
    texts = columns["text"]
    kept = None if texts is None or text == 0 else [cut(value, text) for value in texts]
    return {**columns, "text": kept, "id": [cut(key, name) or "" for key in columns["id"]]}


def _shorten_entry(value: Any, text: int, name: int) -> Any:
    """Return cards or changed queries with shorter texts and ids, those of their neighbours too."""
    if isinstance(value, list):
        return [_shorten_entry(entry, text, name) for entry in value]
    if not isinstance(value, dict):
        return value
    lengths = {"text": text, "id": name}
    return {
        key: cut(entry, lengths[key]) if key in lengths else _shorten_entry(entry, text, name)
        for key, entry in value.items()
    }


def _fill_template(figures: Mapping[str, Any], details: Mapping[str, Any]) -> str:
    """Replace the marks of the template in one pass, so that no text of a user is taken for a mark."""
    assets = files(__package__) / "assets"
    parts = {
        "{{title}}": html.escape(str(figures["title"])),
        "{{noscript}}": _without_script(figures),
        "/*{{css}}*/": colour_rules() + (assets / "page.css").read_text(encoding="utf-8"),
        "/*{{js}}*/": (assets / "page.js").read_text(encoding="utf-8"),
        "{{figures}}": inside_script(figures),
        "{{details}}": pack(details),
    }
    template = (assets / "page.html").read_text(encoding="utf-8")
    marks = "|".join(re.escape(mark) for mark in parts)
    return encodable(re.sub(marks, lambda mark: parts[mark.group()], template))


def inside_script(value: Any) -> str:
    """Return JSON that cannot end the element it is in: no <, no >, no &, no line separators."""
    text = json.dumps(as_json(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return encodable(text)


def pack(details: Any) -> str:
    """Return base64 of gzip of JSON, with arrays as {"type", "data"}; equal details give equal bytes."""
    text = json.dumps(
        details, default=_encode_array, ensure_ascii=False, allow_nan=False, separators=(",", ":")
    )
    return base64.b64encode(gzip.compress(text.encode("utf-8", "replace"), 6, mtime=0)).decode()


def _encode_array(array: np.ndarray) -> dict[str, str]:
    little = array.astype(array.dtype.newbyteorder("<"))
    return {"type": TYPES[little.dtype.str], "data": base64.b64encode(little.tobytes()).decode()}


def _without_script(figures: Mapping[str, Any]) -> str:
    """Return what a page shows where JavaScript is off."""
    summary = figures["summary"]
    return (
        f"<h1>{html.escape(str(figures['title']))}</h1><p>{html.escape(summary['sentence'])}</p>"
        f"<p><strong>{html.escape(summary['verdict']['title'])}.</strong> "
        f"{html.escape(summary['verdict']['words'])}</p>{_table(summary['figures'])}"
        "<p>The charts of this page need JavaScript, which runs in the page and uses no network.</p>"
    )


def _table(tiles: list[dict[str, Any]]) -> str:
    """Return the four figures as an HTML table."""
    rows = [
        f"<tr><th scope='row' style='text-align:left'>{html.escape(tile['title'])}</th>"
        f"<td>{in_form(tile['before'], tile['form'])}</td>"
        f"<td>{in_form(tile['after'], tile['form'])}</td></tr>"
        for tile in tiles
    ]
    head = "<tr><th></th><th scope='col'>before</th><th scope='col'>after</th></tr>"
    return f"<table>{head}{''.join(rows)}</table>"


def notebook_html(figures: Mapping[str, Any]) -> str:
    """Return a small version for a notebook: verdict, table and skyline, without a script."""
    summary = figures["summary"]
    return encodable(
        "<div style='max-width:36rem;font-family:sans-serif'>"
        f"<p><strong>{html.escape(summary['verdict']['title'])}.</strong> "
        f"{html.escape(summary['sentence'])}</p>"
        f"<div style='display:flex;flex-wrap:wrap;gap:1.5rem;align-items:center'>{_table(summary['figures'])}"
        f"{_sparkline(figures['skyline'], figures['counts']['hub_k'])}</div>"
        f"<p style='opacity:.75'>{html.escape(summary['verdict']['words'])} "
        '<code>.save("page.html")</code> writes the whole page.</p></div>'
    )


def _sparkline(line: Mapping[str, Any], k: int, width: int = 220, height: int = 90) -> str:
    """Draw N_k in falling order before and after, both axes logarithmic."""
    rank = np.log(np.asarray(line["rank"], dtype=float))
    top = np.log1p(max(float(np.max(line["before"])), float(np.max(line["after"])), 1.0))
    x = rank / (rank[-1] or 1.0) * (width - 4) + 2

    def path(state: str) -> str:
        y = height - 2 - np.log1p(np.asarray(line[state], dtype=float)) / top * (height - 4)
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
        return f"<polyline points='{points}' fill='none' stroke='{LIGHT[state]}' stroke-width='2'/>"

    title = f"N{k} of every item in falling order: orange before, blue after; both axes logarithmic"
    return (
        f"<svg role='img' aria-label='{title}' width='{width}' height='{height}'><title>{title}</title>"
        f"{path('before')}{path('after')}</svg>"
    )
