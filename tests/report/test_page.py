"""The page in a real browser: its sections, figures, charts and lists, on paper, and without scripts."""

import asyncio
import json
from collections import Counter
from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import pytest
from scipy.stats import skew
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors

from hubless import measure_hubness
from tests.report.browser import DESK, PHONE, SECTIONS, each_view, each_width, overflow
from tests.report.pages import (
    chance_report,
    harmful_report,
    labelled,
    labelled_model,
    labelled_report,
    many_report,
    pairs_report,
    unmoved_report,
)

pytestmark = pytest.mark.browser


def test_other_tests_can_run_an_event_loop(chromium):
    """Although the browser stays open between tests."""
    asyncio.run(asyncio.sleep(0))


def figures_of(page):
    return json.loads(page.locator("#figures").text_content())


def numeral(value, form):
    """A number as people round it: halves go up."""
    scaled, digits = (100 * value, 1) if form == "percent" else (value, 2 if form == "number" else 3)
    rounded = Decimal(scaled).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    return f"{rounded:,}".replace("-", "−") + ("\u00a0%" if form == "percent" else "")


@each_view
def test_sections_in_order(read_page, view):
    page = read_page(labelled_report, view)
    sections = page.locator("main > section")
    assert sections.evaluate_all("all => all.map(node => node.id)") == SECTIONS
    for section in sections.all():
        assert section.is_visible()
        assert section.bounding_box()["height"] > 100
        heading = section.locator("h1, h2").first
        assert heading.is_visible()
        assert len(heading.inner_text()) > 5
        assert section.get_attribute("aria-labelledby") == heading.get_attribute("id")
    assert page.locator("h1").inner_text() == page.title() == "Trees and their leaves"
    assert page.locator("[role=alert]").count() == 0
    assert [page.locator(f"#{section} .chart svg").count() for section in SECTIONS] == [
        0,
        2,
        0,
        0,
        0,
        1,
        0,
        3,
        1,
        0,
    ]
    assert json.loads(page.locator("pre.json").text_content()) == figures_of(page)
    assert page.locator("nav a").evaluate_all("all => all.map(node => node.hash.slice(1))") == SECTIONS


def nearest_vote():
    return KNeighborsClassifier(10, weights="distance", algorithm="brute")  # no two votes are equal


def naive_tiles():
    """The four figures before and after by scikit-learn and SciPy."""
    X, y, queries, truth = labelled()
    moved = np.asarray(labelled_model().moved_)
    figures = {}
    for state, stored in (("before", X), ("after", moved)):
        near = NearestNeighbors(n_neighbors=10, algorithm="brute").fit(stored).kneighbors(queries)[1]
        occurrence = np.zeros(len(X), dtype=int)
        for item in near.ravel():
            occurrence[item] += 1
        figures[state] = {
            "score": nearest_vote().fit(stored, y).score(queries, truth),
            "skewness": skew(occurrence),
            "busiest": np.sort(occurrence)[-6:].sum() / near.size,
            "never": np.mean(occurrence == 0),
        }
        hubness = measure_hubness(near, len(X))
        library = [hubness.skewness, hubness.busiest_share, hubness.antihub_share]
        np.testing.assert_allclose(library, list(figures[state].values())[1:], rtol=1e-9)
    assert labelled_model().score(queries, truth) == figures["after"]["score"]
    return figures


@each_width
def test_tiles_are_the_figures(read_page, view):
    page = read_page(labelled_report, view)
    tiles, truth = figures_of(page)["summary"]["figures"], naive_tiles()
    assert [tile["key"] for tile in tiles] == list(truth["before"])
    for shown, tile in zip(page.locator(".tile").all(), tiles, strict=True):
        assert shown.is_visible()
        assert shown.get_attribute("data-key") == tile["key"]
        for state in ("before", "after"):
            value = float(shown.get_attribute(f"data-{state}"))
            assert value == tile[state]
            assert value == pytest.approx(truth[state][tile["key"]], rel=1e-9)
            words = shown.locator(f".value-{state}").inner_text().split(maxsplit=1)[1]
            assert words == numeral(value, tile["form"])
    difference = 100 * (tiles[0]["after"] - tiles[0]["before"])
    ends = [f"{100 * tiles[0][end]:+.1f}" for end in ("low", "high")]
    change = page.locator(".tile .change").first.inner_text()
    assert change == f"{difference:+.1f} points, 95\u00a0% interval {ends[0]} to {ends[1]}"


VERDICTS = {
    labelled_report: ("move", "Move", "95 % interval of the change +"),
    unmoved_report: ("no gain", "No measurable gain", "The items were not moved"),
    chance_report: ("no gain", "No measurable gain", "may be chance"),
    harmful_report: ("harmful", "Harmful under this metric (inner product)", "search by L2"),
}


@pytest.mark.parametrize("make", VERDICTS, ids=lambda make: make.__name__)
def test_verdict_in_words(read_page, make):
    kind, title, words = VERDICTS[make]
    page = read_page(make)
    verdict = page.locator(".verdict")
    assert verdict.get_attribute("data-kind") == kind
    assert verdict.locator("strong").inner_text() == title
    assert words in verdict.text_content().replace("\u00a0", " ")
    score = page.locator(".tile").first
    word = {"move": "better", "no gain": "no c", "harmful": "worse"}[kind]
    assert word in score.locator(".judgement").inner_text()


