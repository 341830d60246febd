"""What a page shows of objects and queries: names, texts and pictures, cut to a length that a page bears."""

import base64
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays import to_numpy

NAME = 80  # characters of an id, or of the name of a class
LONG = 2000  # of a text on a card
PICTURE = 96  # pixels of the longer side
MISSING = ("NAType", "NaTType")  # what pandas has in the place of a value that is not there
BYTES = 20_000  # of a picture that is taken as it is
KINDS = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif"}


@dataclass(frozen=True)
class Shown:
    """Names, texts and pictures; texts and pictures where there are any."""

    ids: Sequence[Any]  # (n,)
    query_ids: Sequence[Any]  # (m,)
    texts: Sequence[Any] | None = None
    query_texts: Sequence[Any] | None = None
    images: Any = None  # (n,): paths, bytes, or an array (n, height, width) or (n, height, width, 3)
    title: str = "hubless"

    def check(self, n: int, m: int) -> None:
        """ValueError where there are not as many as objects or queries."""
        for name, count in (("ids", n), ("query_ids", m), ("texts", n), ("query_texts", m), ("images", n)):
            given = getattr(self, name)
            if given is not None and len(given) != count:
                what = "query" if "query" in name else "object"
                raise ValueError(f"{name} must have one entry per {what}, {count}; got {len(given)}.")


def cut(value: Any, length: int) -> str | None:
    """A text of at most so many characters; None for nothing."""
    if value is None or (isinstance(value, float) and np.isnan(value)) or type(value).__name__ in MISSING:
        return None
    text = str(value)
    if not text:
        return None
    if len(text) <= length:
        return text
    return text[: max(length - 1, 0)].rstrip() + "…"


def bounded(value: Any) -> Any:
    """The same with every text in it cut to a length that a page bears."""
    if isinstance(value, dict):
        return {key: bounded(own) for key, own in value.items()}
    if isinstance(value, list | tuple):
        return [bounded(own) for own in value]
    return cut(value, LONG) or "" if isinstance(value, str) else value


def name(value: Any) -> str:
    """An id or the name of a class, short enough for a line."""
    return cut(value, NAME) or ""


def thumbnail(image: Any) -> str | None:
    """A small picture as the address that holds it; None where there is none that can be shown."""
    if image is None or (isinstance(image, str) and not image):
        return None
    if hasattr(image, "shape"):
        return _address("png", _png(_pixels(np.asarray(to_numpy(image)))))
    data = image if isinstance(image, bytes) else _read(image)
    kind = next((kind for start, kind in KINDS.items() if data.startswith(start)), None)
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        kind = "webp"
    if kind is None:
        return None  # an SVG can run scripts, and what else it may be is not known
    return _address(kind, data) if len(data) <= BYTES else _smaller(data)


def _read(path: Any) -> bytes:
    """The bytes of a file; none where there is no such file."""
    try:
        return Path(str(path)).expanduser().read_bytes()
    except (OSError, ValueError, RuntimeError):  # a name too long, or with a NUL, or of nobody's home
        return b""


def _address(kind: str, data: bytes) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"


def _smaller(data: bytes) -> str | None:
    """A large picture made small, where Pillow is installed; it comes with matplotlib."""
    try:
        from PIL import Image
    except ImportError:
        return None
    try:
        with Image.open(BytesIO(data)) as image:
            image.thumbnail((PICTURE, PICTURE))
            out = BytesIO()
            image.convert("RGB").save(out, "PNG")
    except (OSError, ValueError, Image.DecompressionBombError):
        return None
    return _address("png", out.getvalue())


def _pixels(image: np.ndarray) -> np.ndarray:
    """(height, width, 3) of bytes; other numbers go from their least to their largest."""
    if image.ndim not in (2, 3) or (image.ndim == 3 and image.shape[2] not in (1, 3)):
        raise ValueError(f"a picture is an array (height, width) or (height, width, 3); got {image.shape}.")
    if image.dtype != np.uint8:
        image = np.nan_to_num(np.asarray(image, dtype=np.float64))
        low, high = float(image.min()), float(image.max())
        image = ((image - low) * (255 / (high - low) if high > low else 0)).astype(np.uint8)
    step = -(-max(image.shape[:2]) // PICTURE)
    image = image[::step, ::step]
    image = image[:, :, None] if image.ndim == 2 else image
    return np.ascontiguousarray(np.broadcast_to(image, (*image.shape[:2], 3)))


def _png(pixels: np.ndarray) -> bytes:
    """A PNG file: signature, header, the rows behind a zero each (no filter), end."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = [chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows, 9)), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)
