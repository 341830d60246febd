"""How a Parquet or Arrow file is written, so that its moved copy is written in the same way.

Kept of Parquet: row groups and, by column, compression, encoding, statistics and Bloom filters; the format
and page versions, the page index, the order that rows are sorted in, and what types are stored as. The level
of a compression and the size of pages are not in the file; the writer's defaults are used. Kept of Arrow
(Feather): record batches and their compression.
"""

import math
import struct
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...support.imports import need

HELD = 1 << 29  # bytes: a row group is written whole, and a larger one in parts
DELTA = ("DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY")
BIT = "BYTE_STREAM_SPLIT"
PAGE_V2 = b"\x15\x06"  # how the header of a data page of version 2 starts, in Thrift's compact protocol
FALSE_POSITIVES = 0.05  # of Bloom filters; the file tells only how large they are


# --- Parquet -----------------------------------------------------------------------------------------------


def parquet_options(file: Any, path: Path) -> dict[str, Any]:
    """Return the options of a ParquetWriter for a file like an open ParquetFile."""
    metadata = file.metadata
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    if not groups:
        return {}
    chunks: dict[str, list[Any]] = {}  # by path of a column: its part in each row group
    for group in groups:
        for i in range(group.num_columns):
            chunks.setdefault(group.column(i).path_in_schema, []).append(group.column(i))
    first = {name: parts[0] for name, parts in chunks.items()}
    options = {
        "version": metadata.format_version,
        "data_page_version": "2.0" if _has_new_pages(path, first) else "1.0",
        "compression": {name: _codec(chunk) for name, chunk in first.items()},
        "write_statistics": _where(chunks, lambda chunk: chunk.is_stats_set),
        "write_page_index": any(chunk.has_offset_index for parts in chunks.values() for chunk in parts),
        "store_schema": b"ARROW:schema" in (metadata.metadata or {}),
        "use_compliant_nested_type": not any(".list.item" in name for name in chunks),
        "use_deprecated_int96_timestamps": any(c.physical_type == "INT96" for c in first.values()),
        "sorting_columns": groups[0].sorting_columns or None,
    }
    return {**options, **_encodings(chunks), **_rare_options(metadata, first)}


def _where(chunks: dict[str, list[Any]], is_so: Any) -> list[str]:
    return [name for name, parts in chunks.items() if any(map(is_so, parts))]


def _codec(chunk: Any) -> str:
    return "NONE" if chunk.compression == "UNCOMPRESSED" else str(chunk.compression)


def _encodings(chunks: dict[str, list[Any]]) -> dict[str, Any]:
    """Return the options of encodings: a dictionary first, as writers do, or one of the others."""
    coded = _where(chunks, lambda chunk: chunk.has_dictionary_page)
    others = {name: parts[0].encodings for name, parts in chunks.items() if name not in coded}
    delta = {name: next((d for d in DELTA if d in names), None) for name, names in others.items()}
    chosen = {name: encoding for name, encoding in delta.items() if encoding is not None}
    chosen |= {name: BIT for name, names in others.items() if BIT in names}
    return {"use_dictionary": coded, "column_encoding": chosen or None}


def _rare_options(metadata: Any, first: dict[str, Any]) -> dict[str, Any]:
    """Return options that not every version of pyarrow has, only where the file needs them."""
    options: dict[str, Any] = {}
    kinds = (metadata.schema.column(i) for i in range(len(metadata.schema.names)))
    if any("Decimal" in str(kind.logical_type) and "INT" in kind.physical_type for kind in kinds):
        options["store_decimal_as_integer"] = True
    sizes = {name: getattr(chunk, "bloom_filter_length", None) for name, chunk in first.items()}
    # bits of a filter = −8 n / ln(1 − p^(1/8)); its bytes are a power of two, after a short header
    per_value = -8 / math.log(1 - FALSE_POSITIVES ** (1 / 8)) / 8
    filters = {
        name: {"ndv": max(1, int(2 ** (size.bit_length() - 1) / per_value)), "fpp": FALSE_POSITIVES}
        for name, size in sizes.items()
        if size
    }
    return {**options, "bloom_filter_options": filters} if filters else options


