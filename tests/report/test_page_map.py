"""The map in a real browser: slider, rays, search, filters, zoom; and with 50,000 items."""

import re

import numpy as np
import pytest
from scipy.stats import binom

from benchmarks.map_frames import PLAY, large_report
from tests.report.browser import PHONE, Map, differ, each_width, overflow, wait_frames
from tests.report.pages import labelled, labelled_report, many_report, pairs_relevant, pairs_report

pytestmark = pytest.mark.browser


def rays(report, state, item, drawn):
    """How many of the drawn queries have the item among their neighbours, and how many of them wrongly."""
    answers = report.evaluation.answers
    neighbors, wrong = getattr(answers.neighbors, state), getattr(answers.wrong, state)
    hits = [(query, rank) for query in drawn for rank, near in enumerate(neighbors[query]) if near == item]
    return len(hits), sum(bool(wrong[hit]) for hit in hits)


def occurrences(report, state):
    answers = report.evaluation.answers
    counted = np.zeros(len(answers.stored.before), dtype=int)
    for row in getattr(answers.neighbors, state):
        for item in row:
            counted[item] += 1
    return counted


def between_items(map_):
    """From each item to the next on the screen: these stay when the page scrolls."""
    return np.diff([map_.screen(place) for place in range(600)], axis=0)


@each_width
def test_slider_changes_sizes_and_keeps_places(open_page, view):
    map_ = Map(open_page(labelled_report, view))
    map_.wait(morph="0.00")
    state, apart = map_.page.locator(".map-state"), between_items(map_)
    assert state.inner_text() == "Before moving"
    before = map_.picture()
    map_.morph(100)
    assert state.inner_text() == "After moving"
    assert between_items(map_) == pytest.approx(apart, abs=1e-6)
    after = map_.picture()
    map_.morph(50)
    assert state.inner_text() == "50 %"
    middle = map_.picture()
    assert differ(before, middle)
    assert differ(middle, after)
    assert differ(before, after)
    map_.morph(0)
    assert not differ(map_.picture(), before)
    map_.slider.focus()
    map_.page.keyboard.press("ArrowRight")
    map_.wait(morph="0.01")
    map_.page.keyboard.press("End")
    map_.wait(morph="1.00")
    assert map_.slider.get_attribute("aria-valuetext") == "after moving"
    map_.page.keyboard.press("Home")
    map_.wait(morph="0.00")


def test_play_goes_from_before_to_after(open_page):
    """Through all that is between, in 1.6 seconds of the page's clock, whatever time a frame takes."""
    map_ = Map(open_page(labelled_report, reduced_motion="no-preference"))
    map_.wait(morph="0.00")
    map_.page.clock.install()
    map_.page.clock.pause_at("2100-01-01")
    map_.page.get_by_role("button", name="Play").click()
    map_.page.get_by_role("button", name="Stop").wait_for()
    seen = []
    while map_.page.locator(".map-play").inner_text() == "Stop" and len(seen) < 100:
        map_.page.clock.run_for(100)
        seen.append(float(map_.value("morph")))
    assert seen == sorted(seen)
    assert seen[-1] == 1
    assert 16 <= len(seen) <= 18
    assert len(set(seen)) > 14


@each_width
def test_clicking_a_hub_draws_its_rays(open_page, view):
    report = labelled_report()
    drawn = range(len(report.evaluation.answers.queries))
    map_ = Map(open_page(labelled_report, view))
    bare = map_.picture()
    for percent, state in ((0, "before"), (100, "after")):
        map_.morph(percent)
        hub = int(np.argmax(occurrences(report, state)))
        map_.click(hub)
        for other, now in ((percent, state), (100 - percent, "after" if percent == 0 else "before")):
            map_.morph(other)
            count, wrong = rays(report, now, hub, drawn)
            map_.wait(selected=f"item-{hub:04}", rays=count, wrong_rays=wrong)
        assert f"Queries that find it {now} moving" in map_.page.locator(".map-panel").inner_text()
        map_.morph(0)
        assert differ(map_.picture(), bare)
        map_.canvas.press("Escape")
        map_.wait(selected="", rays=0, wrong_rays=0)
        assert not differ(map_.picture(), bare)
    map_.page.mouse.click(*map_.screen(hub))
    map_.page.keyboard.press("Escape")  # a click gives the map the keys
    map_.wait(selected="")


def test_the_address_says_what_is_selected(open_page):
    """A link opens the item in its state; Back, and Escape, return."""
    map_ = Map(open_page(labelled_report, hash="#hub=item-0003&state=after"))
    map_.wait(selected="item-0003", morph="1.00")
    map_.page.get_by_label("Find an item").fill("item-0007")
    map_.page.locator(".map-results button").click()
    map_.wait(selected="item-0007", morph="1.00")
    map_.page.wait_for_url("**/*#hub=item-0007&state=after")
    map_.morph(0)
    map_.page.wait_for_url("**/*#hub=item-0007")
    map_.page.go_back()
    map_.wait(selected="item-0003", morph="1.00")
    map_.canvas.press("Escape")
    map_.page.wait_for_url("**/*#state=after")
    map_.wait(selected="", morph="1.00")


