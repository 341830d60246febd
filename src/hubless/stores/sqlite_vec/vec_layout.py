"""What the declaration of a vec0 table says: its columns, and the tables in which sqlite-vec keeps it.

sqlite-vec keeps a table in others, its *shadow tables*: NAME_chunks, NAME_rowids and so on. It cannot rename
a table by itself: `ALTER TABLE … RENAME` leaves those behind. So a switch renames them all, and a table that
is kept in another way than this file knows is refused.
"""

import re
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..checks import choose_vectors
from ..sql.sql_names import quoted
from ..store import StoreError

NAME = r"""(?:"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\]|'(?:[^']|'')*'|[^\s"'`\[(]+)"""
DECLARED = re.compile(
    rf"CREATE\s+VIRTUAL\s+TABLE\s+{NAME}\s+USING\s+[\"'`\[]?vec0[\"'`\]]?\s*\((.*)\)\s*;?", re.I | re.S
)
WORD = r"\s*(?P<name>[A-Za-z_]\w*)\s+"
KINDS = {  # kind of a column → how it is declared
    "vector": rf"{WORD}(?P<type>float|f32|int8|i8|bit)\s*\[\s*(?P<width>\d+)\s*\]"
    r"(?:\s*distance_metric\s*=\s*(?P<metric>\w+))?\s*",
    "key": rf"{WORD}(?P<type>integer|int|text)\s+primary\s+key\s*",
    "partition": rf"{WORD}(?P<type>integer|int|text)\s+partition\s+key\s*",
    "auxiliary": rf"\s*\+{WORD}(?P<type>\w+)\s*",
    "metadata": rf"{WORD}(?P<type>boolean|bool|integer|int|float|double|text)\s*",
    "option": r"\s*(?P<name>chunk_size)\s*=\s*(?P<type>\d+)\s*",
}
TYPES = {"f32": "float", "i8": "int8"}
METRICS = {"l2": "l2", "cosine": "cosine", "hamming": "l2"}  # of bits: ‖x − z‖² is the Hamming distance
MOST = 16  # columns of a kind
SUFFIXES = (
    *("info", "chunks", "rowids", "auxiliary"),
    *(f"{part}{i:02d}" for part in ("vector_chunks", "metadatachunks", "metadatatext") for i in range(MOST)),
)


class Column(NamedTuple):
    """A column, or an option, of a declaration."""

    kind: str  # of KINDS
    name: str
    type: str
    width: int  # of a vector
    metric: str
    text: str  # as it is declared

    def value(self) -> str:
        """Return how a value of it is written in a statement."""
        return {"int8": "vec_int8(?)", "bit": "vec_bit(?)"}.get(self.type, "?")

    def itemsize(self) -> int:
        """Bytes of a vector."""
        return self.width * 4 if self.type == "float" else self.width // (8 if self.type == "bit" else 1)


@dataclass(frozen=True)
class VecLayout:
    """A vec0 table: its columns, and which of them has the vectors."""

    table: str  # as the database spells it
    columns: tuple[Column, ...]
    vector: Column

    @property
    def id(self) -> str:
        """Name of the column of ids."""
        return next((column.name for column in self.columns if column.kind == "key"), "rowid")

    @property
    def has_text_ids(self) -> bool:
        """Whether ids are texts."""
        return any(column.kind == "key" and column.type == "text" for column in self.columns)

    @property
    def others(self) -> tuple[Column, ...]:
        """The columns besides the id and the vectors."""
        kinds = ("vector", "partition", "auxiliary", "metadata")
        return tuple(each for each in self.columns if each.kind in kinds and each != self.vector)

    def suffixes(self) -> list[str]:
        """Return the ends of the names of its shadow tables."""
        counts = {kind: [c for c in self.columns if c.kind == kind] for kind in KINDS}
        texts = [i for i, column in enumerate(counts["metadata"]) if column.type == "text"]
        return [
            *("info", "chunks", "rowids"),
            *(["auxiliary"] if counts["auxiliary"] else []),
            *(f"vector_chunks{i:02d}" for i in range(len(counts["vector"]))),
            *(f"metadatachunks{i:02d}" for i in range(len(counts["metadata"]))),
            *(f"metadatatext{i:02d}" for i in texts),
        ]

    def shadow(self, suffix: str) -> str:
        """Return the quoted name of a shadow table."""
        return quoted(f"{self.table}_{suffix}")

    @property
    def vectors(self) -> str:
        """The quoted name of the shadow table of the vectors."""
        declared = [column for column in self.columns if column.kind == "vector"]
        return self.shadow(f"vector_chunks{declared.index(self.vector):02d}")

    def declaration(self, width: int | None) -> str:
        """Return the columns as they are declared, with vectors of another width."""
        new = re.sub(r"\[\s*\d+\s*\]", f"[{width}]", self.vector.text)
        return ",".join(c.text if c != self.vector or width is None else new for c in self.columns)

    def is_like(self, other: "VecLayout", width: int | None) -> bool:
        """Say whether another table has the same columns; with `width`, vectors may have other widths."""
        if width is None:
            return self.columns == other.columns
        return VecLayout.declaration(self, width) == other.declaration(width)


