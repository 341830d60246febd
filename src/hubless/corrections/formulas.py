"""How often a stored object is likely to be an answer, from its similarities to logged queries: the formulas.

Each takes similarities S of n objects to m logged queries, (n, m), and returns one number per object, (n,):
what is subtracted from the similarity of that object to every query. The similarity of a query q and an
object z is

    s(q, z) = qᵀz            for inner product and cosine (of unit vectors)
    s(q, z) = −½ ‖q − z‖²    for Euclidean distance

so that larger is nearer. On unit vectors the two differ by 1, which is the same for all.
"""

from typing import Any

import array_api_compat as compat
import numpy as np

from ..arrays import Array, convert, is_on_cpu, largest, namespace, to_numpy
from ..arrays.products import map_blocks
from ..neighbors.search import search

CELLS = 1 << 22  # similarities that a thread holds at once
DEVICE_CELLS = 1 << 27  # the same on an accelerator
ROUNDING = 1e-5  # of sums of weights, as a share


# s(q, z) = qᵀz, or qᵀz − ½‖q‖² − ½‖z‖²
def similarities(Z: Array, queries: Array, metric: str) -> Array:
    """Return the similarities of objects and queries, (n, m), in the precision of the objects."""
    xp = namespace(Z, queries)
    queries = xp.astype(queries, Z.dtype, copy=False)
    if metric != "l2":
        return Z @ queries.T
    centre = xp.mean(queries, axis=0)  # distances do not depend on it, and rounding does
    Z, queries = Z - centre, queries - centre
    halves = [0.5 * xp.vecdot(side, side, axis=-1) for side in (Z, queries)]
    S = Z @ queries.T
    S -= halves[0][:, None]
    S -= halves[1][None, :]
    return S


# mean{s(q, z) : q among the k queries of the largest s}
def mean_of_largest(S: Array, k: int) -> Array:
    """Return the mean of the k largest similarities of each object, in float64; (n,)."""
    xp = namespace(S)
    return xp.mean(xp.astype(largest(S, k), xp.float64), axis=1)