def test_a_hub_that_became_an_anti_hub_is_named(read_page):
    """By inner product: items that were found, and that no query finds beside those that are made long."""
    report, page = harmful_report(), read_page(harmful_report)
    X, _, queries, _ = labelled()
    long = X * np.where(np.arange(len(X)) % 20 == 0, 9.0, 1.0)[:, None]
    counts = [
        Counter(int(i) for x in queries for i in np.argsort([-x @ z for z in stored])[:10])
        for stored in (X, long)
    ]
    cards = page.locator(".card")
    assert cards.count() == len(report.details["hubs"])
    became = []
    for card, hub in zip(cards.all(), report.details["hubs"], strict=True):
        before, after = (count[int(hub["id"])] for count in counts)
        became.append(before > 0 and after == 0)
        assert ("the hub became an anti-hub" in card.text_content()) == became[-1]
    assert set(became) == {True, False}


@each_width
def test_skyline_and_lorenz(read_page, view):
    page = read_page(labelled_report, view)
    figures, charts = figures_of(page), page.locator("#skyline .chart svg")
    assert charts.count() == 2
    for chart in charts.all():
        paths = chart.locator("g[aria-label=line] path")
        assert paths.evaluate_all("all => all.map(node => node.getTotalLength() > 100)") == [True, True]
        strokes = chart.locator("g[aria-label=line]").evaluate_all(
            "all => all.map(g => g.getAttribute('stroke'))"
        )
        assert strokes == ["var(--before)", "var(--after)"]
    line, (busiest, *_) = figures["skyline"], page.locator("#skyline svg").all()
    assert f"{line['before'][0]} queries before and {line['after'][0]} after" in busiest.get_attribute(
        "aria-label"
    )
    page.get_by_text("The curve as a table").click()
    rows = page.locator("#skyline tbody tr").evaluate_all(
        "all => all.map(r => [...r.cells].map(c => c.innerText))"
    )
    places = {str(rank): place for place, rank in enumerate(line["rank"])}
    assert [row[0] for row in rows[:10]] == list(places)[:10]
    assert rows[-1][0] == str(len(labelled()[0]))
    for rank, before, after in rows:
        at = places[rank]
        assert (int(before), int(after)) == (line["before"][at], line["after"][at])


def naive_pairs(classes, view):
    """Pairs of classes that a view shows with a number other than zero."""
    counted = {
        state: Counter({(i, j): n for i, j, n in triples}) for state, triples in classes["wrong"].items()
    }
    before, after = counted.values()
    if view == "difference":
        return {pair for pair in {*before, *after} if after[pair] != before[pair]}
    return set(counted[view])


def named_classes(page, axis):
    """Numbers of the classes that an axis names; their names differ at the end only."""
    names = page.locator(f"#classes svg g[aria-label='{axis}-axis tick label'] text").all_text_contents()
    assert len(set(names)) == len(names)
    return {int(name[-3:]) for name in names}


@each_width
def test_heat_map_of_many_classes(open_page, view):
    """A cell must be seen on a phone too, where 200 classes have less than 2 pixels each."""
    page = open_page(many_report, view)
    classes, cells = figures_of(page)["classes"], page.locator("#classes svg g[aria-label=rect] rect")
    listed = page.locator("#classes .pairs tbody tr")
    for extent in ("worst", "all"):
        page.locator(f"#classes input[value={extent}]").check()
        for state in ("before", "after", "difference"):
            page.locator(f"#classes input[value={state}]").check()
            pairs = naive_pairs(classes, state)
            if extent == "worst":
                rows, columns = named_classes(page, "y"), named_classes(page, "x")
                pairs = {(true, given) for true, given in pairs if true in rows and given in columns}
                assert (rows, columns) == tuple(map(set, zip(*pairs, strict=True)))  # no empty ones
                assert 10 < len(rows) <= 30
            assert cells.count() == len(pairs)
            sizes = cells.evaluate_all(
                "all => all.map(node => node.getBoundingClientRect()).map(b => [b.width, b.height])"
            )
            assert np.min(sizes) >= 1.99
            assert listed.count() == 15
        assert overflow(page) <= 0
    pair = max(classes["wrong"]["before"], key=lambda triple: triple[2])
    page.locator("#classes input[value=before]").check()
    first = listed.first.locator("td").all_inner_texts()
    assert int(first[2]) == pair[2]


def test_heat_map_of_few_classes_equals_sklearn(read_page):
    X, y, queries, truth = labelled()
    answer = nearest_vote().fit(X, y).predict(queries)
    page = read_page(labelled_report)
    classes = figures_of(page)["classes"]
    wrong = Counter((a, b) for a, b in zip(truth, answer, strict=True) if a != b)
    assert {(classes["names"][i], classes["names"][j]): n for i, j, n in classes["wrong"]["before"]} == wrong
    assert page.locator("#classes svg g[aria-label=rect] rect").count() == len(wrong)
    assert page.locator("#classes input[name=extent]").count() == 0


