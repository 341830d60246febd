"""Points rounded to bfloat16, and all their squared distances as codes: for NumPy (by torch), torch and CUDA.

A code is the 16 bits of a bfloat16, read as an int16. Codes of numbers from 0 on sort as the numbers do, and
selecting among them is several times as fast as among floats, on the processor and on a GPU.
"""

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from time import perf_counter
from typing import Any, NamedTuple
from warnings import catch_warnings, simplefilter

import array_api_compat as compat
import numpy as np
from threadpoolctl import ThreadpoolController

from ..support.imports import need
from .devices import kernels
from .library import Array, is_on_cpu, namespace, tally
from .products import limit_blas, threads_of_block

UNIT = 2.0**-8  # unit roundoff of bfloat16
SPLIT = 2.0**-15  # a number as the sum of two bfloat16 errs by less than this share of it
HIGHEST = np.iinfo(np.int16).max  # no number has a higher code
ROWS, DEVICE_ROWS = 2048, 32_768  # rounded at once, on the processor and on an accelerator
PADDED = 8  # columns are a multiple of this: a GPU multiplies others more slowly
SHAPE = 256, 2048, 256  # of the products that are timed, once in a process
CHECKED = 16  # rows of these whose sums are checked
FASTER = 0.7  # share of the time of a float32 product from which bfloat16 is not worth its candidates


class Rounded(NamedTuple):
    """Points rounded to bfloat16, as factors of the product of all squared distances."""

    left: Any  # tensor of shape (…, n, columns), the factor of queries; None where it was not asked for
    right: Any  # the same of objects
    squared: Array  # (…, n), ‖z_b‖² in the precision of the shift
    residual: Array  # (…, n), ‖z − z_b‖


