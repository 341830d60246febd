"""Points on which searches go wrong."""

import numpy as np


def odd_points(rng, n, d, dtype):
    """Points of one of five odd kinds: plain, on a grid, of all sizes, far away, with one outlier."""
    kind, points = rng.integers(5), rng.standard_normal((n, d))
    if kind == 1:
        points = np.round(points)
    elif kind == 2:
        points = points * 10.0 ** rng.integers(-25, 25, (n, 1))
    elif kind == 3:
        points = points * 1e-3 + 1e3
    elif kind == 4:
        points[rng.integers(n)] *= 1e30
    return points.astype(dtype)