def test_panel_shows_the_selected_item(open_page):
    report, map_ = labelled_report(), Map(open_page(labelled_report))
    before, after = (occurrences(report, state) for state in ("before", "after"))
    hub = int(np.argmax(before))
    map_.click(hub)
    map_.wait(selected=f"item-{hub:04}")
    panel = map_.page.locator(".map-panel")
    assert f"leaf {hub} of the {labelled()[1][hub]}" in panel.inner_text()
    assert panel.locator("dd").first.inner_text() == f"{before[hub]} → {after[hub]}"
    count, wrong = rays(report, "before", hub, range(400))
    assert panel.locator(".map-queries li").count() == min(count, 50)
    assert panel.locator(".map-queries li.map-wrong").count() == min(wrong, 50)
    map_.page.get_by_role("button", name="Clear the selection").click()
    map_.wait(selected="")


def test_rays_go_to_the_drawn_queries_only(open_page):
    report, map_ = pairs_report(), Map(open_page(pairs_report, PHONE))
    drawn = [int(query) for query in report.details["queries"]["id"]]
    assert len(drawn) == 75
    places = [int(item) for item in report.details["items"]["id"]]
    assert len(places) == 150
    hub = int(np.argmax(occurrences(report, "before")))
    map_.click(places.index(hub))
    count, wrong = rays(report, "before", hub, drawn)
    assert count < occurrences(report, "before")[hub]
    assert wrong == 0  # nobody judged any
    near, relevant = report.evaluation.answers.neighbors.before, pairs_relevant()
    unjudged = sum(hub in near[query] and hub not in relevant[query] for query in drawn)
    map_.wait(selected=hub, rays=count, wrong_rays=unjudged)
    assert f"{count} of them drawn" in map_.page.locator(".map-panel").inner_text()


def test_search_by_id_and_by_text(open_page):
    map_ = Map(open_page(labelled_report, PHONE))
    box = map_.page.get_by_label("Find an item")
    listed = map_.page.locator(".map-results button")
    bare = map_.picture()
    box.fill("ITEM-0123")
    map_.wait_found("1 item matches.")
    assert differ(map_.picture(), bare, 1e-4)  # a ring
    box.press("Enter")
    map_.wait(selected="item-0123")
    box.fill("of the oak")
    oaks = int(sum(label == "oak" for label in labelled()[1]))
    map_.wait_found(f"{oaks} items match. The first 20 are listed.")
    assert listed.count() == 20
    chosen = listed.nth(3).locator(".user").inner_text()
    listed.nth(3).click()
    map_.wait(selected=f"item-{int(chosen.split()[1]):04}")
    box.fill("no such leaf")
    map_.wait_found("0 items match.")
    assert listed.count() == 0


def test_filters_leave_what_they_should(open_page):
    report, map_, labels = labelled_report(), Map(open_page(labelled_report)), labelled()[1]
    before, after = (occurrences(report, state) for state in ("before", "after"))
    hub_from = binom.isf(0.05 / 600, 400, 10 / 600) + 1  # so many answers, chance hardly ever gives
    busy = {0: before >= hub_from, 100: after >= hub_from}
    shown, classes = map_.page.locator(".map-visible"), map_.page.locator(".map-control select").nth(1)
    map_.wait(visible=600)
    everything = map_.picture()
    classes.select_option(label="elm")
    map_.wait(visible=int((labels == "elm").sum()))
    assert shown.inner_text() == f"{(labels == 'elm').sum()} of 600 items"
    assert differ(map_.picture(), everything)
    map_.page.get_by_label("Only hubs").check()
    for percent, hubs in busy.items():
        map_.morph(percent)
        map_.wait(visible=int((hubs & (labels == "elm")).sum()))
    classes.select_option(label="all classes")
    map_.wait(visible=int(busy[100].sum()))
    map_.page.get_by_label("Only hubs").uncheck()
    map_.morph(0)
    map_.wait(visible=600)
    map_.page.get_by_label("Queries", exact=True).uncheck()
    assert differ(map_.picture(), everything)
    map_.page.get_by_label("Queries", exact=True).check()
    for colour in ("class", "wrong"):
        map_.page.get_by_label("Colour by").select_option(colour)
        assert differ(map_.picture(), everything)


def test_one_of_many_classes_is_typed(open_page):
    map_ = Map(open_page(many_report, PHONE))
    box = map_.page.get_by_label("Class", exact=True)
    box.fill("class of kind number 017")
    map_.wait(visible=5)
    box.fill("class of no kind")
    map_.wait(visible=1000)
    assert box.get_attribute("aria-invalid") == "true"


