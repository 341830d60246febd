"""Accessibility: axe-core finds nothing on pages of labels and of pairs, light and dark, phone and desk."""

from itertools import product
from operator import attrgetter
from pathlib import Path

import pytest

from tests.report.browser import DESK, PHONE, Map, lacking, wait_frames
from tests.report.pages import (
    harmful_report,
    hostile_report,
    labelled_report,
    many_report,
    pairs_report,
    unmoved_report,
)

pytestmark = pytest.mark.browser

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
RUN = """async (rules) => {
  const found = await axe.run(document, { runOnly: { type: "tag", values: rules } });
  const lines = (rule) => rule.nodes.map((node) => `${rule.id}: ${node.target} ${node.failureSummary}`);
  return { violations: found.violations.flatMap(lines), passes: found.passes.map((rule) => rule.id) };
}"""
name_of = attrgetter("__name__")
VIEWS = {
    f"{name}-{scheme}": view._replace(scheme=scheme)
    for (name, view), scheme in product({"desk": DESK, "phone": PHONE}.items(), ("light", "dark"))
}


def axe_violations(page):
    """What axe-core says is wrong with the page as it is now."""
    if not AXE.exists():
        lacking(f"axe-core is not in {AXE.parent.parent}: run make web")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate(RUN, RULES)
    assert {"color-contrast", "html-has-lang", "label", "landmark-one-main"} <= set(found["passes"])
    return found["violations"]


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("make", [labelled_report, pairs_report], ids=name_of)
def test_axe_finds_nothing_on_a_page(open_page, make, view):
    page = open_page(make, view)
    assert axe_violations(page) == []
    page.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true; })")
    Map(page).canvas.press("n")  # selects an item, so that its panel is there too
    page.locator("#map .map-panel").wait_for()
    wait_frames(page)
    assert axe_violations(page) == []


@pytest.mark.parametrize("make", [harmful_report, unmoved_report, many_report, hostile_report], ids=name_of)
def test_axe_finds_nothing_on_other_pages(read_page, make):
    assert axe_violations(read_page(make)) == []


def test_what_axe_finds_is_noticed(open_page):
    page = open_page(unmoved_report)
    page.evaluate("document.querySelector('h1').style.color = '#eeeeee'")
    page.evaluate("document.querySelector('#map').append(document.createElement('button'))")
    assert {found.split(":")[0] for found in axe_violations(page)} == {"color-contrast", "button-name"}
