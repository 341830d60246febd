"""Changes that make a valid file invalid: of bytes, of numbers in them, of JSON, of members of an archive."""

import copy
import io
import json
import re
import struct
import zipfile
from collections.abc import Sequence
from random import Random
from typing import Any

NUMBERS = (0, 1, 2, 3, 7, 8, 127, 128, 255, 256, 4096, 65535, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 32) - 1)
NUMBERS += (1 << 40, 1 << 48, (1 << 62) - 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
HOSTILE = (
    *(
        "",
        "\x1b[2J\x9b1m",
        "a\nb\r\x00c",
        "\u202ecod",
        "\ud800",
        "../../outside/canary",
        "/etc/passwd",
        "~root",
    ),
    *(
        "x" * 5000,
        "hubless",
        "model.safetensors",
        "__class__",
        "os.system",
        "%s%n{0}{x}",
        "NaN",
        "0",
        "-1",
        "é",
    ),
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 1 << 31, 1 << 63, -(1 << 63), 1 << 64, 10**30, 0.0, -0.0, 1e308, 5e-324),
    *(float("nan"), float("inf"), [], {}, [[]], [None], {"": None}, [0] * 1000, *HOSTILE),
)
TOKENS = (
    *(b"[", b"]", b"{", b"}", b'"', b",", b"\t", b"\n", b"\x00", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf"),
    *(b"\x1b[2J", b"NaN", b"1e999", b"null", b"|O", b"<f8", b"<f2", b">f4", b"<U9999999", b"<c16", b"()"),
    *(b"9" * 40, b"9" * 5000, b"[" * 5000, b'{"a":' * 5000, b"-", b"#", b"@", b":", b"/", b"%", b"\\u0000"),
)


def change_bytes(data: bytes, rng: Random, others: Sequence[bytes] = ()) -> bytes:
    """Return bytes with one to eight changes."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 5, 8))):
        change = rng.choice(
            (_flip, _flip, _number, _number, _number, _text_number, _cut, _drop, _repeat, _token)
        )
        if others and rng.random() < 0.1:
            _splice(changed, rng, rng.choice(others))
        else:
            change(changed, rng)
    return bytes(changed)


def _place(data: bytearray, rng: Random) -> int:
    """Return a place in the data; often near one of its ends, where formats keep their lengths."""
    size = len(data)
    where = rng.random()
    if where < 0.3:
        return rng.randrange(min(size, 160) + 1)
    return rng.randrange(max(0, size - 700), size + 1) if where < 0.6 else rng.randrange(size + 1)


def _flip(data: bytearray, rng: Random) -> None:
    if data:
        data[min(_place(data, rng), len(data) - 1)] ^= 1 << rng.randrange(8)


def _number(data: bytearray, rng: Random) -> None:
    """Overwrite 1, 2, 4 or 8 bytes by a number that is often wrong; mostly where such a number may be."""
    code = rng.choice("BHIQ")
    size = struct.calcsize(code)
    place = _place(data, rng)
    place -= place % size if rng.random() < 0.7 else 0
    value = rng.choice((*NUMBERS, len(data), rng.randrange(256), -rng.randrange(1, 9)))
    packed = (value % (1 << 8 * size)).to_bytes(size, rng.choice(("little", "little", "big")))
    data[place : place + size] = packed


def _text_number(data: bytearray, rng: Random) -> None:
    found = list(re.finditer(rb"\d+", data))
    if found:
        one = rng.choice(found)
        data[one.start() : one.end()] = str(
            rng.choice((*NUMBERS, -1, 10**30, "1e999", "0x1", "1.5"))
        ).encode()


def _cut(data: bytearray, rng: Random) -> None:
    del data[_place(data, rng) :]


def _drop(data: bytearray, rng: Random) -> None:
    place = _place(data, rng)
    del data[place : place + rng.choice((1, 2, 4, 8, 64))]


def _repeat(data: bytearray, rng: Random) -> None:
    place, size = _place(data, rng), rng.choice((1, 4, 8, 64))
    data[place:place] = data[place : place + size] * rng.choice((1, 2, 500 // size))


def _token(data: bytearray, rng: Random) -> None:
    place, token = _place(data, rng), rng.choice(TOKENS)
    data[place : place + rng.choice((0, len(token)))] = token


def _splice(data: bytearray, rng: Random, other: bytes) -> None:
    start = rng.randrange(len(other) + 1)
    place = _place(data, rng)
    data[place : place + rng.choice((0, 64))] = other[start : start + rng.choice((8, 64, 1000))]


# --- JSON --------------------------------------------------------------------------------------------------


def change_json(data: bytes, rng: Random, others: Sequence[bytes] = ()) -> bytes:
    """Return JSON with changed values, names or places; now and then with changed bytes instead."""
    if rng.random() < 0.15:
        return change_bytes(data, rng, others)
    tree = json.loads(data)
    try:
        for _ in range(rng.choice((1, 1, 2, 3))):
            tree = _change_tree(tree, rng)
        text = json.dumps(tree, indent=rng.choice((None, 1)))
    except RecursionError:  # nested values were put into each other
        text = "[" * 1000 + "]" * 1000
    if rng.random() < 0.05:  # a name that occurs twice
        text = re.sub(r'("[^"\n]*": )', r"\1 0, \1", text, count=1)
    return text.encode()


def _change_tree(tree: Any, rng: Random) -> Any:
    nodes = [(None, None), *_nodes(tree)]
    holder, key = rng.choice(nodes)
    if holder is None:
        return copy.deepcopy(rng.choice((*VALUES, [tree], {"a": tree}))) if rng.random() < 0.3 else tree
    change = rng.randrange(6)
    if change == 0:
        del holder[key]
    elif change == 1 and isinstance(holder, dict):
        holder[rng.choice(HOSTILE)] = holder.pop(key)
    elif change == 2:
        other, place = rng.choice(nodes[1:])
        holder[key] = copy.deepcopy(other[place])
    elif change == 3:
        holder[key] = _nested(rng.choice((50, 99, 300)), rng)
    else:
        holder[key] = copy.deepcopy(rng.choice(VALUES))
    return tree


def _nodes(tree: Any) -> list[tuple[Any, Any]]:
    """Return every place of a tree, as the list or object that it is in and its index or name."""
    found: list[tuple[Any, Any]] = []
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list | dict):
            keys = list(node) if isinstance(node, dict) else range(len(node))
            found += [(node, key) for key in keys]
            waiting += [node[key] for key in keys]
    return found


def _nested(levels: int, rng: Random) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = [value] if rng.random() < 0.5 else {"a": value}
    return value


def change_lines(data: bytes, rng: Random, others: Sequence[bytes] = ()) -> bytes:
    """Return JSON lines of which one is changed."""
    lines = data.splitlines()
    place = rng.randrange(len(lines))
    lines[place] = change_json(lines[place], rng, others)
    return b"\n".join(lines)


# --- containers --------------------------------------------------------------------------------------------


def change_archive(data: bytes, rng: Random, others: Sequence[bytes] = ()) -> bytes:
    """Return a .npz archive whose members are changed and its checksums right, or with changed bytes."""
    if rng.random() < 0.4:
        return change_bytes(data, rng, others)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [(info.filename, archive.read(info)) for info in archive.infolist()]
    place = rng.randrange(len(members))
    name, content = members[place]
    members[place] = (name, change_bytes(content, rng))
    if rng.random() < 0.1:
        members.append(
            (rng.choice(("../../outside/new.npy", "a\x1bb.npy", "plain.txt", "/abs.npy")), content)
        )
    made = io.BytesIO()
    kind = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA))
    with zipfile.ZipFile(made, "w", kind) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return made.getvalue()


def change_safetensors(data: bytes, rng: Random, others: Sequence[bytes] = ()) -> bytes:
    """Return a safetensors file with a changed header, of the right length, or with changed bytes."""
    if rng.random() < 0.4:
        return change_bytes(data, rng, others)
    size = int.from_bytes(data[:8], "little")
    header = change_json(data[8 : 8 + size], rng)
    return len(header).to_bytes(8, "little") + header + data[8 + size :]
