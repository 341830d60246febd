"""Queries that are looked up on a page: search, filter, address, Back, Escape, hostile texts."""

from functools import cache
from pathlib import Path
from threading import Thread
from urllib.parse import quote

import pytest

from hubless import compare
from hubless.report.ask import answer_texts
from hubless.report.server import PageServer
from tests.report.browser import PHONE, each_width, overflow
from tests.report.pages import (
    HOSTILE,
    hostile_report,
    labelled,
    labelled_model,
    labelled_report,
    pairs_report,
)

pytestmark = pytest.mark.browser


def ranks(page, column):
    """Text, mark and movement of each neighbour in a column."""
    return page.locator(f"#explorer .rank-column:nth-of-type({column})").evaluate(
        """column => [...column.querySelectorAll(".rank")].map((row) => [
          row.querySelector(".rank-text").textContent,
          row.querySelector(".rank-mark .visually-hidden").textContent,
          row.querySelector(".rank-moved").textContent.trim(),
        ])"""
    )


def expected(row, state, other):
    """The same, from the answers of the report."""
    answers, (_, y, _, truth) = labelled_report().evaluation.answers, labelled()
    here, there = (answers.neighbors[i][row].tolist() for i in (state, other))
    for rank, item in enumerate(here):
        mark = "same class: " if y[item] == truth[row] else "another class: "
        was = there.index(item) if item in there else None
        if state == 0:
            moved = "leaves the first 10" if was is None else f"→ {was + 1} after"
        elif was is None:
            moved = "+ new"
        else:
            moved = "= same rank" if was == rank else f"{'▲' if rank < was else '▼'} from {was + 1}"
        yield [f"leaf {item} of the {y[item]}", mark, moved]


@each_width
def test_neighbours_before_and_after_with_their_ranks(open_page, view):
    page = open_page(labelled_report, view, "#query=query-0007")
    assert page.locator("#explorer .explored-query").inner_text().startswith("which tree has leaf 7,")
    assert -1 < page.locator("#explorer").bounding_box()["y"] < 120
    assert ranks(page, 1) == list(expected(7, 0, 1))
    assert ranks(page, 3) == list(expected(7, 1, 0))
    both = set(labelled_report().evaluation.answers.neighbors.before[7].tolist())
    both &= set(labelled_report().evaluation.answers.neighbors.after[7].tolist())
    assert page.locator("#explorer .rank-lines path").count() == len(both)
    assert overflow(page) <= 0


def test_search_filter_address_back_and_escape(open_page):
    page = open_page(labelled_report)
    box, results = page.get_by_label("Find a query"), page.locator(".explorer-results button")
    query = page.locator("#explorer .explored-query")
    first = query.inner_text()
    page.locator("#explorer label", has_text="Broken").click()
    figures = labelled_report().figures["changed"]
    words = "query matches" if figures["broken"] == 1 else "queries match"
    page.locator("#explorer .count", has_text=f"{figures['broken']} {words}.").wait_for()
    page.locator("#explorer label", has_text="All").click()
    box.fill("leaf 311,")
    page.locator("#explorer .count", has_text="1 query matches.").wait_for()
    results.first.click()
    assert query.inner_text().startswith("which tree has leaf 311,")
    assert page.evaluate("location.hash") == "#query=query-0311"
    assert results.first.get_attribute("aria-current") == "true"
    box.fill("leaf 12,")
    box.press("Enter")
    assert page.evaluate("location.hash") == "#query=query-0012"
    box.press("Escape")  # empties the box only
    assert (box.input_value(), page.evaluate("location.hash")) == ("", "#query=query-0012")
    page.go_back()
    page.wait_for_function("location.hash === '#query=query-0311'")
    assert query.inner_text().startswith("which tree has leaf 311,")
    page.locator("h1").click()
    page.keyboard.press("Escape")
    assert page.evaluate("location.hash") == ""
    assert query.inner_text() == first


def test_a_phone_shows_five_and_all_when_asked(open_page):
    page = open_page(labelled_report, PHONE)
    shown = page.locator("#explorer .rank:visible")
    assert shown.count() == 10
    page.get_by_role("button", name="Show all 10").click()
    assert shown.count() == 20


