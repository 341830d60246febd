"""Small pictures inside a page: from arrays of pixels, from files and from bytes."""

import base64
import os
import struct
import zlib
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays import to_numpy
from ..support.untrusted_json import read_bounded

SIDE = 96  # pixels of the longer side
BYTES = 20_000  # of a picture file that is taken as it is
MOST = 64 << 20  # bytes of a picture file that is read
KINDS = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif"}


def thumbnail(image: Any, side: int = SIDE, limit: int = BYTES) -> str | None:
    """Return a small picture as a data: address; None where there is none that can be shown.

    `image` is an array (height, width) or (height, width, 3), the bytes of a file, or its path. Files of at
    most `limit` bytes are taken as they are; `side` is the longer side of what is made smaller, in pixels.
    """
    if image is None or (isinstance(image, str) and not image):
        return None
    if hasattr(image, "shape"):
        return _address("png", _png(_pixels(to_numpy(image), side)))
    data = image if isinstance(image, bytes) else _read(image)
    kind = next((kind for start, kind in KINDS.items() if data.startswith(start)), None)
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        kind = "webp"
    if kind is None:
        return None  # an SVG can run scripts, and other kinds are unknown
    return _address(kind, data) if len(data) <= limit else _smaller(data, side)


def _read(path: Any) -> bytes:
    """Read a file that an item names; empty where there is none, for a pipe or a device, and beyond MOST."""
    try:
        return read_bounded(Path(os.path.expanduser(str(path))), MOST)
    except (OSError, ValueError):  # ValueError, too, for a name with a NUL
        return b""


def _address(kind: str, data: bytes) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"


def _smaller(data: bytes, side: int) -> str | None:
    """Make a large picture small, where Pillow is installed; it comes with matplotlib."""
    try:
        from PIL import Image
    except ImportError:
        return None
    kind = "png" if side >= SIDE else "jpeg"  # a third of the bytes; so small, nobody sees what is lost
    try:
        with Image.open(BytesIO(data)) as image:
            image.thumbnail((side, side))
            out = BytesIO()
            image.convert("RGB").save(out, kind)
    except (OSError, ValueError, Image.DecompressionBombError):
        return None
    return _address(kind, out.getvalue())


def _pixels(image: np.ndarray, side: int = SIDE) -> np.ndarray:
    """Return bytes of shape (height, width, 3); other numbers are scaled from least to largest."""
    if image.ndim not in (2, 3) or (image.ndim == 3 and image.shape[2] not in (1, 3)):
        raise ValueError(f"a picture is an array (height, width) or (height, width, 3); got {image.shape}.")
    if image.dtype != np.uint8:
        image = np.nan_to_num(np.asarray(image, dtype=np.float64))
        low, high = float(image.min()), float(image.max())
        image = ((image - low) * (255 / (high - low) if high > low else 0)).astype(np.uint8)
    step = -(-max(image.shape[:2]) // side)
    image = image[::step, ::step]
    image = image[:, :, None] if image.ndim == 2 else image
    return np.ascontiguousarray(np.broadcast_to(image, (*image.shape[:2], 3)))


def _png(pixels: np.ndarray) -> bytes:
    """Encode a PNG file: signature, header, the rows with a zero before each (no filter), end."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = [chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows, 9)), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)
