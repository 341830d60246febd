"""One browser for all tests of a worker, and pages in it."""

import asyncio

import pytest

from benchmarks.map_frames import FLAGS
from tests.report.browser import DESK, TIMEOUT, browser_file

OFFLINE = ("file:", "data:", "blob:")  # all that a page may ask for


class Chromium:
    """A browser with pages that are kept open for tests that only read them.

    While Playwright runs, its event loop counts as running in this thread, and no other test could call
    asyncio.run. So the loop is entered only while a test uses the browser.
    """

    def __init__(self, playwright, executable, folder):
        self.browser = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        self.folder, self.problems, self.kept = folder, [], {}
        self.loop = asyncio.get_running_loop()

    def open(self, make, view=DESK, hash="", script=None, **options):
        """Open the page of a report from its file, offline.

        make() gives the report, `script` runs in the page before its own, options are the browser context's.
        """
        file = self.folder / f"{make.__name__}.html"
        if not file.exists():
            make().save(file)
        size = {"width": view.width, "height": view.height}
        options = {"color_scheme": view.scheme, "reduced_motion": "reduce", "offline": True, **options}
        context = self.browser.new_context(viewport=size, **options)
        context.set_default_timeout(TIMEOUT)
        page = context.new_page()
        self._listen(page)
        if script:
            page.add_init_script(script)
        page.goto(file.as_uri() + hash)
        if options.get("java_script_enabled", True):
            page.wait_for_selector("html[data-ready=true]")
        return page

    def _listen(self, page):
        """Note every complaint, and every request to a network."""
        note = self.problems.append
        page.on("console", lambda said: note(f"{said.type}: {said.text}"))
        page.on("pageerror", lambda error: note(f"error: {error}"))
        page.on("request", lambda sent: sent.url.startswith(OFFLINE) or note(f"request: {sent.url}"))

    def read(self, make, view=DESK):
        """Open a page once, for tests that leave it as it is."""
        if (make, view) not in self.kept:
            self.kept[make, view] = self.open(make, view)
        return self.kept[make, view]


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    executable = browser_file()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = Chromium(playwright, executable, tmp_path_factory.mktemp("pages"))
        asyncio._set_running_loop(None)
        yield started
        asyncio._set_running_loop(started.loop)
        started.browser.close()
    asyncio._set_running_loop(None)


@pytest.fixture
def browser(chromium):
    """The browser, while a test uses it; at the end no complaint and no request is left."""
    asyncio._set_running_loop(chromium.loop)
    yield chromium
    asyncio._set_running_loop(None)
    problems, chromium.problems[:] = [*chromium.problems], []
    assert problems == []


@pytest.fixture
def read_page(browser):
    """Gives a page that other tests read too: read_page(make, view)."""
    return browser.read


@pytest.fixture
def open_page(browser):
    """Opens a new page: open_page(make, view, hash="", script=None, **options)."""
    pages = []

    def open_one(*arguments, **options):
        pages.append(browser.open(*arguments, **options))
        return pages[-1]

    yield open_one
    for page in pages:
        page.context.close()
