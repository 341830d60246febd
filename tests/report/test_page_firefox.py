"""The main path of the page in Firefox; everything else is tested in Chromium."""

import numpy as np
import pytest

from tests.report.browser import NOT_ISOLATED
from tests.report.firefox import firefox_window
from tests.report.pages import hostile_report, labelled_report

pytestmark = pytest.mark.browser
END, ENTER, ESCAPE = "\ue010", "\ue007", "\ue00c"  # of WebDriver
SELECTED = "document.querySelector('#map .map').dataset.selected"
MORPH = "document.querySelector('#map .map').dataset.morph"


@pytest.fixture(scope="module")
def firefox(tmp_path_factory):
    with firefox_window(tmp_path_factory.mktemp("firefox")) as window:
        window.send("SetWindowRect", width=1280, height=900)
        yield window


def shown(firefox, selector):
    """Whether an element has a place in the window."""
    box = "document.querySelector(arguments[0]).getBoundingClientRect()"
    return firefox.evaluate(f"{box}.height > 0 && {box}.top >= 0 && {box}.top < innerHeight", selector)


def words(firefox, selector):
    return firefox.evaluate("document.querySelector(arguments[0]).innerText", selector)


def test_the_main_path(firefox, tmp_path):
    report = labelled_report()
    firefox.open(report.save(tmp_path / "page.html").as_uri())
    assert shown(firefox, ".verdict")
    assert report.figures["summary"]["verdict"]["title"] in words(firefox, ".verdict")
    assert firefox.evaluate("document.querySelectorAll('[role=alert]').length") == 0

    firefox.click("nav a[href='#map']")
    assert firefox.evaluate("location.hash") == "#map"
    assert shown(firefox, "#map")
    assert firefox.evaluate(MORPH) == "0.00"
    firefox.type("#map input[type=range]", END)
    firefox.wait(f"{MORPH} === '1.00'")

    firefox.click(".map-panel li button")  # the busiest item
    hub = int(np.argmax(report.evaluation.hubness.before.occurrence))
    firefox.wait(f"document.querySelector('.map-panel').innerText.includes({report.captions.texts[hub]!r})")
    address = f"location.hash.includes('hub={report.captions.ids[hub]}&')"
    assert firefox.evaluate(address)
    firefox.press(ESCAPE)
    firefox.wait(f"{SELECTED} === '' && !{address}")
    firefox.send("Back")
    firefox.wait(f"{SELECTED} === {report.captions.ids[hub]!r} && {address}")
    firefox.click(".map-clear")
    firefox.wait("document.querySelectorAll('.map-clear').length === 0")

    firefox.type("#explorer-search", "query-0007" + ENTER)
    firefox.wait("location.hash.includes('query=query-0007')")
    assert words(firefox, "#explorer .explored-query") == report.captions.query_texts[7]
    firefox.type("#explorer-search", ESCAPE + "query-0008" + ENTER)  # the first one empties the field
    firefox.wait("location.hash.includes('query=query-0008')")
    firefox.send("Back")
    firefox.wait("location.hash.includes('query=query-0007')")
    assert words(firefox, "#explorer .explored-query") == report.captions.query_texts[7]
    firefox.evaluate("document.activeElement.blur()")
    firefox.press(ESCAPE)
    firefox.wait("!location.hash.includes('query')")


def test_an_address_names_the_item_on_the_map(firefox, tmp_path):
    file = labelled_report().save(tmp_path / "page.html")
    firefox.open(f"{file.as_uri()}#hub=item-0012&state=after")
    firefox.wait(f"{SELECTED} === 'item-0012' && {MORPH} === '1.00'")
    assert shown(firefox, "#map .map-stage")
    firefox.press(ESCAPE)
    firefox.wait(f"{SELECTED} === '' && {MORPH} === '0.00' && location.hash === ''")
    firefox.evaluate("void (location.hash = 'hub=item-0007')")
    firefox.wait(f"{SELECTED} === 'item-0007' && {MORPH} === '0.00'")


def test_hostile_texts_are_texts(firefox, tmp_path):
    firefox.open(hostile_report().save(tmp_path / "page.html").as_uri())
    assert firefox.evaluate(NOT_ISOLATED) == []
    assert firefox.evaluate("window.hacked === undefined")
    assert firefox.evaluate("document.querySelectorAll('[role=alert]').length") == 0
