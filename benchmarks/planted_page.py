"""Planted hubs as tables and sentences, for docs/index-results.md."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from .markdown import grid

Cases = Mapping[str, Any]
WORDS = """\
An attacker adds items made from queries to the {documents:,} documents of SciFact. `find_planted` looks for \
them with a log of training claims, and again without those found, until it finds no more; `hubless doctor \
--queries` looks once. Attackers know {known}, and the log is the other claims; or they know the whole log, \
and the log is all {training queries:,} claims. *Captured* is the share of {test queries:,} test queries, \
which neither side has, with a planted item among their ten answers: as attacked, without the items that \
were found suspicious, and with all items held back that answer more questions of the log than chance allows \
(`HoldHubs`, the correction of `hubless fit --queries` without known answers). Without an attack, hit@10 is \
{hit@10:.3f}, and {hit@10 held:.3f} with that correction. Means over {draws} draws; the bound of \
suspicion was chosen on others:"""
CLEAN = """\
False alarms, where nothing was planted. A hub is an item in more answers than chance gives to any item in \
95 of 100 indexes without hubs; a false alarm is a hub that is called suspicious:"""


def tables(cases: Cases) -> list[str]:
    """Return the tables of attacks and of false alarms."""
    states = ["without the suspicious", "held back"]
    head = ["", "planted", "found", "captured", *states, "hit@10", *states]
    rows = []
    for name, runs in cases["SciFact"]["attacks"].items():
        shares = [f"{mean(runs, key):.1%}" for key in ("captured", "captured without", "captured held")]
        hits = [f"{mean(runs, key):.3f}" for key in ("hit@10", "hit@10 without", "hit@10 held")]
        rows.append([name, f"{mean(runs, 'planted'):.0f}", f"{mean(runs, 'found'):.1f}", *shares, *hits])
    return [*grid(head, rows), "", *_clean_table(cases["clean"])]


def _clean_table(clean: Cases) -> list[str]:
    rows = []
    for name, case in clean.items():
        hubs, alarms = (sum(run[key] for run in case["runs"]) for key in ("hubs", "false alarms"))
        share = f"{alarms / hubs:.1%}" if hubs else "—"
        rows.append([name, f"{case['items']:,}", f"{case['queries']:,}", f"{hubs:,}", f"{alarms:,}", share])
    return grid(["clean data", "items", "queries", "hubs, all draws", "false alarms", "of hubs"], rows)


def mean(runs: Sequence[Mapping[str, float]], key: str) -> float:
    """Return the mean of a figure over draws."""
    return fmean(run[key] for run in runs)


def section(cases: Cases) -> str:
    """Return the section of the page."""
    case = cases["SciFact"]
    attacks, clean = tables(cases)[: len(case["attacks"]) + 2], _clean_table(cases["clean"])
    draws = len(next(iter(case["attacks"].values())))
    words = WORDS.format(**case, draws=draws, known="400 claims")
    return "\n".join(
        [words, "", *attacks, "", CLEAN, "", *clean, "", *(f"- {line}" for line in reading(cases))]
    )


def reading(cases: Cases) -> list[str]:
    """Return what the figures say, in sentences whose numbers are looked up."""
    attacks = cases["SciFact"]["attacks"]
    natural, called = (
        sum(run[key] for runs in attacks.values() for run in runs) for key in ("natural hubs", "false alarms")
    )
    missed = {name: mean(runs, "found") / mean(runs, "planted") for name, runs in attacks.items()}
    worst = min(missed, key=lambda name: missed[name])
    left = max(attacks, key=lambda name: mean(attacks[name], "captured held"))
    rates = {
        name: sum(run["false alarms"] for run in case["runs"])
        / max(1, sum(run["hubs"] for run in case["runs"]))
        for name, case in cases["clean"].items()
    }
    highest = max(rates, key=lambda name: rates[name])
    return [
        f"Beside the planted items there were {natural:,} natural hubs over all attacks and draws; "
        f"{called:,} of them were called suspicious.",
        f"Most false alarms on clean data: {rates[highest]:.1%} of the hubs ({highest}).",
        f"Most captured queries that are left by holding back: {mean(attacks[left], 'captured held'):.1%} "
        f"({left}).",
        f"Fewest found: {missed[worst]:.0%} ({worst}), which capture "
        f"{mean(attacks[worst], 'captured'):.1%} of the test queries. An item that keeps much of a real "
        "document, or that answers few queries, is hard to tell from a natural one.",
    ]
