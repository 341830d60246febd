"""Draw the rooms of the package, and what each imports, into docs/design.md.

python docs/rooms.py           # rewrites the part between the two marks
"""

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.test_architecture import ROOMS, imports_of, parsed, room_of  # noqa: E402

PAGE = ROOT / "docs" / "design.md"
BEGIN, END = "<!-- rooms: made by docs/rooms.py -->", "<!-- end of rooms -->"


def graph(trees: dict[str, ast.Module]) -> dict[str, set[str]]:
    """Return the rooms that each room imports."""
    rooms: dict[str, set[str]] = {room: set() for room in ROOMS}
    for name, tree in trees.items():
        rooms[room_of(name)] |= {room_of(other) for other in imports_of(name, tree, set(trees))}
    return {room: others - {room} for room, others in rooms.items()}


def direct(rooms: dict[str, set[str]]) -> dict[str, set[str]]:
    """Leave out what a room reaches through another one, so that the drawing can be read."""
    reached: dict[str, set[str]] = {}
    for room in ROOMS:  # those above are known
        reached[room] = rooms[room].union(*(reached[other] for other in rooms[room]))
    return {
        room: {other for other in others if not any(other in reached[via] for via in others - {other})}
        for room, others in rooms.items()
    }


def page_part(trees: dict[str, ast.Module]) -> str:
    """Return the drawing and the table of the rooms, in Markdown."""
    rooms = graph(trees)
    arrows = [f"  {other} --> {room}" for room, others in direct(rooms).items() for other in sorted(others)]
    arrows = [arrow.replace("__init__", "hubless").replace("__main__", "main") for arrow in arrows]
    rows = []
    for room in ROOMS:
        is_folder = f"{room}.__init__" in trees
        words = ast.get_docstring(trees[f"{room}.__init__" if is_folder else room]) or ""
        shown = f"`{room}/`" if is_folder else f"`{room}.py`"
        rows.append(f"| {shown} | {words.splitlines()[0].rstrip('.')} |")
    drawing = ["```mermaid", "flowchart TD", *sorted(arrows), "```"]
    return "\n".join([*drawing, "", "| room | what it holds |", "| --- | --- |", *rows])


def picture(trees: dict[str, ast.Module]) -> str:
    """Draw the rooms from the first to the last as SVG, with an arc from each to those that use it."""
    rooms, places = direct(graph(trees)), {room: 14 + 20 * i for i, room in enumerate(ROOMS)}
    parts = []
    for room, others in rooms.items():
        for start, end in ((places[other], places[room]) for other in sorted(others)):
            reach = 190 + (end - start) * 0.8  # the arc's control points; its middle is at three quarters
            curve = f"M190 {start} C{reach:.0f} {start} {reach:.0f} {end} 190 {end}"
            parts.append(f'<path d="{curve}" marker-end="url(#rooms-arrow)"/>')
    names = {room: room.replace("__init__", "hubless").replace("__main__", "main") for room in ROOMS}
    texts = [f'<text x="180" y="{y + 5}">{names[room]}</text>' for room, y in places.items()]
    height = 28 + 20 * (len(ROOMS) - 1)
    arrow = (
        '<marker id="rooms-arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0 0 8 4 0 8z" fill="currentColor"/></marker>'
    )
    return (
        f'<svg viewBox="0 0 560 {height}" role="img" aria-label="Rooms and the rooms that use them" '
        f'style="max-width:560px;width:100%"><defs>{arrow}</defs>'
        f'<g fill="none" stroke="currentColor" opacity=".6">{"".join(parts)}</g>'
        f'<g fill="currentColor" text-anchor="end" font-size="14">{"".join(texts)}</g></svg>'
    )


def main() -> None:
    """Rewrite the part of the page."""
    before, rest = PAGE.read_text().split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n\n{page_part(parsed())}\n\n{END}{after}")


if __name__ == "__main__":
    main()
