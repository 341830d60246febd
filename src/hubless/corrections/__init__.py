"""Corrections from a log of queries: no labels and no judgements, one number per stored object.

The bias b of an object z, from the logged queries q; `strength` multiplies it:

    NNN               b = mean of s(q, z) over the k queries nearest to z
    CSLS              the same with half of it and k = 10, as for a fixed query
    MeanQuery         b = mean of s(q, z) over all queries: centring, by the mean query
    InvertedSoftmax   b = (1/β) log mean_q exp(β s(q, z))
    DualIS            the same over the queries and over the other objects, averaged
    Sinkhorn          b = (1/β) log mean_q exp(β (s(q, z) − f_q)), f such that all objects have equal shares
    LocalScaling      −½ ‖q − z‖² / σ(z), σ the distance of z to the queries near it
    DisSimLocal       b = −½ ‖z − c(z)‖², c the mean of the k queries nearest to z
    HoldHubs          b = 0, but for objects that answer more questions than chance allows
"""

from . import hold_hubs, nearest_queries, softmax
from .correction import Correction
from .hold_hubs import *  # noqa: F403
from .nearest_queries import *  # noqa: F403
from .softmax import *  # noqa: F403

CORRECTIONS: dict[str, type[Correction]] = {
    name: getattr(file, name) for file in (hold_hubs, nearest_queries, softmax) for name in file.__all__
}
__all__ = [*CORRECTIONS, "Correction"]