def over_objects(Z: Array, queries: Array, metric: str, formula: Any) -> Array:
    """Return a formula of all objects' similarities, a block of objects at a time; (n,) in float64."""
    xp = namespace(Z, queries)

    def block(part: slice) -> Array:
        return xp.astype(formula(similarities(Z[part, :], queries, metric)), xp.float64)

    cells = CELLS if is_on_cpu(Z) else DEVICE_CELLS
    size = max(1, cells // max(queries.shape[0], queries.shape[1]))
    return xp.concat(map_blocks(xp, block, Z.shape[0], size))


# b = (1/β) log mean_q exp(β (s(q, z) − f_q))
def soft_maximum(S: Array, beta: float, offsets: Array | None = None) -> Array:
    """Return a smooth maximum over the queries: their mean for small β, the largest for large β."""
    xp = namespace(S)
    S = S if offsets is None else S - xp.astype(offsets, S.dtype)[None, :]
    top = xp.max(S, axis=1, keepdims=True)
    return top[:, 0] + xp.log(xp.mean(xp.exp(beta * (S - top)), axis=1)) / beta


# f_q = (1/β) log mean_z exp(β (s(q, z) − b_z)) and b_z = (1/β) log mean_q exp(β (s(q, z) − f_q)), in turns
def query_potentials(S: Array, beta: float, rounds: int) -> Array:
    """Return f of each query, (m,) in float64, by Sinkhorn's iterations over the objects of S.

    In the limit, exp(β (s − f_q − b_z)) spreads every query's share evenly, and every object has an equal
    share of all queries: entropic optimal transport with uniform marginals.
    """
    xp = namespace(S)
    rows = xp.max(S, axis=1, keepdims=True)
    columns = xp.max(S - rows, axis=0, keepdims=True)  # so that nothing overflows, and no sum vanishes
    K = S - rows
    K -= columns
    K *= beta
    K = xp.exp(K)
    n, m = S.shape
    u = xp.ones((n,), dtype=K.dtype, device=compat.device(K))
    for _ in range(rounds):
        v = n / (K.T @ u)
        u = m / (K @ v)
    return xp.astype(columns[0, :], xp.float64) - xp.log(xp.astype(n / (K.T @ u), xp.float64)) / beta


# ‖z − c_k(z)‖², c_k(z) the mean of the k queries nearest to z
def spread_about_centroid(Z: Array, queries: Array, k: int) -> Array:
    """Return the squared distance of each object to the mean of its k nearest queries, in float64; (n,)."""
    xp = namespace(Z, queries)
    queries = xp.astype(queries, Z.dtype, copy=False)
    nearest = search(Z, queries, k, return_distance=False)

    def block(part: slice) -> Array:
        near = xp.take(queries, xp.reshape(nearest[part, :], (-1,)), axis=0)
        centroid = xp.mean(xp.reshape(near, (-1, k, queries.shape[1])), axis=1)
        apart = xp.astype(Z[part, :] - centroid, xp.float64)
        return xp.vecdot(apart, apart, axis=-1)

    return xp.concat(map_blocks(xp, block, Z.shape[0], max(1, CELLS // (k * queries.shape[1]))))


# w_q = 1 / #{q' : q and q' share at least half of their k answers}
def question_weights(answers: np.ndarray, n_objects: int) -> np.ndarray:
    """Return what each query counts, (m,): queries with the same answers count as one question together.

    A log repeats what is popular, and an object that answers a popular question is no hub. `answers` are row
    numbers of objects, (m, k).
    """
    import scipy.sparse

    m, k = answers.shape
    rows = np.repeat(np.arange(m), k)
    ones = np.ones(m * k, dtype=np.float32)
    has = scipy.sparse.csr_array((ones, (rows, answers.ravel())), shape=(m, n_objects))
    weights = np.empty(m)
    for start in range(0, m, 1024):  # the product of all would need m² numbers where there are hubs
        shared = has[start : start + 1024] @ has.T
        shared.data = (2 * shared.data >= k).astype(np.float32)
        weights[start : start + 1024] = 1 / np.asarray(shared.sum(axis=1)).ravel()
    return weights


# b = the least b ≥ 0 with Σ_q w_q [s(q, z) − b > l_q] ≤ allowed
def hold_back(S: Array, limits: Array, weights: Array, allowed: float) -> Array:
    """Return what brings objects down to `allowed` questions that they answer; (n,) in float64.

    A query has an object among its answers where their similarity is above l. It is computed on the host.
    """
    margins = to_numpy(S).astype(np.float64) - to_numpy(limits)
    return convert(_least_bias(margins, to_numpy(weights), allowed), limits)


# ‖z − c‖² and mean ‖q − c‖² over the queries that z answers, c their mean; of length 1 under cosine
def apart_from_middle(Z: Array, queries: Array, is_answer: Array, by_direction: bool) -> tuple[Array, Array]:
    """Return how far objects are from the middle of the queries that they answer, and these themselves; (n,).

    Both are squares, in float64. `is_answer` is a mask, (n, m); no row of it is empty.
    """
    xp = namespace(Z, queries)
    Z, queries = xp.astype(Z, xp.float64), xp.astype(queries, xp.float64)
    share = xp.astype(is_answer, xp.float64)
    share = share / xp.sum(share, axis=1, keepdims=True)
    middle = share @ queries
    if by_direction:
        middle = middle / xp.sqrt(xp.vecdot(middle, middle, axis=-1))[:, None]
    squares = share @ xp.vecdot(queries, queries, axis=-1)
    products = xp.vecdot(share @ queries, middle, axis=-1)
    theirs = squares - 2 * products + xp.vecdot(middle, middle, axis=-1)
    return xp.vecdot(Z - middle, Z - middle, axis=-1), theirs


def _least_bias(margins: np.ndarray, weights: np.ndarray, allowed: float) -> np.ndarray:
    """Return for each object the margin beyond which `allowed` questions are left, at least 0; (h,)."""
    order = np.argsort(-margins, axis=1, kind="stable")
    counted = np.cumsum(weights[order], axis=1)
    first = np.minimum((counted <= allowed * (1 + ROUNDING)).sum(axis=1), margins.shape[1] - 1)
    ranked = np.take_along_axis(margins, order, axis=1)
    return np.maximum(np.take_along_axis(ranked, first[:, None], axis=1)[:, 0], 0.0)