def read_layout(connection: Any, name: str, table: str, vector: str | None) -> VecLayout:
    """Return what the database has on a table; StoreError where it is missing, or is not of sqlite-vec."""
    query = "SELECT name, type, sql FROM sqlite_master WHERE lower(name) = lower(?) AND tbl_name = name"
    found = connection.execute(query, [table]).fetchone()
    if found is None:
        query = "SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL TABLE%vec0%' ORDER BY name"
        known = ", ".join(str(row[0]) for row in connection.execute(query))
        raise StoreError(f"{name} does not exist; tables of sqlite-vec are {known or 'none'}.")
    declared = DECLARED.fullmatch(found[2].strip()) if isinstance(found[2], str) else None
    if found[1] != "table" or declared is None:
        raise StoreError(
            f"{name} is not a table of sqlite-vec: expected one made by CREATE VIRTUAL TABLE … USING vec0(…)."
        )
    columns = tuple(_column(name, text) for text in declared[1].split(","))
    return VecLayout(found[0], columns, _vector(name, columns, vector))


def _column(name: str, text: str) -> Column:
    for kind, pattern in KINDS.items():
        found = re.fullmatch(pattern, text, re.I | re.ASCII)
        if found is not None:
            parts: dict[str, str] = {"width": "0", "metric": "", **found.groupdict()}
            type = TYPES.get(parts["type"].lower(), parts["type"].lower())
            metric = (parts["metric"] or ("hamming" if type == "bit" else "l2")).lower()
            return Column(kind, parts["name"], type, int(parts["width"]), metric, text)
    raise StoreError(
        f"{name} is declared with {text.strip()[:80]!r}, which hubless does not know, so it cannot copy it. "
        "Update hubless, or make the table without it."
    )


def _vector(name: str, columns: tuple[Column, ...], requested: str | None) -> Column:
    """Return the column of vectors: the requested one, or the only one of floats, or else the only one."""
    known = [column for column in columns if column.kind == "vector"]
    floats = [column for column in known if column.type == "float"] or known
    chosen = choose_vectors(name, [c.name for c in (floats if requested is None else known)], requested)
    vector = next(column for column in known if column.name == chosen)
    if vector.metric not in METRICS:
        raise StoreError(
            f"{name} compares {vector.name} by {vector.metric.upper()}, which hubless does not know; it "
            "knows L2 and cosine. Make the table with one of these."
        )
    return vector


def check_shadows(connection: Any, name: str, layout: VecLayout) -> None:
    """Refuse a table that is kept in other tables than those that a switch renames."""
    start = f"{layout.table}_".lower()
    every = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    ends = {each[len(start) :].lower() for each in every if each.lower().startswith(start)}
    wanted = set(layout.suffixes())
    missing, more = wanted - {"info"} - ends, (ends & set(SUFFIXES)) - wanted
    if missing or more:
        raise StoreError(
            f"{name} is kept in another way than hubless knows: {', '.join(sorted(missing | more))} "
            f"{'is missing' if missing else 'is unknown'}. It may be damaged, or of another version of "
            "sqlite-vec."
        )


def check_triggers(connection: Any, name: str, layout: VecLayout) -> None:
    """Refuse triggers that write to a table, or to those in which it is kept.

    After a switch, they would write vectors that are not moved to the moved table.
    """
    own = {f"{layout.table}_{suffix}".lower() for suffix in layout.suffixes()}
    word = re.compile(rf"(?<!\w){re.escape(layout.table)}(?!\w)", re.I)
    for trigger, table, text in connection.execute(
        "SELECT name, tbl_name, sql FROM sqlite_master WHERE type = 'trigger'"
    ):
        body = re.split(r"\bBEGIN\b", str(text), maxsplit=1, flags=re.I)[-1]
        writes = word.search(body) and re.search(r"\b(INSERT|REPLACE|UPDATE)\b", body, re.I)
        if table.lower() in own or writes:
            raise StoreError(
                f"the trigger {trigger} writes to {name}: after the switch, it would put vectors that are "
                "not moved into the moved table. Drop it, and let the program that adds vectors move them "
                "first (hubless move)."
            )
