"""A real browser for the tests of the page, and the pages they open."""

import os
import shutil
from collections import namedtuple
from functools import cache
from importlib.util import find_spec
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from hubless import MoveLabeledClassifier, compare, measure_hubness
from hubless.evaluation import Asked, Evaluation, Pair, evaluate_classes, evaluate_relevance, figure
from hubless.report.places import Drawing
from hubless.report.report import Told, make_report
from hubless.report.shown import Shown

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    *("--use-angle=swiftshader", "--enable-unsafe-swiftshader"),  # WebGL without a graphics card
    *("--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
OWN = ("file:", "data:", "blob:")  # all that a page may ask for
SECTIONS = ["summary", "skyline", "map", "hubs", "classes", "changed", "why", "choice", "apply"]

View = namedtuple("View", "width height scheme")
DESK, PHONE = View(1280, 900, "light"), View(390, 844, "dark")
VIEWS = [DESK, PHONE, DESK._replace(scheme="dark"), PHONE._replace(scheme="light")]


def _named(view):
    return f"{view.width}-{view.scheme}"


each_view = pytest.mark.parametrize("view", VIEWS, ids=_named)
each_width = pytest.mark.parametrize("view", [DESK, PHONE], ids=_named)


def _lacking(words):
    """Without a browser the tests are skipped, or fail where HUBLESS_BROWSER=required."""
    (pytest.fail if os.environ.get("HUBLESS_BROWSER") == "required" else pytest.skip)(words)


def found_browser():
    """The browser's file."""
    executable = next(filter(None, map(shutil.which, NAMES)), None)
    if executable is None:
        _lacking(f"no browser ({', '.join(NAMES)}) on the path: apt-get install chromium")
    if find_spec("playwright") is None:
        _lacking("Playwright drives the browser: pip install playwright")
    return executable


# Of a module and not of the session: while it runs, Playwright keeps an event loop running in this thread,
# in which no other test can call asyncio.run, and no second Playwright can start.
@pytest.fixture(scope="module")
def browser():
    executable = found_browser()
    from playwright.sync_api import sync_playwright

    sandbox = [] if os.geteuid() else ["--no-sandbox"]  # root has none
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=executable, args=FLAGS + sandbox)
        yield started
        started.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("pages")


@pytest.fixture
def open_page(browser, folder):
    """Opens the page of a report from its file, offline; at the end no complaint and no request is left.

    open_page(make, view, hash="", script=None, **options of the browser's context), where make() gives the
    report and `script` runs in the page before its own.
    """
    contexts, problems = [], []

    def open_one(make, view=DESK, hash="", script=None, **options):
        file = folder / f"{make.__name__}.html"
        if not file.exists():
            make().save(file)
        size = {"width": view.width, "height": view.height}
        options = {"color_scheme": view.scheme, "reduced_motion": "reduce", "offline": True, **options}
        contexts.append(browser.new_context(viewport=size, **options))
        page = contexts[-1].new_page()
        page.on("console", lambda message: problems.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: problems.append(f"error: {error}"))
        page.on("request", lambda asked: asked.url.startswith(OWN) or problems.append(f"asked {asked.url}"))
        if script:
            page.add_init_script(script)
        page.goto(file.as_uri() + hash)
        if options.get("java_script_enabled", True):
            page.wait_for_selector("html[data-ready=true]")
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert problems == [], problems  # asserts of this file are not told in full by themselves


def overflow(page):
    """Pixels that the page is wider than the window."""
    return page.evaluate("document.documentElement.scrollWidth - innerWidth")