def changed_line(page):
    return page.locator("#changed .count").inner_text()


def expected_line(broken, fixed):
    many = broken + fixed
    queries = f"{many} {'query' if many == 1 else 'queries'}"
    return f"{queries} ({broken} broken, {fixed} fixed), {min(many, 3)} shown."


@each_width
def test_changed_queries(open_page, view):
    answers, truth = labelled_report().evaluation.answers, labelled()[3]
    status = {
        i: "broken" if before else "fixed"
        for i, (before, after) in enumerate(zip(*answers.correct, strict=True))
        if before != after
    }
    total = Counter(status.values())
    page = open_page(labelled_report, view)
    queries = page.locator("#changed li.query")
    assert changed_line(page) == expected_line(total["broken"], total["fixed"])
    shown = queries.evaluate_all("all => all.map(node => node.dataset.status)")
    assert shown == (["broken"] * total["broken"] + ["fixed"] * 3)[:3]
    more = page.locator("#changed button.more")
    while more.is_visible():
        more.click()
    texts = page.locator("#changed summary .text").all_inner_texts()
    assert sorted(texts) == sorted(f"which tree has leaf {i}, the {truth[i]}?" for i in status)
    for kind, parts in (("broken", (total["broken"], 0)), ("fixed", (0, total["fixed"]))):
        page.locator(f"#changed input[value={kind}]").check()
        assert changed_line(page) == expected_line(*parts)
    page.locator("#changed input[value=all]").check()
    page.locator("#changed select").select_option(label="oak")
    oaks = Counter(kind for i, kind in status.items() if truth[i] == "oak")
    assert changed_line(page) == expected_line(oaks["broken"], oaks["fixed"])
    page.locator("#changed select").select_option(label="all classes")
    one = next(i for i, kind in status.items() if kind == "fixed")
    page.locator("#changed input[type=search]").fill(f"query-{one:04}")
    assert changed_line(page) == expected_line(0, 1)
    neighbours = queries.locator("ol.neighbors").nth(1).locator("li").all_text_contents()
    near = answers.neighbors.after[one][:5]
    assert [f"leaf {i} of the" in text for i, text in zip(near, neighbours, strict=True)] == [True] * 5
    page.locator("#changed input[type=search]").fill("no such query")
    assert changed_line(page) == "No query matches."


def test_of_many_changed_queries_the_page_says_how_many_are_listed(read_page):
    before, after = many_report().evaluation.answers.correct
    fixed, broken = (int(part.sum()) for part in (after & ~before, before & ~after))
    assert fixed > 100 > broken
    page = read_page(many_report, DESK)
    text = page.locator("#changed").inner_text()
    assert f"{broken} queries are broken, {fixed} fixed" in text
    assert f"{broken + 100} of the {broken + fixed} are listed." in text
    assert changed_line(page) == expected_line(broken, 100)


def test_pairs_have_no_classes(read_page):
    page = read_page(pairs_report, PHONE)
    assert "relevant items, not classes" in page.locator("#classes").inner_text()
    assert page.locator("#classes svg").count() == 0
    tile = page.locator(".tile").first
    assert tile.locator("h2").inner_text() == "nDCG@10"
    assert tile.locator(".value-after").inner_text().split()[1] == numeral(
        float(tile.get_attribute("data-after")), "fraction"
    )
    assert "150 of 300 items are drawn" in page.locator(".map-caption").inner_text()


def tie_report():
    """A figure in the middle between two numerals."""
    report = labelled_report()
    first, *others = report.figures["summary"]["figures"]
    tiles = [first | {"before": 0.8125, "after": 0.8225}, *others]
    return replace(
        report, figures=report.figures | {"summary": report.figures["summary"] | {"figures": tiles}}
    )


@pytest.mark.parametrize("make", [labelled_report, tie_report], ids=lambda make: make.__name__)
def test_without_scripts_the_page_has_the_same_figures(open_page, make):
    page = open_page(make, PHONE, java_script_enabled=False)
    assert page.locator("h1").inner_text() == "Trees and their leaves"
    rows = page.locator("main tr").all()[1:]
    for row, tile in zip(rows, make().figures["summary"]["figures"], strict=True):
        title, *shown = row.locator("th, td").all_inner_texts()
        assert title == tile["title"]
        expected = [
            numeral(tile[state], tile["form"]).replace("\u00a0", " ") for state in ("before", "after")
        ]
        assert [text.replace("\u00a0", " ") for text in shown] == expected
    assert overflow(page) <= 0


def test_browser_that_cannot_unpack(open_page):
    page = open_page(labelled_report, PHONE, script="delete window.DecompressionStream")
    message = page.locator("[role=alert]").inner_text()
    assert "the hub cards and the changed queries cannot be shown" in message
    assert "DecompressionStream" in message
    kept = [section for section in SECTIONS if section not in ("map", "hubs", "explorer", "changed")]
    assert page.locator("main > section").evaluate_all("all => all.map(node => node.id)") == kept
    assert page.locator(".tile").count() == 4
    assert page.locator("#skyline svg").count() == 2
