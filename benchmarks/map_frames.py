"""How smooth the map of a page is with 50,000 items: frames a second while it is slid or dragged.

    python -m benchmarks.map_frames [--items 50000] [--out benchmarks/results/page/frames.json]

needs Playwright and Chromium, and prints JSON. It takes Chromium as it is without a graphics card, and as it
is where the processor plays one (SwiftShader); the slider and dragging, each without and with a selected hub.
Frames by the clock depend on what else the machine does; so processor time for a frame is given, too: that of
the page's main thread, and that of all threads of all processes of the browser.
"""

import argparse
import json
import os
import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from hubless.evaluation import Answers, BeforeAfter, Evaluation, measure_change
from hubless.hubness import measure_hubness
from hubless.paper.raw import this_machine, write_files
from hubless.report.details import Captions
from hubless.report.map_layout import Drawing
from hubless.report.report import ModelDescription, Report, make_report

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ALWAYS = [
    *("--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *([] if os.geteuid() else ["--no-sandbox"]),  # root has none
]
FLAGS = [*ALWAYS, "--disable-gpu"]
SETUPS = {
    "no graphics card": FLAGS,
    "SwiftShader": [*ALWAYS, "--use-angle=swiftshader", "--enable-unsafe-swiftshader"],
}
CASES = [f"{kind}{hub}" for hub in ("", ", a hub is selected") for kind in ("slide", "pan")]
ROUNDS = 3

# Moves the slider, or drags the map, in every frame; gives frames drawn and seconds.
PLAY = """async ([host, kind, duration]) => {
  const [slider, canvas] = [host.querySelector("input[type=range]"), host.querySelector(".map-dots")];
  const box = canvas.getBoundingClientRect();
  const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
  const slide = (percent) => {
    slider.value = Math.round(percent);
    slider.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const mouse = (target, type, right) => {
    const at = { clientX: x + right, clientY: y + right / 2 };
    target.dispatchEvent(new MouseEvent(type, { ...at, view: window, bubbles: true, cancelable: true }));
  };
  slide(0);
  if (kind === "pan") mouse(canvas, "mousedown", 0);
  const [began, drawn] = [performance.now(), Number(host.dataset.frames)];
  for (let passed = 0; passed < duration; passed = performance.now() - began) {
    if (kind === "pan") mouse(window, "mousemove", 80 * Math.sin(passed / 300));
    else slide(50 - 50 * Math.cos(passed / 300));
    await new Promise(requestAnimationFrame);
  }
  const result = [Number(host.dataset.frames) - drawn, (performance.now() - began) / 1000];
  if (kind === "pan") mouse(window, "mouseup", 0);
  return result;
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


def measure(n: int, duration: float = 3000.0) -> dict[str, Any]:
    """Return what a frame takes in each case, the best of some rounds, `duration` milliseconds each."""
    from playwright.sync_api import sync_playwright

    executable = next(filter(None, map(shutil.which, BROWSERS)), None)
    result: dict[str, Any] = {"items": n, "machine": this_machine("cpu"), "cases": {}}
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = large_report(n).save(Path(folder) / "page.html")
        for setup, flags in SETUPS.items():
            browser = playwright.chromium.launch(executable_path=executable, args=flags)
            result["browser"] = browser.version
            page = browser.new_page(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
            page.goto(file.as_uri())
            page.wait_for_selector(f'#map .map[data-visible="{n}"]')
            result["cases"][setup] = {case: _best_of(browser, page, case, duration) for case in CASES}
            browser.close()
    return result | {"load average": os.getloadavg()[0]}


def _best_of(browser: Any, page: Any, case: str, duration: float) -> dict[str, float]:
    """Return frames by the clock, and milliseconds of processor time for a frame."""
    canvas, rounds = page.locator("#map .map-dots"), []
    canvas.press("n" if "selected" in case else "Escape")  # n: the busiest item, and the map zooms to it
    canvas.press("0")
    session, host = browser.new_browser_cdp_session(), page.locator("#map .map").element_handle()
    thread = page.context.new_cdp_session(page)
    thread.send("Performance.enable")
    for _ in range(ROUNDS):
        used, all_used = _thread_seconds(thread), _browser_seconds(session)
        frames, seconds = page.evaluate(PLAY, [host, case.split(",")[0], duration])
        used, all_used = _thread_seconds(thread) - used, _browser_seconds(session) - all_used
        rounds.append((frames / seconds, 1000 * used / frames, 1000 * all_used / frames))
    by_clock, main, everything = zip(*rounds, strict=True)
    return {
        "frames per second": round(max(by_clock), 1),
        "main thread, ms per frame": round(min(main), 1),
        "all processes, ms per frame": round(min(everything), 1),
    }


def _thread_seconds(session: Any) -> float:
    metrics = session.send("Performance.getMetrics")["metrics"]
    return next(float(metric["value"]) for metric in metrics if metric["name"] == "ThreadTime")


def _browser_seconds(session: Any) -> float:
    return sum(process["cpuTime"] for process in session.send("SystemInfo.getProcessInfo")["processInfo"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--items", type=int, default=50_000)
    parser.add_argument("--out", type=Path, help="also write the JSON there")
    options = parser.parse_args()
    text = json.dumps(measure(options.items), indent=1) + "\n"
    if options.out:
        write_files(options.out.parent, {options.out.name: text.encode()})
    print(text)
