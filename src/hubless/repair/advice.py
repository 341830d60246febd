"""What the doctor says of an index: a verdict, whether moving is safe, and what its user can do next."""

import numpy as np

from ..hubness import Hubness
from ..stores.store import Facts, Store
from .index_items import UNIT

SAFE = {
    "l2": "It compares by L2: moving is safe.",
    "cosine": "It compares by cosine: moving is safe.",
    "ip": "It compares unit vectors by inner product: moved ones are brought to length 1, so it is safe.",
}
ASSUMED = "Assuming L2, moving is safe. If you search by inner product, run this again with --metric ip."
NEXT = [
    "What you can do next depends on what you have:",
    "  classes of items        hubless fit INDEX --labels {labels} -o model",
    "                          hubless report INDEX --labels {labels}  (a page that shows what it changes)",
    "  queries with answers    hubless fit INDEX --queries LOG --pairs FILE -o model",
    "  queries alone           hubless fit INDEX --queries LOG -o model  (a correction per item)",
]
ITEMS_ALONE = (
    "  items alone             collect queries: hubless doctor INDEX --queries LOG counts real answers, and "
    "tells natural hubs from planted ones"
)
PLANTED = [
    "Look at the suspicious items before anything else: they lie in the middle of the queries that they",
    "answer, as items made from queries do, and natural hubs rarely do. Remove what should not be there,",
    "and run this again: others may take their place.",
]


def advise(
    store: Store, facts: Facts, norms: np.ndarray, hubness: Hubness | None, has_queries: bool
) -> tuple[str, list[str]]:
    """Return a verdict and lines of advice."""
    mark, metric = store.mark(), facts.metric or "l2"
    if mark is not None:
        kept = f"; the original is {mark.original}" if mark.original else f", made from {mark.source}"
        return "moved", [f"These vectors were moved by hubless model {mark.model[:12]}{kept}."]
    if not facts.is_exact:
        return "do not move", [
            f"The index {facts.why_inexact}.",
            "So fit and apply on the file of original vectors, then build the index again.",
        ]
    if metric == "ip" and np.abs(norms - 1).max() > UNIT:
        return "do not move", [
            "It compares by inner product, and its vectors do not all have length 1. Moved vectors are",
            "shorter and would be found less often: bring all to length 1, or use L2 or cosine.",
            "They can be corrected as they are, by queries: hubless fit INDEX --queries LOG -o model",
        ]
    safe = ASSUMED if facts.metric is None else SAFE[metric]
    if hubness is None:
        return "no hubs", [safe, "There are too few items to measure hubs."]
    verdict, words = _hubs_in_words(hubness)
    labels = "COLUMN" if facts.columns else "FILE"
    steps = [line.format(labels=labels) for line in NEXT]
    return verdict, [safe, words, *steps, *([] if has_queries else [ITEMS_ALONE])]


def _hubs_in_words(hubness: Hubness) -> tuple[str, str]:
    if hubness.skewness < 1:
        return "no hubs", "There are hardly any hubs. Moving may still raise accuracy; measure it."
    if hubness.skewness < 3:
        return "some hubs", "There are some hubs."
    return "hubs", "A few items are the answer to very many queries."
