"""Contenders timed side by side, all of them in every round, so that a busy machine slows them alike."""

from collections.abc import Callable, Collection, Mapping
from time import perf_counter, sleep
from typing import Any

import numpy as np
from tqdm import tqdm

Contender = Callable[[], Any]
Seconds = dict[str, Any]  # by contender: seconds of every round, or {"error": why there are none}


def told(error: BaseException) -> dict[str, str]:
    """An exception as a raw result."""
    return {"error": f"{type(error).__name__}: {error}"}


def ready(
    builders: Mapping[str, Callable[..., Contender]], *arguments: Any
) -> tuple[dict[str, Contender], Seconds]:
    """Contenders, each prepared outside of the clock, and why the others cannot run."""
    contenders, errors = {}, {}
    for name, build in builders.items():
        try:
            contenders[name] = build(*arguments)
        except Exception as error:  # a peer that is not there is a result too
            errors[name] = told(error)
    return contenders, errors


def order(names: list[str], number: int) -> list[str]:
    """The order of a round: every second one backwards, and each pair of rounds begins one name later."""
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
    """Seconds of each contender in every round, after one round of warm-up.

    Contenders in `once` are slow: they run in the first round alone, and cold. One that fails drops out. A
    pause of seconds comes before each run: threads of the library before spin for a while when it is done.
    """
    seconds: Seconds = {name: [] for name in contenders}
    rounds = [order([name for name in contenders if name not in once], 0)]
    rounds += [
        order([name for name in contenders if name not in once or number == 0], number)
        for number in range(repeats)
    ]
    with tqdm(total=sum(map(len, rounds)), desc=title, leave=False, disable=None) as bar:
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
                    seconds[name] = told(error)
                    continue
                if number > 0:  # the first round warms up
                    seconds[name].append(took)
    return seconds


def is_timed(seconds: Mapping[str, Any], *names: str) -> bool:
    """Whether all of these contenders have times."""
    return all(isinstance(seconds.get(name), list) and seconds[name] for name in names)


def ratio(seconds: Mapping[str, Any], of: str, to: str) -> tuple[float, float, float]:
    """Median and quartiles of the time of one contender over that of another in the same round."""
    rounds = list(zip(seconds[of], seconds[to], strict=False))  # one that runs once meets the first round
    shares = [own / other for own, other in rounds]
    median, low, high = np.quantile(shares, [0.5, 0.25, 0.75])
    return float(median), float(low), float(high)