def test_a_changed_query_leads_to_its_neighbours(open_page):
    page = open_page(labelled_report)
    page.locator("#changed summary").first.click()
    link = page.locator("#changed .look-up a").first
    link.click()
    assert page.evaluate("location.hash") == link.get_attribute("href")
    text = page.locator("#changed .query .text").first.inner_text()
    assert page.locator("#explorer .explored-query").inner_text() == text


def test_without_classes_marks_say_what_was_judged(read_page):
    page = read_page(pairs_report)
    answers = pairs_report().evaluation.answers
    shown = page.locator("#explorer .explored-facts .user").first.inner_text()
    marks = [mark for _, mark, _ in ranks(page, 1)]
    relevant = answers.relevant.before[int(shown)]
    assert marks == ["relevant: " if is_relevant else "not judged relevant: " for is_relevant in relevant]
    assert "75 of the 200 queries can be looked up" in page.locator("#explorer").inner_text()


def test_texts_are_texts(read_page):
    page = read_page(hostile_report)
    allowed = "h2, h3, p, div, span, label, input, fieldset, legend, ul, ol, li, button, svg, path, wbr"
    assert page.locator("#explorer *").count() == page.locator(f"#explorer :is({allowed})").count()
    assert page.locator("#explorer .rank-text:not(.user), #explorer .user:not([dir=auto])").count() == 0
    assert page.evaluate("window.hacked") is None


@cache
def linked_report():
    """Ids that an address must not take as they are."""
    ids = ["..", "a/b?c=d&e#f", "100 %", HOSTILE[0], *range(4, 599), "x" * 200]
    link = "https://example.org/rows/{id}?again={id}"
    return compare(labelled_model(), *labelled(), ids=ids, link=link)


def test_links_lead_to_rows_and_nowhere_else(read_page):
    page = read_page(linked_report)
    script = (Path(__file__).parents[2] / "web" / "links.js").read_text().split("/** An id, as a link")[0]
    script = script.replace("export ", "").split("\n", 4)[4] + "; window.rowAddress = rowAddress;"
    page.evaluate(script)
    link = linked_report().captions.link
    for name in ("a/b?c=d&e#f", "100 %", *HOSTILE, "$&", "{id}"):
        encoded = quote(name, safe="!'()*")
        expected = f"https://example.org/rows/{encoded}?again={encoded}"
        assert page.evaluate("([link, id]) => rowAddress(link, id)", [link, name]) == expected
    for name in ("..", ".", "cut…"):
        assert page.evaluate("([link, id]) => rowAddress(link, id)", [link, name]) is None
    for template in ("javascript:alert('{id}')", None, "//example.org/{id}"):
        assert page.evaluate("([link, id]) => rowAddress(link, id)", [template, "1"]) is None
    links = page.locator("main a[href^='https:']")
    assert links.count() > 12
    kinds = links.evaluate_all("all => all.map(({ rel, target }) => `${rel} ${target}`)")
    assert set(kinds) == {"noopener noreferrer _blank"}


def test_a_typed_query_is_answered_where_the_page_is_served(browser):
    report = labelled_report()
    answers = answer_texts(report, lambda text: report.evaluation.answers.queries[int(text)])
    with PageServer() as server:
        server.show(report.html(asks=True), answers)
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        page = browser.browser.new_page()
        page.goto(server.address)
        box = page.get_by_label("Type a query")
        box.fill("7")
        box.press("Enter")
        page.locator(".asked .rank").first.wait_for()
        for state, column in enumerate((1, 3)):
            rows = page.locator(f".asked .rank-column:nth-of-type({column}) .rank-text").all_inner_texts()
            assert rows == [text for text, _, _ in expected(7, state, 1 - state)]
        assert page.locator(".asked .rank-mark").count() == 0
        box.fill("no number")
        page.get_by_role("button", name="Search").click()
        page.locator(".asked [role=alert]", has_text="invalid literal").wait_for()
        page.close()
        server.shutdown()
        thread.join()


def test_a_page_that_is_a_file_asks_nothing(read_page):
    assert read_page(labelled_report).locator("#ask").count() == 0
