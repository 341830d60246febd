"""What was to be reached, and what was, from the raw results."""

from collections.abc import Mapping
from statistics import median
from typing import Any, NamedTuple

from .record import Found
from .select import SEARCHES
from .timing import is_timed, ratio

SHAPES = ("5,654 × 13,192 × 300", "2,000 × 100,000 × 384")
RIVALS = ("scikit-learn brute", "faiss IndexFlatL2")
TIES = 1e-5  # relative difference of distances that float32 cannot tell
MISSING = "not measured yet"
GPU = (  # case, contender, seconds that it may take
    ("imagenet fit and move", "tf32", 0.250),
    ("imagenet fit and move", "float32", 0.700),
    ("imagenet search", "tf32", 0.300),
    ("news fit", "float32", 0.003),
)


REASONS = {  # by what was asked: why it was not reached
    "at least 2.5 × faster than scikit-learn brute": (
        "scikit-learn's brute force takes about twice as long as the bare product with the versions and on "
        "the machine below, so that the product itself would not be 2.5 times as fast."
    ),
    "at least 2.5 × faster than faiss IndexFlatL2": (
        "faiss 1.15 runs at about the speed of the bare product, as hubless does: there is nothing left to "
        "be faster by. (An older faiss took 3.5 times as long.)"
    ),
    "at least 1,000 × faster than our LMNN": (
        "Our own LMNN is fast, and a fit takes hardly longer than its bare products: they alone would have "
        "to be several times as fast."
    ),
    "at most 0.003 s": (
        "At this size the host cannot keep the GPU busy: a fit starts about 300 operations, each of which "
        "takes the host some 20 microseconds, while the products take one millisecond in all."
    ),
}


class Claim(NamedTuple):
    """Something asked for, what came of it, and whether that is enough; None where it is not known."""

    what: str
    asked: str
    reached: str
    holds: bool | None


def claims(found: Mapping[str, Found]) -> list[Claim]:
    """Everything that was asked for, measured or not; a quick look is no measurement."""
    cases = {verb: one["cases"] for verb, one in found.items() if not is_quick(one)}
    return [
        *_search(cases.get("search", {})),
        *_fit(cases.get("fit", {})),
        _at_most("select, in cross-validation", cases.get("select", {}), "news", SEARCHES, 1.5),
        *_growth(cases.get("growth", {})),
        _memory(cases.get("memory", {})),
        *_gpu(cases.get("gpu", {})),
    ]


def is_quick(found: Found) -> bool:
    """Whether a raw file is of tiny sizes."""
    return bool(found.get("settings", {}).get("quick"))


def _seconds(cases: Mapping[str, Any], name: str) -> dict[str, Any]:
    return cases.get(name, {}).get("seconds", {})


def _why(seconds: Mapping[str, Any], *names: str) -> str:
    """Why there is no figure."""
    errors = [seconds[name]["error"] for name in names if isinstance(seconds.get(name), dict)]
    return f"not measured: {'; '.join(errors)}" if errors else MISSING


def shown(value: float) -> str:
    """Three digits, or all before the point."""
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def _told(shares: tuple[float, float, float]) -> str:
    return "{} × (quartiles {} to {})".format(*map(shown, shares))


def _at_most(what: str, cases: Mapping[str, Any], name: str, to: str, limit: float) -> Claim:
    """Hubless may take so many times as long as the reference."""
    asked, seconds = f"at most {limit:g} × {to}", _seconds(cases, name)
    if not is_timed(seconds, "hubless", to):
        return Claim(what, asked, _why(seconds, "hubless", to), None)
    shares = ratio(seconds, "hubless", to)
    return Claim(what, asked, _told(shares), shares[0] <= limit)


