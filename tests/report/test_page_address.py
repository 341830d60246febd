"""The address of a page: sections, items and queries in it, Back and Forward, Escape, hostile addresses."""

from pathlib import Path
from urllib.parse import quote, unquote

import pytest

from tests.report.browser import PHONE, each_width
from tests.report.pages import HOSTILE, hostile_report, labelled_report

pytestmark = pytest.mark.browser
WEB = Path(__file__).parents[2] / "web"
NOTHING = {"section": None, "hub": None, "query": None, "state": None}


@pytest.fixture
def script(browser, tmp_path):
    """A page with nothing but address.js, whose functions are in the window; `calls` has what it told."""
    code = (WEB / "address.js").read_text()
    file = tmp_path / "address.html"
    file.write_text(
        f'<!doctype html><meta charset="utf-8"><script type="module">{code}\n'
        "const calls = []; Object.assign(window, { readAddress, addressOf, goTo, calls });"
        "onAddress((address, fresh) => calls.push([address, fresh]));</script>"
    )
    page = browser.browser.new_page()
    page.goto(file.as_uri())
    page.wait_for_function("window.calls?.length === 1")
    yield page
    page.close()


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("", {}),
        ("#", {}),
        ("#map", {"section": "map"}),
        ("#hub=8391&state=after&query=12", {"hub": "8391", "state": "after", "query": "12"}),
        ("#why&hub=a%20b%3D%26%23", {"section": "why", "hub": "a b=&#"}),
        ("#query=a=b", {"query": "a=b"}),
        ("#hub=%E0%A4%A&query=ok", {"query": "ok"}),
        ("#hub=&state=middle&other=1", {}),
        ("#hub=one&hub=two", {"hub": "one"}),
        ("#__proto__=1&constructor=2&hub=x", {"hub": "x"}),
        ("#<img src=x onerror=alert(1)>", {}),
    ],
)
def test_reading_an_address(script, text, address):
    assert script.evaluate("text => readAddress(text)", text) == NOTHING | address


@pytest.mark.parametrize("identifier", [*HOSTILE, "a&state=after", "100 %", "naïve/é?#", "  ", "\u2028"])
def test_any_id_is_read_as_it_was_written(script, identifier):
    text = script.evaluate("id => addressOf({ hub: id, query: id, state: 'after' })", identifier)
    expected = NOTHING | {"hub": identifier, "query": identifier, "state": "after"}
    assert script.evaluate("text => readAddress(text)", text) == expected
    encoded = quote(identifier, safe="!'()*")
    assert text == f"#hub={encoded}&state=after&query={encoded}"


def test_half_a_pair_of_surrogates_is_written_as_an_unknown_letter(script):
    assert script.evaluate("addressOf({ hub: 'a\\ud800' })") == "#hub=" + quote("a\ufffd")


def test_changes_are_merged_and_back_returns(script):
    go = "changes => goTo(changes)"
    script.evaluate(go, {"section": "map"})
    script.evaluate(go, {"hub": "7"})
    assert script.evaluate("location.hash") == "#hub=7"
    script.evaluate(go, {"state": "after"})
    script.evaluate(go, {"section": "why"})
    assert script.evaluate("location.hash") == "#why&hub=7&state=after"
    script.evaluate(go, {"section": "why"})  # no change: no entry in the history
    assert script.evaluate("calls.length") == 1  # the caller has shown these already
    seen = []
    for steps in (-1, -1, -1, 1, -2):
        script.evaluate("steps => history.go(steps)", steps)
        script.wait_for_function("many => calls.length > many", arg=1 + len(seen))
        address, fresh = script.evaluate("calls.at(-1)")
        assert not fresh
        seen.append({key: value for key, value in address.items() if value is not None})
    hub = {"hub": "7"}
    assert seen == [hub | {"state": "after"}, hub, {"section": "map"}, hub, {}]


