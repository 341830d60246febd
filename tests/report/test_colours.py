"""Colours are written once: the page, its script and `hubless.plot` have the same."""

import re
from pathlib import Path

import pytest

from hubless.plot import style
from hubless.report.colours import DARK, LIGHT, colour_rules
from tests.report.pages import labelled_report

WEB = Path(__file__).parents[2] / "web"


def contrast(one, other):
    """(lighter + 0.05) / (darker + 0.05) of relative luminances, as WCAG 2 has it."""

    def luminance(colour):
        values = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in values]
        return sum(share * value for share, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_letters_of_every_colour_can_be_read(colours):
    assert list(LIGHT) == list(DARK)
    for name in ("text", "muted", "before", "after", "wrong", "accent"):
        for ground in ("surface", "background"):
            assert contrast(colours[name], colours[ground]) >= 4.5, f"{name} on {ground}"


def test_the_script_and_its_style_name_colours_and_define_none():
    sources = {file.name: file.read_text() for file in [*WEB.glob("*.js"), *WEB.glob("*.css")]}
    assert len(sources) > 10
    for name, source in sources.items():
        own = set(re.findall(r"^\s*--([\w-]+):", source, re.MULTILINE))
        assert not own & set(LIGHT), name
        hex_colours = set(re.findall(r"#[0-9a-fA-F]{3,8}\b", source))
        allowed = {"map_paint.js": 9, "sections.css": 1}.get(name, 0)  # colours of classes; white paper
        assert len(hex_colours) <= allowed, f"{name}: {hex_colours}"


def test_every_colour_that_the_script_names_exists():
    sources = "".join(file.read_text() for file in [*WEB.glob("*.js"), *WEB.glob("*.css")])
    defined = set(re.findall(r"--([\w-]+):", sources)) | set(LIGHT)
    named = set(re.findall(r"var\(--([\w-]+)[,)]", sources))
    assert named
    assert named <= defined


def test_plots_have_the_colours_of_the_page():
    assert style.COLOURS["before"] == LIGHT["before"]
    assert style.COLOURS["after"] == LIGHT["after"]


def test_a_page_has_the_rules_of_its_colours_once():
    page = labelled_report().html()
    assert page.count(colour_rules()) == 1
    assert f"stroke='{LIGHT['before']}'" in labelled_report()._repr_html_()


@pytest.mark.browser
@pytest.mark.parametrize(("scheme", "colours"), [("light", LIGHT), ("dark", DARK)])
def test_the_browser_shows_these_colours(open_page, scheme, colours):
    page = open_page(labelled_report, color_scheme=scheme)
    read = (
        "names => names.map(name => getComputedStyle(document.documentElement).getPropertyValue('--' + name))"
    )
    assert page.evaluate(read, list(colours)) == list(colours.values())
    page.emulate_media(media="print")
    assert page.evaluate(read, list(colours)) == list(LIGHT.values())
