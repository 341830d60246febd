"""What all pages of results share: tables in Markdown, numbers as they are shown, remarks."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .record import RawFile

MISSING = "not measured yet"
QUICK = "A quick look at tiny sizes, which proves nothing.\n"


def grid(head: Sequence[str], rows: Sequence[Sequence[str]], align: str = "---:") -> list[str]:
    """Return the lines of a table: names to the left, figures to the right unless they are words."""
    lines = ["| " + " | ".join(head) + " |", "| --- |" + f" {align} |" * (len(head) - 1)]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows)]


def shown(value: float) -> str:
    """Return a number with three digits, or all before the point."""
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def is_quick(raw: RawFile) -> bool:
    """Whether a raw file is of tiny sizes."""
    return bool(raw.get("settings", {}).get("quick"))


def sections(
    raw: Mapping[str, RawFile], titles: Mapping[str, str], body: Callable[[str, Any], list[str]]
) -> list[str]:
    """Return a section for each verb, made by `body` of the verb and its cases."""
    lines = []
    for verb, title in titles.items():
        lines.append(f"## {title}\n")
        if verb not in raw:
            lines.append(f"{MISSING.capitalize()}.\n")
            continue
        lines += [QUICK] if is_quick(raw[verb]) else []
        lines += [*body(verb, raw[verb]["cases"]), ""]
    return lines


def machines(raw: Mapping[str, RawFile]) -> list[str]:
    """Return a section with each machine and its software once, and what was measured there."""
    where: dict[str, list[str]] = {}
    for verb, file in raw.items():
        date = file.get("date") or file["machine"].get("date")
        where.setdefault(machine(file), []).append(f"{verb} ({date})")
    return ["## Machines\n", *(f"- {', '.join(verbs)}: {text}" for text, verbs in where.items())]


def machine(raw: RawFile) -> str:
    """Return the machine and the software of a raw file, in a line."""
    about = raw["machine"]
    parts = [f"{about.get('processor')}, {about.get('cores')} cores, {about.get('memory_gib')} GiB"]
    parts += [str(about["accelerator"])] if "accelerator" in about else []
    software = {name: about.get(name) for name in ("python", "hubless", "numpy", "scipy", "torch")}
    software |= raw.get("versions", {})
    parts.append(", ".join(f"{name} {value}" for name, value in software.items() if value))
    return "; ".join(parts)


def blas(raw: RawFile) -> list[str]:
    """Return the BLAS libraries of a raw file, a line each."""
    return [
        f"{library['package']}: {library['internal_api']} {library['version']} for "
        f"{library['architecture']} on {library['num_threads']} threads"
        + (f" (`{library['file']}`)" if library["file"] else "")
        for library in raw["machine"].get("blas", [])
    ]
