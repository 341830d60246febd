"""Hubs in words and numbers beside chance: the same lines wherever hubs are printed."""

from collections.abc import Mapping, Sequence

from .chance import Chance
from .hubness import Hubness

TITLE, COLUMN = 32, 11  # letters


def asked_words(n_queries: int, whose: str = "", *, repeated: int = 0, missing: int = 0) -> str:
    """Return which queries were asked: how many different ones, whose they are, and which were left out."""
    left_out = {"repeat another": repeated, "have no vector": missing}
    without = " and ".join(f"{count:,} that {what}" for what, count in left_out.items() if count)
    return f"{n_queries:,} queries{whose}" + (f", without {without}" if without else "")


def hub_table(states: Mapping[str, Hubness], chance: Chance) -> list[str]:
    """Return a table: a measure of hubness a line, a state a column ("before", "after"), and chance."""
    first = next(iter(states.values()))
    numbers = {
        f"N{first.k} skewness": (_values(states, chance, "skewness"), ".2f"),
        "answers from the busiest 1 %": (_values(states, chance, "busiest_share"), ".1%"),
        "never returned": (_values(states, chance, "antihub_share"), ".1%"),
        "answers with the busiest item": (_values(states, chance, "largest_occurrence"), ","),
    }
    hubs = [f"{hubness.n_hubs:,}" for hubness in states.values()]
    return [
        _line("", [*states, "by chance"]),
        *(
            _line(title, [f"{value:{form}}".replace("%", " %") for value in values])
            for title, (values, form) in numbers.items()
        ),
        _line(f"hubs, in {chance.threshold:,} answers or more", [*hubs, "0"]),
        *hub_notes(first, chance),
    ]


def hub_notes(hubness: Hubness, chance: Chance) -> list[str]:
    """Return what a hub is, and how many items no answer can have."""
    notes = [
        f"A hub is in so many answers that, by chance, at most {chance.false_alarms:.0%} of such indexes "
        "have an item in as many.".replace("%", " %")
    ]
    if chance.least_antihub_share > 0:
        notes.append(
            f"{hubness.n_queries:,} × {hubness.k} answers for {hubness.n_objects:,} items leave at least "
            f"{100 * chance.least_antihub_share:.1f} % of the items out."
        )
    return notes


def _values(states: Mapping[str, Hubness], chance: Chance, measure: str) -> list[float]:
    return [getattr(values, measure) for values in (*states.values(), chance)]


def _line(title: str, columns: Sequence[str]) -> str:
    return f"{title:<{TITLE}}" + "".join(f"{column:>{COLUMN}}" for column in columns)
