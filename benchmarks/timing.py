"""Time contenders in turn, all of them in every round, so that a busy machine slows all of them alike."""

from collections.abc import Callable, Collection, Mapping
from time import perf_counter, sleep
from typing import Any

import numpy as np

from hubless.support.progress import step

Contender = Callable[[], Any]
Seconds = dict[str, Any]  # by contender: seconds of every round, or {"error": why there are none}


def failure(error: BaseException) -> dict[str, str]:
    """Return an exception as a raw result."""
    return {"error": f"{type(error).__name__}: {error}"}


def ready(
    builders: Mapping[str, Callable[..., Contender]], *arguments: Any
) -> tuple[dict[str, Contender], Seconds]:
    """Return contenders, each prepared outside of the clock, and why the others cannot run."""
    contenders, errors = {}, {}
    for name, build in builders.items():
        try:
            contenders[name] = build(*arguments)
        except Exception as error:  # a peer that is not installed is a result too
            errors[name] = failure(error)
    return contenders, errors


def order(names: list[str], number: int) -> list[str]:
    """Return the order of a round: every second one backwards, each pair of rounds one name later."""
    shift = number // 2 % len(names) if names else 0
    turned = names[shift:] + names[:shift]
    return turned[::-1] if number % 2 else turned


def race(
    contenders: Mapping[str, Contender],
    repeats: int,
    *,
    once: Collection[str] = (),
    title: str = "",
    pause: float = 0.0,
    clock: Callable[[], float] = perf_counter,
) -> Seconds:
    """Measure the seconds of each contender in every round, after one round of warm-up.

    Contenders in `once` are slow: they run in the first round only, without a warm-up. One that fails drops
    out. A pause in seconds comes before each run: threads of the previous library spin for a while when it is
    done.
    """
    seconds: Seconds = {name: [] for name in contenders}
    rounds = [order([name for name in contenders if name not in once], 0)]
    rounds += [
        order([name for name in contenders if name not in once or number == 0], number)
        for number in range(repeats)
    ]
    with step(title, sum(map(len, rounds)), "runs") as bar:
        for number, names in enumerate(rounds):
            for name in names:
                bar.update()
                if not isinstance(seconds[name], list):
                    continue
                sleep(pause)
                try:
                    start = clock()
                    contenders[name]()
                    took = clock() - start
                except Exception as error:
                    seconds[name] = failure(error)
                    continue
                if number > 0:  # the first round warms up
                    seconds[name].append(took)
    return seconds


def is_timed(seconds: Mapping[str, Any], *names: str) -> bool:
    """Whether all of these contenders have times."""
    return all(isinstance(seconds.get(name), list) and seconds[name] for name in names)


def ratio(seconds: Mapping[str, Any], of: str, to: str) -> tuple[float, float, float]:
    """Return median and quartiles of the time of one contender over that of another in the same round."""
    rounds = list(zip(seconds[of], seconds[to], strict=False))  # of one that runs once, the first
    shares = [first / second for first, second in rounds]
    median, low, high = np.quantile(shares, [0.5, 0.25, 0.75])
    return float(median), float(low), float(high)
