"""The kernels for GPUs: on a GPU as they are compiled, elsewhere by Triton's interpreter, beside plain loops.

The interpreter cuts numbers off when it makes a bfloat16 of them, where a GPU rounds to the nearest one.
"""

import importlib
import sys

import numpy as np
import pytest

from hubless.arrays import bfloat16, devices
from hubless.neighbors import bfloat16_pass, differences, nearest
from tests import reference
from tests.neighbors.points import odd_points

pytestmark = [pytest.mark.torch, pytest.mark.skipif(sys.platform != "linux", reason="Triton is for Linux")]
SHORT = 2.0**-7  # share of a number by which the interpreter cuts it off


@pytest.fixture
def torch():
    return importlib.import_module("torch")


@pytest.fixture
def kernels(torch, monkeypatch):
    """The module of kernels; on the processor, all arrays of torch use it."""
    if torch.cuda.is_available():
        return importlib.import_module("hubless.arrays.kernels")
    module = importlib.import_module("hubless.arrays.kernels")  # conftest.py asks for the interpreter
    for owner in (bfloat16, differences):
        monkeypatch.setattr(owner, "kernels", lambda array: module if torch.is_tensor(array) else None)
    monkeypatch.setattr(bfloat16_pass, "SPLIT", 2.0**-13)
    return module


@pytest.fixture
def device(torch):
    return "cuda" if torch.cuda.is_available() else "cpu"


def test_kernels_are_tried_once_and_used(kernels, device, torch):
    assert devices.compiled_for(device) is kernels
    if device == "cuda":
        assert devices.kernels(torch.zeros(1, device=device)) is kernels


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [1, 7, 300, 1100])
def test_factors_give_the_distances_of_rounded_points(torch, kernels, device, rng, d, dtype):
    points = torch.as_tensor(3 * rng.standard_normal((9, d)) + 1, device=device, dtype=getattr(torch, dtype))
    shift = points.mean(dim=0)
    rounded = bfloat16.round_points(points, shift, 0.5, left=True, right=True)
    truth = (points - shift).double().cpu().numpy() / 2
    z = rounded.right[:, :d].double().cpu().numpy()
    np.testing.assert_allclose(z, truth, rtol=SHORT)
    np.testing.assert_allclose(rounded.squared.double().cpu(), (z**2).sum(axis=1), rtol=1e-5)
    lost = np.sqrt(((z - truth) ** 2).sum(axis=1))
    np.testing.assert_allclose(rounded.residual.double().cpu(), lost, rtol=1e-3)
    squared = ((z[:, None] - z) ** 2).sum(axis=2)
    product = rounded.left.double().cpu().numpy() @ rounded.right.double().cpu().numpy().T
    np.testing.assert_allclose(product, squared, atol=2.0**-13 * squared.max())


def test_rows_of_groups_are_rounded_about_their_own_origin(torch, kernels, device, rng):
    points = torch.as_tensor(rng.standard_normal((20, 6)), device=device, dtype=torch.float32)
    index = torch.as_tensor(rng.permutation(20)[:12], device=device)
    shift = points[:3, None, :]  # of three groups of four
    rounded = bfloat16.round_points(points, shift, 1.0, index, right=True)
    assert rounded.left is None
    truth = points[index].reshape(3, 4, 6) - shift
    np.testing.assert_allclose(rounded.right[..., :6].float().cpu(), truth.cpu(), rtol=SHORT)
    assert rounded.squared.shape == (3, 4)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [1, 40, 1100])
def test_distances_of_pairs(torch, kernels, device, rng, d, dtype):
    x, z = (
        torch.as_tensor(rng.standard_normal((n, d)), device=device, dtype=getattr(torch, dtype))
        for n in (6, 8)
    )
    row, column = (torch.as_tensor(rng.integers(n, size=150), device=device) for n in (6, 8))
    squared = kernels.pair_distances(x, z, row, column, 2.0, x.dtype)
    truth = [4 * ((x[i] - z[j]) ** 2).sum() for i, j in zip(row.tolist(), column.tolist(), strict=True)]
    np.testing.assert_allclose(
        squared.cpu(), torch.stack(truth).cpu(), rtol=1e-5 if dtype == "float32" else 1e-12
    )


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.usefixtures("kernels")
def test_neighbours_are_those_of_loops(torch, device, seed):
    rng = np.random.default_rng(seed)
    objects, queries = (odd_points(rng, n, 5, np.float32) for n in (60, 9))
    k = int(rng.integers(1, 8))
    tensors = (torch.as_tensor(points, device=device) for points in (queries, objects))
    index = nearest(*tensors, k, return_distance=False, precision="bfloat16")
    np.testing.assert_array_equal(index.cpu(), reference.nearest(queries, objects, k)[1])