def _has_new_pages(path: Path, first: dict[str, Any]) -> bool:
    with path.open("rb") as file:
        file.seek(next(iter(first.values())).data_page_offset)
        return file.read(len(PAGE_V2)) == PAGE_V2


def group_rows(metadata: Any, row: int) -> Iterator[int]:
    """Yield the rows of each row group; a group larger than HELD is divided. `row`: bytes of a vector."""
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        n_parts = max(1, math.ceil(max(group.total_byte_size, group.num_rows * row) / HELD))
        yield from _divided(group.num_rows, min(n_parts, max(1, group.num_rows)))


def _divided(rows: int, n_parts: int) -> Iterator[int]:
    for i in range(n_parts):
        yield rows * (i + 1) // n_parts - rows * i // n_parts


# --- Arrow -------------------------------------------------------------------------------------------------


def batch_rows(path: Path) -> tuple[list[int], str | None]:
    """Return the rows of each record batch of an Arrow file, and how the first one is compressed.

    pyarrow does not tell the compression, and would decompress all batches to count rows. Of messages in an
    unusual place, nothing is known.
    """
    pa = need("pyarrow", "files")
    rows: list[int] = []
    codec = None
    with suppress(pa.ArrowException, struct.error, IndexError), pa.memory_map(str(path)) as file:
        file.seek(8)  # the name of the format; then messages as in a stream
        for message in _messages(pa.ipc.MessageReader.open_stream(file)):
            if message.type == "record batch":
                length, how = _batch_header(message.metadata.to_pybytes())
                codec = how if not rows else codec
                rows.append(length)
    return rows, codec


def _messages(reader: Any) -> Iterator[Any]:
    while True:
        try:
            yield reader.read_next_message()
        except StopIteration:
            return


# A table of FlatBuffers starts with the distance back to its list of places of fields.
# Message: version, type, header; RecordBatch: length, nodes, buffers, compression; BodyCompression: codec.
def _batch_header(data: bytes) -> tuple[int, str | None]:
    def field(table: int, number: int) -> int:
        places = table - struct.unpack_from("<i", data, table)[0]
        (size,) = struct.unpack_from("<H", data, places)
        place = 4 + 2 * number
        (offset,) = struct.unpack_from("<H", data, places + place) if place < size else (0,)
        return table + offset if offset else 0

    def follow(place: int) -> int:
        return place + int(struct.unpack_from("<I", data, place)[0])

    batch = follow(field(follow(0), 2))
    rows = field(batch, 0)
    length = int(struct.unpack_from("<q", data, rows)[0]) if rows else 0
    compression = field(batch, 3)
    if not compression:
        return length, None
    codec = field(follow(compression), 0)
    return length, "zstd" if codec and data[codec] == 1 else "lz4"


# --- both --------------------------------------------------------------------------------------------------


class Regrouped:
    """Tables of any length, written in groups of given lengths; rows beyond those as they come."""

    def __init__(self, lengths: Iterable[int], write: Any) -> None:
        self._lengths = (length for length in lengths if length > 0)
        self._write = write
        self._left = next(self._lengths, None)  # rows that the group still lacks
        self._held: list[Any] = []

    def add(self, table: Any) -> None:
        """Add rows, and write every group that is then complete."""
        while self._left is not None and table.num_rows >= self._left:
            self._held.append(table.slice(0, self._left))
            table = table.slice(self._left)
            self.close()
            self._left = next(self._lengths, None)
        if table.num_rows:
            self._held.append(table)
            if self._left is None:
                self.close()
            else:
                self._left -= table.num_rows

    def close(self) -> None:
        """Write what is held."""
        if self._held:
            self._write(need("pyarrow", "files").concat_tables(self._held))
            self._held = []