def test_a_slider_may_change_the_address_as_often_as_it_likes(script):
    """Browsers refuse more than some hundred changes in ten seconds."""
    script.evaluate("goTo({ hub: '1' })")
    length = script.evaluate("history.length")
    last = script.evaluate("""() => {
      for (let i = 0; i <= 999; i++) goTo({ hub: "1", state: i % 2 ? "after" : "before" }, { replace: true });
      return readAddress();
    }""")
    assert last == NOTHING | {"hub": "1", "state": "after"}
    script.wait_for_function("location.hash === '#hub=1&state=after'")
    assert script.evaluate("history.length") == length
    script.evaluate("goTo({ state: 'before' }, { replace: true }); goTo({ query: '2' })")  # nothing is lost
    assert script.evaluate("location.hash") == "#hub=1&state=before&query=2"
    script.go_back()
    script.wait_for_function("location.hash === '#hub=1&state=before'")


def test_links_and_typed_addresses_are_told_as_new(script):
    script.evaluate("location.hash = '#hub=3'")
    script.wait_for_function("calls.length === 2")
    assert script.evaluate("calls[1]") == [NOTHING | {"hub": "3"}, True]
    script.evaluate("goTo({ hub: null }, { tell: true })")
    assert script.evaluate("calls[2]") == [NOTHING, True]
    script.go_back()
    script.wait_for_function("calls.length === 4")
    assert script.evaluate("calls[3]") == [NOTHING | {"hub": "3"}, False]


def top(page, section):
    """Where a section begins in the window."""
    return page.locator(f"#{section}").bounding_box()["y"]


@each_width
def test_a_link_opens_a_section_and_back_returns(open_page, view):
    page = open_page(labelled_report, view, "#why")
    assert -1 < top(page, "why") < 120
    page.locator("nav a[href='#classes']").evaluate("link => link.click()")
    assert -1 < top(page, "classes") < 120
    page.go_back()
    page.wait_for_function("location.hash === '#why'")
    page.wait_for_function("Math.abs(document.querySelector('#why').getBoundingClientRect().top) < 120")


def test_what_is_selected_stays_selected_in_other_sections(open_page):
    page = open_page(labelled_report, hash="#hub=item-0003")
    page.locator("nav a[href='#classes']").click()
    assert page.evaluate("location.hash") == "#classes&hub=item-0003"
    page.locator(".skip").evaluate("link => link.click()")
    assert page.evaluate("location.hash") == "#classes&hub=item-0003"
    assert page.evaluate("document.activeElement.id") == "page"


def test_escape_clears_what_the_address_says(open_page):
    page = open_page(labelled_report, hash="#hub=item-0003&state=after")
    search = page.locator("#changed input[type=search]")
    search.fill("leaf")
    search.press("Escape")  # empties the field only
    assert page.evaluate("location.hash") == "#hub=item-0003&state=after"
    page.locator("h1").click()
    page.keyboard.press("Escape")
    assert page.evaluate("location.hash") == ""
    page.go_back()
    page.wait_for_function("location.hash === '#hub=item-0003&state=after'")


@pytest.mark.parametrize("key", ["hub", "query"])
def test_unknown_ids_are_told_and_ignored(open_page, key):
    page = open_page(labelled_report, PHONE, f"#{key}=nothing%20like%20it")
    what = {"hub": "item", "query": "query"}[key]
    notice = page.locator(".notice")
    assert notice.inner_text().strip() == f"No {what} of this page has the id nothing like it."
    assert page.evaluate("scrollY") == 0
    assert page.locator("[role=alert]").count() == 0
    page.keyboard.press("Escape")
    assert not notice.is_visible()


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_addresses_are_texts(open_page, text):
    page = open_page(hostile_report, PHONE, f"#hub={quote(text, safe='')}&query={quote(text, safe='')}")
    assert unquote(page.evaluate("location.hash")) == f"#hub={text}&query={text}"
    assert page.locator(".notice .user").all_text_contents() == [text, text]
    assert page.locator(".notice *:not(span)").count() == 0
    assert page.evaluate("window.hacked") is None
    page.evaluate("text => { location.hash = text }", text)
    page.wait_for_function("document.querySelector('.notice').hidden")
    assert page.evaluate("window.hacked") is None
