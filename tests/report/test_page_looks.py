"""How the page looks, also on paper; keyboard and screen readers; hostile texts."""

import re
from itertools import pairwise

import pytest

from tests.report.browser import DESK, PHONE, SECTIONS, Map, differ, each_width, overflow, wait_frames
from tests.report.pages import (
    HOSTILE,
    LONG,
    harmful_report,
    hostile_report,
    labelled_report,
    many_report,
    pairs_report,
)

pytestmark = pytest.mark.browser

# Contrast by WCAG 2: (lighter + 0.05) / (darker + 0.05) of relative luminances, of every element with a text
# of its own. Colours are read through a canvas, which knows every way to write one.
CONTRASTS = """() => {
  const context = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const read = (colour) => {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data];
  };
  const over = ([red, green, blue, alpha], under) =>
    [red, green, blue].map((value, channel) => (value * alpha + under[channel] * (255 - alpha)) / 255);
  const behind = (node) => {
    if (node === null) return [255, 255, 255];
    const colour = read(getComputedStyle(node).backgroundColor);
    return colour[3] === 255 ? colour.slice(0, 3) : over(colour, behind(node.parentElement));
  };
  const light = (colour) => {
    const [red, green, blue] = colour.map((value) => value / 255)
      .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const speaks = (node) => [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
  return [...document.querySelectorAll("header *, main *")]
    .filter((node) => speaks(node) && node.checkVisibility())
    .map((node) => {
      const style = getComputedStyle(node);
      const ground = behind(node);
      const text = over(read(node instanceof SVGElement ? style.fill : style.color), ground);
      const [low, high] = [light(text), light(ground)].sort((a, b) => a - b);
      const name = `${node.tagName} ${node.getAttribute("class")} ${node.textContent.slice(0, 30)}`;
      return [(high + 0.05) / (low + 0.05), name];
    });
}"""


@pytest.mark.parametrize("make", [labelled_report, harmful_report], ids=lambda make: make.__name__)
def test_every_text_can_be_read(open_page, make):
    page = open_page(make)
    Map(page).canvas.press("n")  # an item is selected, so that its panel is there too
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        page.wait_for_selector(f"html[data-theme={theme}]")
        contrasts = page.evaluate(CONTRASTS)
        assert len(contrasts) > 300
        assert [(round(ratio, 2), name) for ratio, name in contrasts if ratio < 4.5] == []


def test_theme_button(open_page):
    page = open_page(labelled_report, DESK)
    button, map_ = page.locator("button.theme"), Map(page)
    seen = {}
    for theme in ("auto", "light", "dark"):
        assert button.inner_text() == f"Theme: {theme}"
        seen[theme] = page.evaluate("getComputedStyle(document.body).backgroundColor"), map_.picture()
        button.click()
    assert button.inner_text() == "Theme: auto"
    assert seen["auto"][0] == seen["light"][0] != seen["dark"][0]
    assert not differ(seen["auto"][1], seen["light"][1])
    assert differ(seen["light"][1], seen["dark"][1], 0.5)
    page.emulate_media(color_scheme="dark")
    page.wait_for_selector("html[data-theme=dark]")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == seen["dark"][0]


def unfold(page):
    """Opens all that is folded or cut."""
    page.evaluate("""() => {
      for (const part of document.querySelectorAll("details")) part.open = true;
      const buttons = [...document.querySelectorAll("button")];
      for (const button of buttons) if (button.textContent.startsWith("Show all")) button.click();
    }""")
    wait_frames(page)  # charts are drawn again


@pytest.mark.parametrize("make", [labelled_report, pairs_report], ids=lambda make: make.__name__)
def test_nothing_is_wider_than_a_phone(open_page, make):
    page = open_page(make, PHONE)
    for width in (390, 360):
        page.set_viewport_size({"width": width, "height": 844})
        unfold(page)
        assert overflow(page) <= 0


@each_width
def test_targets_are_large_enough_to_tap(read_page, view):
    page = read_page(many_report, view)
    sizes = page.locator("button, select, input, summary, nav a").evaluate_all("""all => all
      .filter((node) => node.checkVisibility())
      .map((node) => node.type === "checkbox" || node.type === "radio" ? node.closest("label") : node)
      .map((node) => [node.offsetWidth, node.offsetHeight, node.textContent.slice(0, 20)])""")
    assert len(sizes) > 30
    assert [size for size in sizes if min(size[:2]) < 24] == []