class Map:
    """The map of an open page."""

    def __init__(self, page):
        self.page, self.host = page, page.locator("#map .map")
        self.stage, self.canvas = page.locator(".map-stage"), page.locator(".map-dots")
        self.slider = page.get_by_role("slider")
        self.stage.scroll_into_view_if_needed()

    def told(self, name):
        return self.host.get_attribute(f"data-{name}")

    def wait(self, **values):
        """Until the last frame tells these values."""
        marks = "".join(f'[data-{name.replace("_", "-")}="{value}"]' for name, value in values.items())
        self.page.wait_for_selector(f"#map .map{marks}", timeout=5000)

    def morph(self, percent):
        self.slider.fill(str(percent))
        self.wait(morph=f"{percent / 100:.2f}")

    def screen(self, place):
        return self.host.evaluate("(host, place) => host.hublessMap.screen(place)", place)

    def click(self, place):
        self.page.mouse.click(*self.screen(place))

    def picture(self):
        """Pixels without what pointer and focus show; (height, width, 3)."""
        self.page.mouse.move(1, 1)
        self.page.evaluate("document.activeElement.blur()")
        with Image.open(BytesIO(self.stage.screenshot())) as image:
            return np.asarray(image.convert("RGB"), dtype=int)

    def found(self, words):
        """Waits until the search tells this."""
        self.page.locator(".map-found", has_text=words).wait_for(timeout=5000)


def differ(one, other, share=1e-3):
    """Whether two pictures do, in more than this share of their pixels and by more than smoothed edges."""
    return (np.abs(one - other).max(axis=2) > 48).mean() > share


# Six classes in many dimensions, where hubs do harm: moving helps measurably. The class is in each text.
@cache
def labelled():
    """X, names of classes, queries, their classes."""
    rng, names = np.random.default_rng(0), np.array(["ash", "beech", "cedar", "elm", "fir", "oak"])
    centres = 0.35 * rng.standard_normal((6, 60))
    y, truth = rng.integers(0, 6, 600), rng.integers(0, 6, 400)
    X, queries = (centres[own] + rng.standard_normal((len(own), 60)) for own in (y, truth))
    return X, names[y], queries, names[truth]


@cache
def labelled_model():
    X, y, _, _ = labelled()
    return MoveLabeledClassifier(n_neighbors=10, weights="distance").fit(X, y)


@cache
def labelled_report():
    X, y, queries, truth = labelled()
    return compare(
        labelled_model(),
        *labelled(),
        ids=[f"item-{i:04}" for i in range(len(X))],
        texts=[f"leaf {i} of the {label}" for i, label in enumerate(y)],
        images=np.random.default_rng(1).integers(0, 255, (len(X), 8, 8)).astype(np.uint8),
        query_ids=[f"query-{i:04}" for i in range(len(queries))],
        query_texts=[f"which tree has leaf {i}, the {label}?" for i, label in enumerate(truth)],
        title="Trees and their leaves",
    )


def _report(evaluation, title="Made for a test", drawing=None, **shown):
    n, m = len(evaluation.asked.stored.before), len(evaluation.asked.queries)
    given = Shown(**{"ids": range(n), "query_ids": range(m), "title": title, **shown})
    return make_report(evaluation, given, Told("a mover"), drawing)


@cache
def unmoved_report():
    """Nothing moved, so nothing is gained."""
    X, y, queries, truth = labelled()
    return _report(evaluate_classes(Pair(X, X), Pair(queries, queries), y, truth, Pair(5, 5)))


@cache
def chance_report():
    """Moved by a hair: the change is within chance."""
    X, y, queries, truth = labelled()
    moved = X + 0.05 * np.random.default_rng(2).standard_normal(X.shape)
    return _report(evaluate_classes(Pair(X, moved), Pair(queries, queries), y, truth, Pair(5, 5)))


@cache
def harmful_report():
    """By inner product objects that are made long win whatever is asked."""
    X, y, queries, truth = labelled()
    moved = X * np.where(np.arange(len(X)) % 20 == 0, 9.0, 1.0)[:, None]
    both = Pair(queries, queries)
    return _report(evaluate_classes(Pair(X, moved), both, y, truth, Pair(5, 5), metric="ip"))


@cache
def many_report():
    """200 classes that lie close together."""
    rng = np.random.default_rng(3)
    centres, y, truth = rng.standard_normal((200, 12)), np.arange(1000) % 200, np.arange(1200) % 200
    X, queries = (centres[own] + 0.9 * rng.standard_normal((len(own), 12)) for own in (y, truth))
    labels, classes = (np.array([f"class of kind number {i:03}" for i in own]) for own in (y, truth))
    moved = 0.7 * X + 0.3 * centres[y]
    return _report(evaluate_classes(Pair(X, moved), Pair(queries, queries), labels, classes, Pair(5, 5)))


