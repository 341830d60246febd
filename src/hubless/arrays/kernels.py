"""Kernels for GPUs, in Triton, where torch would pass over the data several times.

Each does what a function of torch in `bfloat16` or `products` does, which is used where Triton is missing.
"""

from typing import Any

import torch
import triton
import triton.language as tl

# a line for each argument would hide the kernels
# fmt: off

WIDEST = 1024  # columns read at once
NUMBERS = 4096  # numbers read at once: that many columns, of as many pairs


def round_rows(
    points: Any,
    index: Any,
    shift: Any,
    scale: float,
    shape: tuple[int, ...],
    columns: int,
    sides: tuple[bool, bool],
) -> tuple[Any, ...]:
    """Round points to both factors, or one, of `bfloat16.round_points`.

    Returns
    -------
    left, right : bfloat16 tensors of shape (*shape, columns), or None
    squared, residual : tensors of shape `shape`
    """
    d, n = points.shape[-1], len(points) if index is None else len(index)
    factors = [points.new_empty((*shape, columns), dtype=torch.bfloat16) if side else None for side in sides]
    squared, residual = shift.new_empty(shape), shift.new_empty(shape)
    present = [factor for factor in factors if factor is not None]
    if n:
        block = min(WIDEST, triton.next_power_of_2(d))
        _round_rows[(n,)](
            points, points if index is None else index, shift, present[0], present[-1], squared, residual,
            scale, columns, points.stride(0), shape[-1] if shift.ndim > 1 else n,
            GATHERS=index is not None, LEFT=sides[0], RIGHT=sides[1], D=d, BLOCK=block,
        )
    return *factors, squared, residual


@triton.jit
def _round_rows(
    points, index, shift, left, right, squared, residual, scale, columns, stride, rows_of_shift,
    GATHERS: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    source = tl.load(index + row) if GATHERS else row
    origin = shift + row // rows_of_shift * D
    dtype = squared.dtype.element_ty
    sums, lost = tl.zeros((BLOCK,), dtype), tl.zeros((BLOCK,), dtype)
    for start in range(0, D, BLOCK):
        column = start + tl.arange(0, BLOCK)
        inside = column < D
        value = tl.load(points + source * stride + column, mask=inside, other=0.0).to(dtype)
        value = (value - tl.load(origin + column, mask=inside, other=0.0)) * scale
        short = value.to(tl.float32).to(tl.bfloat16)
        rounded = short.to(tl.float32).to(dtype)
        sums += rounded * rounded
        lost += (rounded - value) * (rounded - value)
        if LEFT:
            twice = (-2 * rounded).to(tl.float32).to(tl.bfloat16)
            tl.store(left + row * columns + column, twice, mask=inside)
        if RIGHT:
            tl.store(right + row * columns + column, short, mask=inside)
    length = tl.sum(sums)
    tl.store(squared + row, length)
    tl.store(residual + row, tl.sqrt(tl.sum(lost)))
    if LEFT:
        _store_lengths(left + row * columns + D, length, columns - D, 2)
    if RIGHT:
        _store_lengths(right + row * columns + D, length, columns - D, 0)


@triton.jit
def _store_lengths(tail, length, room, here: tl.constexpr):
    """Write ‖x‖² as two numbers, from place `here` on, two ones at the other places, and zeros after that."""
    high = length.to(tl.float32).to(tl.bfloat16).to(tl.float32)
    low = (length - high).to(tl.float32)
    place = tl.arange(0, 16)
    rest = tl.where(place < 4, 1.0, 0.0)
    value = tl.where(place == here, high, tl.where(place == here + 1, low, rest))
    tl.store(tail + place, value.to(tl.bfloat16), mask=place < room)


def pair_distances(queries: Any, objects: Any, row: Any, column: Any, scale: float, dtype: Any) -> Any:
    """Return ‖x − z‖² of pairs of rows, in `dtype`."""
    d, pairs = queries.shape[1], len(row)
    squared = torch.empty(pairs, dtype=dtype, device=row.device)
    block = min(WIDEST, triton.next_power_of_2(d))
    at_once = NUMBERS // block
    if pairs:
        _pair_distances[(triton.cdiv(pairs, at_once),)](
            queries, objects, row, column, squared, scale, pairs, queries.stride(0), objects.stride(0),
            D=d, PAIRS=at_once, BLOCK=block,
        )
    return squared


@triton.jit
def _pair_distances(
    queries, objects, row, column, squared, scale, pairs, query_stride, object_stride, D: tl.constexpr,
    PAIRS: tl.constexpr, BLOCK: tl.constexpr,
):
    pair = tl.program_id(0).to(tl.int64) * PAIRS + tl.arange(0, PAIRS)
    known = pair < pairs
    x = queries + tl.load(row + pair, mask=known, other=0)[:, None] * query_stride
    z = objects + tl.load(column + pair, mask=known, other=0)[:, None] * object_stride
    dtype = squared.dtype.element_ty
    sums = tl.zeros((PAIRS, BLOCK), dtype)
    for start in range(0, D, BLOCK):
        place = (start + tl.arange(0, BLOCK))[None, :]
        inside = known[:, None] & (place < D)
        difference = tl.load(x + place, mask=inside, other=0.0).to(dtype)
        difference -= tl.load(z + place, mask=inside, other=0.0).to(dtype)
        difference *= scale
        sums += difference * difference
    tl.store(squared + pair, tl.sum(sums, axis=1), mask=known)