STOP = """() => {
  const node = document.activeElement;
  if (node.closest("#apply")) return "apply";
  const word = node.id || node.name || node.options?.[0].text || node.ariaLabel || node.textContent.trim();
  return `${node.tagName} ${node.tagName === "CANVAS" ? node.className : word || node.type}`;
}"""


def test_keyboard_reaches_everything_in_order(open_page):
    page = open_page(labelled_report)
    stops = []
    while "apply" not in stops and len(stops) < 300:
        page.keyboard.press("Tab")
        stops.append(page.evaluate(STOP))
    assert stops[0] == "A Skip to the figures"
    assert stops[1].startswith("A ")
    wanted = [
        *("BUTTON Theme: auto", "BUTTON Play", "INPUT map-morph", "SELECT hubs", "SELECT all classes"),
        *("INPUT checkbox", "CANVAS map-dots", "BUTTON Zoom in", "INPUT map-search"),
        *("BUTTON Show on the map", "INPUT view", "INPUT status", "INPUT search", "BUTTON Show 20 more"),
    ]
    places = [stops.index(name) for name in wanted]
    assert places == sorted(places)


def test_skip_link_and_focus_can_be_seen(open_page):
    page = open_page(labelled_report)
    page.keyboard.press("Tab")
    assert page.locator(".skip").bounding_box()["x"] >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "page"
    Map(page).slider.focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("parseFloat(getComputedStyle(document.activeElement).outlineWidth)") >= 2


@pytest.mark.parametrize("make", [labelled_report, pairs_report], ids=lambda make: make.__name__)
def test_screen_readers_find_names_and_headings(read_page, make):
    page = read_page(make)
    unnamed = page.locator("svg, canvas").evaluate_all("""all => all
      .filter((node) => !node.closest("[aria-hidden=true], [hidden]") && node.checkVisibility())
      .filter((node) => node.closest("svg [aria-label], svg") === node)
      .filter((node) => node.role !== "img" || (node.ariaLabel ?? "").length < 20)
      .map((node) => node.outerHTML.slice(0, 200))""")
    assert unnamed == []
    controls = page.locator("button, input, select").evaluate_all("""all => all
      .filter((node) => node.checkVisibility())
      .filter((node) => !(node.textContent.trim() && node.tagName === "BUTTON") && !node.labels?.length &&
        !node.getAttribute("aria-label"))
      .map((node) => node.outerHTML)""")
    assert controls == []
    headings = page.locator("h1, h2, h3, h4, h5, h6").evaluate_all("""all => all
      .filter((node) => node.checkVisibility())
      .map((node) => [Number(node.tagName[1]), node.textContent])""")
    assert [level for level, _ in headings if level == 1] == [headings[0][0]]
    assert [pair for pair in pairwise(headings) if pair[1][0] > pair[0][0] + 1] == []
    assert page.locator(".card > img").count() == (12 if make is labelled_report else 0)
    assert page.locator("img").evaluate_all("all => all.filter((image) => image.alt.length < 10)") == []
    assert (
        page.locator("img").evaluate_all(
            "all => all.filter((image) => image.complete && !image.naturalWidth)"
        )
        == []
    )
    assert page.evaluate("document.documentElement.lang") == "en"


def test_paper_is_white_and_whole(open_page):
    page = open_page(labelled_report, DESK._replace(scheme="dark"))
    paper = page.pdf()
    assert paper.startswith(b"%PDF")
    assert 2 < len(re.findall(rb"/Type\s*/Page\b", paper)) <= 4
    page.emulate_media(media="print")
    controls = ("button", "input", "select", ".controls", ".map-controls", ".map-search")
    for hidden in ("header.top", "#explorer", *controls):
        assert not any(part.is_visible() for part in page.locator(hidden).all()), hidden
    for shown in (
        *(f"#{section} h1, #{section} h2" for section in SECTIONS if section != "explorer"),
        ".tiles",
        ".verdict",
        ".map-dots",
    ):
        assert page.locator(shown).first.is_visible()
    assert page.locator("#changed .text").first.is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def letters(text):
    """Without spaces: lines are broken where there is no room."""
    return "".join(text.split())