@each_width
def test_zoom_by_buttons_wheel_and_keys(open_page, view):
    map_ = Map(open_page(labelled_report, view))
    bare = map_.picture()
    map_.page.get_by_role("button", name="Zoom in").click()
    map_.wait(zoom="1.600")
    assert differ(map_.picture(), bare)
    map_.page.get_by_role("button", name="Zoom out").click()
    map_.wait(zoom="1.000")
    box = map_.stage.bounding_box()
    map_.page.mouse.move(box["x"] + 90, box["y"] + 90)
    scrolled = map_.page.evaluate("scrollY")
    map_.page.mouse.wheel(0, 40)  # scrolls the page, as long as the map has not the focus
    map_.page.wait_for_function("before => scrollY !== before", arg=scrolled)
    wait_frames(map_.page)
    assert map_.value("zoom") == "1.000"
    map_.page.mouse.wheel(0, -40)
    map_.page.wait_for_function("before => scrollY === before", arg=scrolled)
    map_.page.locator("#map .map-dots").focus()
    map_.page.mouse.wheel(0, -200)
    map_.page.wait_for_selector("#map .map:not([data-zoom='1.000'])")
    assert float(map_.value("zoom")) > 1.1
    map_.page.get_by_role("button", name="Reset").click()
    map_.wait(zoom="1.000")
    map_.canvas.press("+")
    map_.wait(zoom="1.400")
    place = map_.screen(0)
    map_.canvas.press("ArrowRight")
    assert map_.screen(0)[0] == pytest.approx(place[0] - 60, abs=1)
    map_.canvas.press("-")
    map_.wait(zoom="1.000")
    map_.canvas.press("0")
    assert not differ(map_.picture(), bare)


def test_drag_pans_and_selects_nothing(open_page):
    map_ = Map(open_page(labelled_report))
    map_.canvas.press("+")
    hub = int(np.argmax(occurrences(labelled_report(), "before")))
    x, y = map_.screen(hub)
    map_.page.mouse.move(x, y)
    map_.page.mouse.down()
    map_.page.mouse.move(x + 40, y + 30, steps=4)
    map_.page.mouse.up()
    assert map_.screen(hub) == pytest.approx([x + 40, y + 30], abs=1)
    assert map_.value("selected") == ""


@each_width
def test_hub_card_shows_the_item_on_the_map(open_page, view):
    report, page = labelled_report(), open_page(labelled_report, view)
    counted = occurrences(report, "before")
    cards = page.locator(".card")
    shown = [int(text[-4:]) for text in cards.locator("h3").all_inner_texts()]
    answers = report.evaluation.answers
    misled = np.bincount(answers.neighbors.before[answers.wrong.before], minlength=600)
    worst = sorted(zip(misled, counted, strict=True), reverse=True)
    assert [(misled[item], counted[item]) for item in shown] == worst[:12]
    values = [int(text) for text in cards.first.locator(".bar-value").all_inner_texts()]
    assert values == [map_[shown[0]] for map_ in (counted, occurrences(report, "after"))]
    count, wrong = rays(report, "before", shown[0], range(400))
    percent = re.search(r"of its queries: (\d+)\s% before", cards.first.locator(".wrong-share").inner_text())
    assert abs(int(percent[1]) - 100 * wrong / count) <= 0.5
    page.get_by_role("button", name="Show 12 items").click()
    cards.nth(11).get_by_role("button", name="Show on the map").click()
    page.wait_for_selector(f"#map .map[data-selected=item-{shown[11]:04}]")
    box = page.locator(".map-stage").bounding_box()
    assert -1 <= box["y"] < view.height / 2


# Many changes of the slider and the wheel in one task, then the same one by one; gives frames after either
CHANGES = """async (host) => {
  const slider = host.querySelector("input[type=range]");
  const drawn = () => Number(host.dataset.frames);
  const change = (value) => {
    slider.value = value;
    slider.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  await frame();
  const first = drawn();
  for (let value = 1; value <= 30; value++) change(value);
  await frame();
  const together = drawn() - first;
  for (let value = 31; value <= 40; value++) {
    change(value);
    await frame();
  }
  return [together, drawn() - first - together];
}"""


def test_50_000_items_are_drawn_once_a_frame(open_page):
    """Work is counted, not seconds: `python -m benchmarks.map_frames` measures how smooth the map is."""
    map_ = Map(open_page(large_report))
    map_.wait(visible=50_000)
    assert map_.host.evaluate(CHANGES) == [1, 10]
    hub = map_.screen(0)
    for kind in ("slide", "pan"):
        frames, _ = map_.page.evaluate(PLAY, [map_.host.element_handle(), kind, 700])
        assert frames > 0
    assert map_.screen(0) != hub
    assert overflow(map_.page) <= 0
