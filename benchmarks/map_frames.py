"""How smooth the map of a page is with 50,000 items: frames a second while the slider and the zoom move.

    python -m benchmarks.map_frames [--items 50000]

needs Playwright and Chromium, and prints JSON. Frames are counted by the clock, and by the second of
processor time that the page's main thread used, which says the same on a busy machine.
"""

import argparse
import json
import os
import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np

from hubless.evaluation import Answers, BeforeAfter, Evaluation, measure_change
from hubless.hubness import measure_hubness
from hubless.report.details import Captions
from hubless.report.map_layout import Drawing
from hubless.report.report import ModelDescription, Report, make_report

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    *("--use-angle=swiftshader", "--enable-unsafe-swiftshader"),  # WebGL without a graphics card
    *("--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *([] if os.geteuid() else ["--no-sandbox"]),  # root has none
]
ROUNDS = 3

# Moves the slider and turns the wheel in every frame; gives frames drawn, seconds, deepest zoom.
PLAY = """async ([host, duration]) => {
  const [slider, canvas] = [host.querySelector("input[type=range]"), host.querySelector(".map-dots")];
  const box = canvas.getBoundingClientRect();
  const middle = { clientX: box.left + box.width / 2, clientY: box.top + box.height / 2 };
  canvas.focus();
  const [began, drawn] = [performance.now(), Number(host.dataset.frames)];
  let deepest = 1;
  for (let passed = 0; passed < duration; passed = performance.now() - began) {
    slider.value = Math.round(50 - 50 * Math.cos(passed / 200));
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    const deltaY = -60 * Math.sign(Math.sin(passed / 240));
    canvas.dispatchEvent(new WheelEvent("wheel", { ...middle, deltaY, bubbles: true, cancelable: true }));
    await new Promise(requestAnimationFrame);
    deepest = Math.max(deepest, Number(host.dataset.zoom));
  }
  return [Number(host.dataset.frames) - drawn, (performance.now() - began) / 1000, deepest];
}"""


@cache
def large_report(n: int = 50_000) -> Report:
    """Make a report of n items and n / 5 queries, with random neighbours, some items far more often."""
    rng, m = np.random.default_rng(6), n // 5
    X, queries = (rng.standard_normal((size, 8)).astype(np.float32) for size in (n, m))
    near = BeforeAfter(*((n * rng.random((m, 10)) ** power).astype(np.int64) for power in (3, 1.5)))
    labels, truth = (np.char.add("class ", (rng.integers(0, 10, size)).astype(str)) for size in (n, m))
    wrong = BeforeAfter(*(labels[indices] != truth[:, None] for indices in near))
    predicted = BeforeAfter(*(labels[indices[:, 0]] for indices in near))
    correct = BeforeAfter(*(classes == truth for classes in predicted))
    answers = Answers(
        BeforeAfter(X, X * 0.6),
        queries,
        near,
        wrong,
        correct,
        predicted,
        labels,
        truth,
        BeforeAfter(1, 1),
        "l2",
    )
    figures = [measure_change("accuracy", "all", *(answered.astype(float) for answered in correct))]
    fixed, broken = (correct.after & ~correct.before).sum(), (correct.before & ~correct.after).sum()
    hubness = BeforeAfter(measure_hubness(near.before, n), measure_hubness(near.after, n))
    evaluation = Evaluation(
        figures, int(fixed), int(broken), "the class of the nearest", hubness, [], answers
    )
    captions = Captions(range(n), range(m), title=f"{n:,} random items")
    return make_report(evaluation, captions, ModelDescription("a mover"), Drawing(max_points=n))


def measure(n: int, duration: float = 3.0) -> dict[str, Any]:
    """Return seconds to make the page, and frames a second of the best of three rounds."""
    from playwright.sync_api import sync_playwright

    executable = next(filter(None, map(shutil.which, BROWSERS)), None)
    report, started = large_report(n), perf_counter()
    html = report.html()
    result: dict[str, Any] = {"items": n, "page seconds": perf_counter() - started, "bytes": len(html)}
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / "page.html"
        file.write_text(html, encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
        page.goto(file.as_uri())
        page.wait_for_selector(f'#map .map[data-visible="{n}"]')
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable")
        rounds = [frame_rates(page, session, duration) for _ in range(ROUNDS)]
        browser.close()
    return result | {"by clock": max(a for a, _ in rounds), "by processor": max(b for _, b in rounds)}


def frame_rates(page: Any, session: Any, duration: float) -> tuple[float, float]:
    """Return frames by the second of the clock, and by the second of the main thread."""
    host = page.locator("#map .map").element_handle()
    used = _thread_seconds(session)
    frames, seconds, _ = page.evaluate(PLAY, [host, 1000 * duration])
    return frames / seconds, frames / (_thread_seconds(session) - used)


def _thread_seconds(session: Any) -> float:
    metrics = session.send("Performance.getMetrics")["metrics"]
    return next(float(metric["value"]) for metric in metrics if metric["name"] == "ThreadTime")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--items", type=int, default=50_000)
    print(json.dumps(measure(parser.parse_args().items), indent=1))
