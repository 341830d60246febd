"""Pictures on a page, as Pillow reads them; and what must never be taken for one."""

import base64
import io
import os
from importlib import import_module

import numpy as np
import pytest
from PIL import Image

from hubless.evaluation import BeforeAfter, evaluate_classes
from hubless.report.details import Captions
from hubless.report.pictures import BYTES, SIDE, thumbnail
from hubless.report.report import ModelDescription, make_report


def encoded(kind, size=(8, 6), **how):
    """The bytes of a picture as Pillow writes it."""
    pixels = np.random.default_rng(0).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, kind, **how)
    return out.getvalue()


def decoded(address):
    """The kind that an address names, and the picture that it holds."""
    head, data = address.split(",", 1)
    assert head.startswith("data:image/")
    assert head.endswith(";base64")
    image = Image.open(io.BytesIO(base64.b64decode(data, validate=True)))
    image.load()
    return head[len("data:image/") : -len(";base64")], image


@pytest.mark.parametrize("shape", [(5, 7), (5, 7, 1), (5, 7, 3), (1, 1), (SIDE, 3)])
def test_bytes_are_shown_as_they_are(rng, shape):
    pixels = rng.integers(0, 256, shape, dtype=np.uint8)
    kind, image = decoded(thumbnail(pixels))
    assert (kind, image.format, image.mode) == ("png", "PNG", "RGB")
    grey = pixels.reshape(*shape[:2], -1)
    np.testing.assert_array_equal(np.asarray(image), np.repeat(grey, 3 // grey.shape[2], axis=2))


def test_other_numbers_go_from_black_to_white():
    pixels = np.array([[-1.0, 0.0], [1.0, np.nan]])
    _, image = decoded(thumbnail(pixels))
    np.testing.assert_array_equal(np.asarray(image)[..., 0], [[0, 127], [255, 127]])
    _, flat = decoded(thumbnail(np.full((3, 3), 7.0)))
    assert not np.asarray(flat).any()


def test_a_large_array_is_made_small(rng):
    pixels = rng.integers(0, 256, (500, 300, 3), dtype=np.uint8)
    _, image = decoded(thumbnail(pixels))
    assert max(image.size) <= SIDE
    assert image.size[0] / image.size[1] == pytest.approx(300 / 500, abs=0.02)
    np.testing.assert_array_equal(np.asarray(image), pixels[::6, ::6])


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
def test_small_files_pass_as_they_are(tmp_path, kind):
    data = encoded(kind)
    (tmp_path / "picture").write_bytes(data)  # by what is inside, not by the name
    for given in (data, tmp_path / "picture", str(tmp_path / "picture")):
        shown, image = decoded(thumbnail(given))
        assert (shown, image.format) == (kind.lower(), kind)
        assert base64.b64decode(thumbnail(given).split(",")[1]) == data


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_large_files_are_made_small(kind):
    data = encoded(kind, size=(600, 300))
    assert len(data) > BYTES
    shown, image = decoded(thumbnail(data))
    assert (shown, image.size) == ("png", (SIDE, SIDE // 2))


SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


@pytest.mark.parametrize(
    "data",
    [
        SVG,
        b"<?xml version='1.0'?>" + SVG,
        b"<html><script>alert(1)</script>",
        b"just a text",
        b"",
        b"\x89PNG\r\n\x1a\n" + bytes(BYTES),  # begins as a picture, is none, and too large to pass
        b"RIFF\x24\x00\x00\x00WAVEfmt ",  # a sound
        b"BM not known",
    ],
    ids=["svg", "xml", "html", "text", "empty", "broken", "sound", "bitmap"],
)
def test_anything_but_a_picture_gives_none(tmp_path, data):
    assert thumbnail(data) is None
    (tmp_path / "file.png").write_bytes(data)
    assert thumbnail(tmp_path / "file.png") is None


@pytest.mark.parametrize(
    "given",
    [None, "", "nowhere.png", ".", "https://example.org/a.png", "nul\0.png", "x" * 5000, "🙂" * 300],
    ids=["None", "nothing", "missing", "folder", "address", "nul", "long", "long emoji"],
)
def test_an_unreadable_picture_gives_none(given):
    assert thumbnail(given) is None


@pytest.mark.parametrize("shape", [(4,), (4, 4, 2), (4, 4, 4), (2, 4, 4, 3)])
def test_other_shapes_are_refused(shape):
    with pytest.raises(ValueError, match=r"array \(height, width\) or \(height, width, 3\); got"):
        thumbnail(np.zeros(shape))


def cards(images):
    """Cards of the hubs among 40 items with these images."""
    rng = np.random.default_rng(2)
    X, queries = rng.standard_normal((40, 3)), rng.standard_normal((30, 3))
    y, truth = np.repeat("a", 40), np.repeat("a", 30)
    states = BeforeAfter(X, 0.5 * X), BeforeAfter(queries, queries)
    evaluation = evaluate_classes(*states, y, truth, BeforeAfter(1, 1))
    captions = Captions(range(40), range(30), images=images)
    return make_report(evaluation, captions, ModelDescription("Scale")).details["hubs"]


@pytest.mark.parametrize("library", ["numpy", pytest.param("torch", marks=pytest.mark.torch)])
def test_pictures_are_those_of_the_cards(rng, library):
    pixels = rng.integers(0, 256, (40, 4, 4), dtype=np.uint8)
    made = cards(import_module(library).asarray(pixels))
    assert made
    for card in made:
        _, image = decoded(card["thumbnail"])
        np.testing.assert_array_equal(np.asarray(image)[..., 0], pixels[int(card["id"])])


def test_cards_with_files_and_without_pictures():
    for card in cards([encoded("PNG")] * 40):
        assert decoded(card["thumbnail"])[0] == "png"
    assert {card["thumbnail"] for card in cards(None)} == {None}


def test_a_pipe_or_a_device_is_not_read(tmp_path):
    """An item names the file: a pipe would be waited for, and a device such as /dev/zero has no end."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero", "/dev/stdin", "~nobody-of-this-name/a.png", tmp_path):
        assert thumbnail(str(path)) is None