def _search(cases: Mapping[str, Any]) -> list[Claim]:
    found = []
    for shape in SHAPES:
        what, seconds = f"search, {shape}", _seconds(cases, shape)
        found.append(_at_most(what, cases, shape, "bare product", 1.25))
        for rival in RIVALS:
            asked = f"at least 2.5 × faster than {rival}"
            if is_timed(seconds, "hubless", rival):
                shares = ratio(seconds, rival, "hubless")
                found.append(Claim(what, asked, _told(shares), shares[0] >= 2.5))
            else:
                found.append(Claim(what, asked, _why(seconds, "hubless", rival), None))
        for rival in RIVALS:
            found.append(_same(what, cases.get(shape, {}), rival))
    return found


def _same(what: str, case: Mapping[str, Any], rival: str) -> Claim:
    asked, seen = f"the neighbours of {rival}", case.get("neighbors", {}).get(rival)
    if seen is None:
        return Claim(what, asked, _why(case.get("seconds", {}), rival), None)
    share, apart = seen["same_rows"], seen["largest_difference"]
    others = "" if share == 1 else f", the others' distances within {apart:.1g} of each other"
    return Claim(what, asked, f"{share:.4%} of the rows{others}", apart <= TIES)


def _fit(cases: Mapping[str, Any]) -> list[Claim]:
    found = [_at_most("fit and move, News", cases, "news", "bare products", 2)]
    for name, title in {"hubless LMNN": "our LMNN", "metric-learn LMNN": "metric-learn's LMNN"}.items():
        asked, own = f"at least 1,000 × faster than {title}", _seconds(cases, "news")
        learner = cases.get("news", {}).get("learners", {}).get(name, {})
        took = least_seconds(learner)
        if took is None or not is_timed(own, "hubless"):
            reached = f"not measured: {learner['error']}" if "error" in learner else MISSING
            found.append(Claim("fit and move, News", asked, reached, None))
            continue
        times = took / median(own["hubless"])
        is_bound = "more_than" in learner
        holds = True if times >= 1000 else None if is_bound else False
        reached = f"{'more than ' if is_bound else ''}{shown(times)} ×"
        found.append(Claim("fit and move, News", asked, reached, holds))
    tiny = _at_most("fit and move, 5,000 classes of 4", cases, "tiny classes", "bare products", 3)
    return [*found, tiny]


def least_seconds(learner: Mapping[str, Any]) -> float | None:
    """Seconds of a learner, at least; None where it did not run."""
    return median(learner["seconds"]) if "seconds" in learner else learner.get("more_than")


def _growth(cases: Mapping[str, Any]) -> list[Claim]:
    found = []
    for name, what, limit in (
        ("fit by n", "growth of fit with n", 1.1),
        ("fit by d", "growth of fit with d", 2.1),
    ):
        asked = f"an exponent of about {limit} at most"
        if name not in cases:
            found.append(Claim(what, asked, MISSING, None))
            continue
        slope, error, last = (cases[name][key] for key in ("exponent", "standard_error", "last_exponent"))
        reached = f"{slope:.2f} ± {error:.2f}; {last:.2f} between the two largest sizes"
        found.append(Claim(what, asked, reached, max(round(slope, 1), round(last, 1)) <= limit))
    return found


def _memory(cases: Mapping[str, Any]) -> Claim:
    what, asked = "memory of predict", "at most 300 MB beyond input and output"
    seen = cases.get("predict", {}).get("bytes", {}).get("hubless", {})
    if "beyond" not in seen:
        return Claim(what, asked, seen.get("error", MISSING), None)
    return Claim(what, asked, f"{seen['beyond'] / 1e6:.0f} MB", seen["beyond"] <= 300e6)


def _gpu(cases: Mapping[str, Any]) -> list[Claim]:
    found = []
    for case, contender, limit in GPU:
        what, asked, seconds = f"GPU, {case}, {contender}", f"at most {limit:.3f} s", cases.get(case, {})
        if not is_timed(seconds, contender):
            found.append(Claim(what, asked, _why(seconds, contender), None))
            continue
        took = median(seconds[contender])
        found.append(Claim(what, asked, f"{took:.4f} s", took <= limit))
    return found