def unharmed(page):
    """Whether no text of a user has run or become an element."""
    made = page.locator("main :is(script, iframe, a:not(.look-up *), img, object, form, link)").count()
    return page.evaluate("window.hacked") is None and made == 0


WIDE = """() => [...document.querySelectorAll("main *")]
  .filter((node) => node.checkVisibility() && !node.closest(".scroll"))
  .filter((node) => node.getBoundingClientRect().right > innerWidth + 1 ||
    (node.tagName === "LI" && node.scrollWidth > node.clientWidth + 1))
  .map((node) => `${node.closest("section").id} ${node.tagName.toLowerCase()} ${node.className}`)"""


def check_width(page):
    """No text makes the page, or a part of it, wider than the window."""
    assert page.evaluate(WIDE) == []
    assert overflow(page) <= 0


@each_width
def test_hostile_texts_are_texts(open_page, view):
    page = open_page(hostile_report, view)
    assert page.locator("[role=alert]").count() == 0
    assert unharmed(page)
    choice, steps = "#choice p[dir]", "#apply p[dir]"
    for place in ("h1", "#summary code", "#summary li", choice, steps, "#apply pre", "#apply dt"):
        assert letters("".join(HOSTILE[:5])) in letters(page.locator(place).first.text_content()), place
    for section in ("#hubs", "#changed", "#classes", "#choice", "#map"):
        content = letters(page.locator(section).text_content())
        missing = [text for text in HOSTILE[:5] if letters(text)[:28] not in content]
        assert missing == [], section
    cells = page.locator("#choice .stacked tbody tr").first.locator("td").all_text_contents()
    assert letters(HOSTILE[0]) in letters(cells[0])
    assert cells[2:] == ["50.0\xa0%\u22122.0 ±\xa03.0within the error", "1.00", "10.0\xa0%", "3", "2"]
    assert page.locator("#hubs [dir=auto]").count() > 12
    assert LONG[:1999] in page.locator("#apply dd").first.text_content()  # longer texts are cut
    check_width(page)
    unfold(page)
    assert unharmed(page)
    check_width(page)


def test_hostile_texts_in_tips_search_and_panel(open_page):
    report, page = hostile_report(), open_page(hostile_report, PHONE)
    map_, items = Map(page), report.details["items"]
    for start in range(5):
        place = max(range(start, 90, 8), key=lambda item: items["n0"][item])
        page.get_by_label("Find an item").fill(items["id"][place])
        results = page.locator(".map-results", has_text=f"text{place}")
        results.wait_for()
        map_.wait_found("1 item matches.")
        assert letters(HOSTILE[start]) in letters(results.text_content())
        page.get_by_label("Find an item").press("Enter")
        page.locator(".map-panel h3", has_text=f"item{place}").wait_for()
        assert map_.value("selected") == items["id"][place]
        assert letters(items["text"][place])[:50] in letters(page.locator(".map-panel").text_content())
        map_.stage.scroll_into_view_if_needed()
        page.mouse.move(1, 1)
        page.mouse.move(*map_.screen(place))
        tip = page.locator(".map-tip")
        tip.wait_for()
        assert any(letters(text) in letters(tip.text_content()) for text in HOSTILE)
        inside, stage = tip.bounding_box(), map_.stage.bounding_box()
        assert inside["x"] + inside["width"] <= stage["x"] + stage["width"]
        assert unharmed(page)


@each_width
def test_hostile_texts_in_tips_of_charts(open_page, view):
    page = open_page(hostile_report, view)
    tip, seen = page.locator("#classes svg g[aria-label=tip]"), set()
    for cell in page.locator("#classes svg g[aria-label=rect] rect").all()[::2]:
        cell.hover(force=True)
        wait_frames(page)
        _, true, given, _ = tip.text_content().split("\u200b", 3)  # before each line
        seen |= {letters(true.removeprefix("true: ")), letters(given.removeprefix("given: "))}
    names = {letters(name) for name in HOSTILE}
    assert len(seen & names) > 5
    assert {name for name in seen - names if not name.startswith("emoji")} == set()  # emoji have joints, too
    unfold(page)
    page.locator("#choice svg circle").first.hover(force=True)
    wait_frames(page)
    assert letters(HOSTILE[0]) in letters(page.locator("#choice svg g[aria-label=tip]").last.text_content())
    assert unharmed(page)