# ‖x_b − z_b‖² = (−2 x_b, 1, 1, ‖x_b‖²) (z_b, ‖z_b‖², 1, 1)ᵀ, each squared length as the sum of two numbers
def round_points(
    points: Array,
    shift: Array,
    scale: float,
    index: Array | None = None,
    *,
    left: bool = False,
    right: bool = False,
) -> Rounded:
    """Round (points − shift) · scale to the factors of queries (left) and of objects (right).

    Shapes: points (n, d) and shift (d,), or points[index] (groups · n, d) and shift (groups, 1, d).
    """
    d, sides = points.shape[1], (left, right)
    columns = -(-(d + 4) // PADDED) * PADDED
    n = points.shape[0] if index is None else index.shape[0]
    shape = (n,) if shift.ndim == 1 else (shift.shape[0], n // shift.shape[0])
    compiled = kernels(points)
    if compiled is not None:
        return Rounded(*compiled.round_rows(points, index, shift, scale, shape, columns, sides))
    with _threads_of(points) as torch:
        given = _shifted(points, shift, index, shape)
        given = given if scale == 1.0 else given.mul_(scale)
        factor = given.new_empty((*shape, columns), dtype=torch.bfloat16)
        rounded = factor[..., :d].copy_(given).to(given.dtype)
        squared = torch.linalg.vector_norm(rounded, dim=-1).square_()
        residual = torch.linalg.vector_norm(given.sub_(rounded), dim=-1)
        _set_lengths(factor, d, squared)
        factors = (as_queries(factor, d) if left else None, factor if right else None)
    return Rounded(*factors, _like(squared, points), _like(residual, points))


def _shifted(points: Array, shift: Array, index: Array | None, shape: tuple[int, ...]) -> Any:
    """Return a new tensor of points − shift."""
    if compat.is_numpy_array(points):
        chosen = (points if index is None else points[index]).reshape(*shape, -1)
        room = chosen if index is not None and chosen.dtype == shift.dtype else None  # it is a copy already
        return _tensor(np.subtract(chosen, shift, out=room, dtype=shift.dtype))
    chosen = points if index is None else points.index_select(0, index)
    return chosen.to(shift.dtype).reshape(*shape, points.shape[1]) - shift


def rows_at_once(points: Array) -> int:
    """Return how many rows should be rounded at once: all where a kernel does it, which takes no memory."""
    if kernels(points) is not None:
        return max(1, points.shape[0])
    return ROWS if is_on_cpu(points) else DEVICE_ROWS


def _set_lengths(factor: Any, d: int, squared: Any) -> None:
    """Put squared lengths as two numbers, and the ones of the other side, into a factor of objects."""
    _set_pair(factor, d, squared)
    factor[..., d + 2 : d + 4] = 1
    factor[..., d + 4 :] = 0


def as_queries(factor: Any, d: int) -> Any:
    """Return the factor of queries for the points of a factor of objects."""
    left = factor.mul(-2)
    left[..., d : d + 2] = 1
    left[..., d + 2 : d + 4] = factor[..., d : d + 2]
    return left


def distance_codes(queries: Any, objects: Any, like: Array, room: Any = None) -> Array:
    """Return the codes of all squared distances of two factors, in the library of `like`.

    Shapes (m, e), (n, e) → (m, n), or the same for each of several groups. They are in `room`, if given.
    """
    n = objects.shape[-2]
    with _threads_of(like) as torch, _full_sums(torch, queries):
        room = make_room(queries, n) if room is None else room
        for part in _fast_parts(n, queries.is_cuda):
            torch.matmul(queries, objects[..., part, :].mT, out=room[..., part])
        return _like(room[..., :n].view(torch.int16), like)


def make_room(queries: Any, n: int) -> Any:
    """Return memory for the product of a factor of queries with up to n objects, one block after another."""
    return queries.new_empty((*queries.shape[:-1], -(-n // PADDED) * PADDED))


def _fast_parts(n: int, is_cuda: bool) -> list[slice]:
    """Return n columns as few parts: a GPU takes several times as long for a number that is not padded."""
    whole = n // PADDED * PADDED if is_cuda else n
    return [part for part in (slice(whole), slice(whole, n)) if part.start != part.stop and part.stop]


# Gathering the points of cells would cost several times as much as multiplying them.
def cell_products(queries: Array, objects: Array, row: Array, column: Array) -> Array:
    """Return xᵀz of each cell, sorted by row; float32, on the processor, objects without gaps."""
    shape, starts = (queries.shape[0], objects.shape[0]), tally(row, queries.shape[0])
    with _threads_of(queries) as torch:
        ends = torch.cumsum(_tensor(starts), 0)
        starts = torch.cat([ends.new_zeros(1), ends])
        cells = torch.sparse_csr_tensor(
            starts, _tensor(column), torch.zeros(len(column)), size=shape, check_invariants=False
        )
        product = torch.sparse.sampled_addmm(cells, _tensor(queries), _tensor(objects).mT, beta=0.0)
        return _like(product.values(), queries)


def has_cell_products(queries: Array, objects: Array) -> bool:
    """Return whether `cell_products` takes these arrays."""
    xp = namespace(objects)
    if not is_on_cpu(objects) or queries.dtype != xp.float32 or objects.dtype != xp.float32:
        return False
    with catch_warnings():  # torch warns once in a process that sparse tensors may change
        simplefilter("ignore")
        _torch().zeros(1, 1).to_sparse_csr()
    return bool(objects.flags.c_contiguous if compat.is_numpy_array(objects) else objects.is_contiguous())


def leave_out(factor: Any, d: int, is_kept: Array) -> None:
    """Put the points of a factor of objects that a mask does not keep at an infinite distance."""
    factor[..., d].masked_fill_(~_tensor(is_kept), math.inf)


def join_rows(factors: list[Any]) -> Any:
    """Join the factors of blocks of points."""
    return factors[0] if len(factors) == 1 else _torch().cat(factors)


def pick_rows(factor: Any, index: Array) -> Any:
    """Return the rows of a factor with these numbers."""
    return factor.index_select(0, _tensor(index))


def set_constants(factor: Any, d: int, constants: Array) -> None:
    """Put constants in place of the squared lengths in a factor of queries, as two numbers each."""
    _set_pair(factor, d + 2, _tensor(constants))


def _set_pair(factor: Any, column: int, numbers: Any) -> None:
    """Write numbers as the sum of two columns."""
    factor[..., column] = numbers
    factor[..., column + 1] = numbers - factor[..., column].to(numbers.dtype)


def decode(codes: Array) -> Array:
    """Return the numbers of codes, in float32."""
    xp = namespace(codes)
    return (xp.astype(codes, xp.int32) << 16).view(xp.float32)


# A bfloat16 is the upper half of a float32; a number that rounds to it is at most half a last place away.
def decode_up(codes: Array) -> Array:
    """Return the largest numbers that round to codes, in float64; a code below 0 counts as 0."""
    xp = namespace(codes)
    bits = (xp.clip(xp.astype(codes, xp.int32), min=0) << 16) + 0x8000
    return xp.astype(bits.view(xp.float32), xp.float64)


def encode_up(numbers: Array) -> Array:
    """Return the lowest codes whose numbers are not below these, from 0 on; HIGHEST where not finite."""
    xp = namespace(numbers)
    single = xp.astype(numbers * (1 + 2.0**-22), xp.float32)  # a float32 that is not below
    codes = xp.astype((single.view(xp.int32) + 0xFFFF) >> 16, xp.int16)
    return xp.where(numbers < np.inf, codes, xp.full_like(codes, HIGHEST))


# --- whether this machine multiplies bfloat16 faster -------------------------------------------------------


def has_bfloat16(array: Array) -> bool:
    """Return whether arrays of this library can be rounded to bfloat16, at any speed."""
    xp = namespace(array)
    return bool(compat.is_torch_namespace(xp) or (compat.is_numpy_namespace(xp) and find_spec("torch")))


def is_loaded() -> bool:
    """Return whether the library that multiplies bfloat16 on the processor was imported already."""
    return sys.modules.get("torch") is not None


@cache
def is_faster_on_cpu() -> bool:
    """Time a product in bfloat16 beside one in float32, on one thread each, and check its sums; once."""
    torch, rng = _torch(), np.random.default_rng(0)
    m, n, d = SHAPE
    x, z = (rng.standard_normal((rows, d)).astype(np.float32) for rows in (m, n))
    left, right = (torch.from_numpy(points).bfloat16() for points in (x, z))
    with limit_blas(1), _openmp().limit(limits=1):
        full, short = (
            min(_seconds(product) for _ in range(3))
            for product in (
                lambda: x @ z.T,
                lambda: left @ right.T,
            )
        )
        got = (left[:CHECKED] @ right.T).double().numpy()
    truth = left[:CHECKED].double().numpy() @ right.double().numpy().T
    lengths = np.sqrt(np.outer((x * x).sum(axis=1)[:CHECKED], (z * z).sum(axis=1)))
    sums_are_full = np.abs(got - truth) <= UNIT * np.abs(truth) + d * 2.0**-23 * lengths
    return bool(short < FASTER * full and sums_are_full.all())


def _seconds(function: Any) -> float:
    began = perf_counter()
    function()
    return perf_counter() - began


# --- torch -------------------------------------------------------------------------------------------------


def _torch() -> Any:
    return need("torch", "torch")


def _tensor(array: Array) -> Any:
    if not compat.is_numpy_array(array):
        return array
    return _torch().from_numpy(np.ascontiguousarray(array))


def _like(tensor: Any, like: Array) -> Array:
    return tensor.numpy() if compat.is_numpy_array(like) else tensor


@contextmanager
def _full_sums(torch: Any, factor: Any) -> Iterator[None]:
    """Keep cuBLAS from adding parts of a sum in bfloat16, which the bound on the error does not cover."""
    matmul = torch.backends.cuda.matmul
    before = matmul.allow_bf16_reduced_precision_reduction
    if not factor.is_cuda or not before:
        yield
        return
    matmul.allow_bf16_reduced_precision_reduction = False
    try:
        yield
    finally:
        matmul.allow_bf16_reduced_precision_reduction = before


@cache
def _openmp() -> ThreadpoolController:
    """Find the threads of torch; once, as it takes milliseconds."""
    return ThreadpoolController().select(user_api="openmp")


@contextmanager
def _threads_of(like: Array) -> Iterator[Any]:
    """Yield torch, limited to the threads of one block where several blocks of NumPy run at once."""
    torch, threads = _torch(), threads_of_block() if compat.is_numpy_array(like) else None
    if threads is None:
        yield torch
        return
    torch.get_num_threads()  # sets the number of this thread, which the limit then changes
    with _openmp().limit(limits=threads):
        yield torch