@cache
def pairs_report():
    """Queries with one or two relevant items; only some of the points are drawn."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((300, 20))
    queries = X[:200] + 0.8 * rng.standard_normal((200, 20))
    relevant = [{i: 1.0} if i % 3 else {i: 2.0, i + 1: 1.0} for i in range(200)]
    states = Pair(X, 0.8 * X + 0.1 * rng.standard_normal(X.shape)), Pair(queries, queries)
    return _report(evaluate_relevance(*states, relevant, 10), drawing=Drawing(max_points=150))


LONG = "x" * 100_000
HOSTILE = [
    "<script>window.hacked=1</script>",
    "<img src=x onerror=window.hacked=1>",
    "\"'`&quot;&lt;/title></style>{{js}}",
    "emoji 👩‍👩‍👧‍👦🏳️‍🌈 é ﷽ 𝔘",
    "\u202eright to left عربي עברית",
    "control \x00\x07\x1b\u2028\u2029 end",
    "javascript:window.hacked=1",
    "__proto__",
]


def hostile_texts(count, what):
    """Each hostile text with a number, so that all differ; every ninth is very long."""
    return [f"{HOSTILE[i % 8]} {what}{i}" + (LONG if i % 9 == 8 else " and its end") for i in range(count)]


@cache
def hostile_report():
    """A user who means ill wrote every text there is."""
    rng = np.random.default_rng(5)
    X, queries = rng.standard_normal((90, 5)), rng.standard_normal((70, 5))
    labels, truth = np.array(HOSTILE)[rng.integers(0, 8, 90)], np.array(HOSTILE)[rng.integers(0, 8, 70)]
    every = " ".join(HOSTILE)
    states = Pair(X, X + 0.8 * rng.standard_normal(X.shape)), Pair(queries, queries)
    evaluation = evaluate_classes(*states, labels, truth, Pair(3, 3), notes=[every, LONG])
    texts = Shown(
        *(hostile_texts(90, "item"), hostile_texts(70, "query")),
        *(hostile_texts(90, "text"), hostile_texts(70, "asked")),
        title=every + LONG,
    )
    movers = [
        {"name": text, "k": 3, "score": 0.5, "error": 0.1, "queries": 70, "seconds": 1.0, "chosen": not i}
        | {"why_not": text}
        for i, text in enumerate([*HOSTILE, LONG])
    ]
    choice = {"words": every, "movers": movers, "seconds": [{"what": every, "seconds": 1.0}]}
    step = {"title": every, "code": every + LONG, "language": every}
    told = Told(every, None, choice, {"words": every, "steps": [step], "undo": [step]}, [(every, LONG)] * 2)
    return make_report(evaluation, texts, told)


@cache
def large_evaluation():
    """50,000 items and 10,000 queries, with neighbours by chance, some items far more often than others."""
    rng, n, m = np.random.default_rng(6), 50_000, 10_000
    X, queries = (rng.standard_normal((size, 8)).astype(np.float32) for size in (n, m))
    found = Pair(*((n * rng.random((m, 10)) ** power).astype(np.int64) for power in (3, 1.5)))
    labels, truth = (np.char.add("class ", (rng.integers(0, 10, size)).astype(str)) for size in (n, m))
    wrong = Pair(*(labels[own] != truth[:, None] for own in found))
    answer = Pair(*(labels[own[:, 0]] for own in found))
    right = Pair(*(own == truth for own in answer))
    asked = Asked(Pair(X, X * 0.6), queries, found, wrong, right, answer, labels, truth, Pair(1, 1), "l2")
    figures = [figure("accuracy", "all", *(own.astype(float) for own in right))]
    fixed, broken = (right.after & ~right.before).sum(), (right.before & ~right.after).sum()
    hubness = tuple(measure_hubness(own, n) for own in found)
    return Evaluation(figures, int(fixed), int(broken), "the class of the nearest", hubness, [], asked)


@cache
def large_report():
    return _report(large_evaluation(), drawing=Drawing(max_points=50_000))
