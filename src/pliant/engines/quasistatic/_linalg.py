"""Small dense algebra: rows of sixteen numbers in vector registers, Householder reflections, triangular inverses.

The first are written in LLVM's terms, since numba leaves loops that short scalar. They work on one contiguous array of
rows, (n, 16), without bounds checks.
"""

import math
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from pliant.compilation import njit

WIDTH = 16
_FOUR = ir.VectorType(ir.DoubleType(), 4)
_INT = ir.IntType(64)
_FUSE = ("contract",)


class _Code:
    """Loads, stores and arithmetic on vectors of four."""

    def __init__(self, builder):
        self.builder = builder

    def place(self, pointer, *indices):
        total = indices[0]
        for index in indices[1:]:
            total = self.builder.add(total, index)
        return self.builder.gep(pointer, [total])

    def number(self, pointer, *indices):
        """Vector of four copies of a number."""
        value = self.builder.load(self.place(pointer, *indices))
        return self.spread(value)

    def spread(self, value):
        nothing = ir.Constant(_FOUR, ir.Undefined)
        first = self.builder.insert_element(nothing, value, ir.IntType(32)(0))
        return self.builder.shuffle_vector(
            first, nothing, ir.Constant(ir.VectorType(ir.IntType(32), 4), [0] * 4)
        )

    def four(self, pointer, *indices):
        return self.builder.bitcast(self.place(pointer, *indices), _FOUR.as_pointer())

    def load(self, pointer, *indices):
        return self.builder.load(self.four(pointer, *indices), align=8)

    def store(self, value, pointer, *indices):
        self.builder.store(value, self.four(pointer, *indices), align=8)

    def times_plus(self, a, b, c):
        return self.builder.fadd(self.builder.fmul(a, b, flags=_FUSE), c, flags=_FUSE)


def _data(context, builder, kind, value):
    return context.make_array(kind)(context, builder, value).data


@intrinsic
def _combine(typingctx, rows, out, x, start, first, factor):
    """`rows[out] = factor * sum of x[start + n] rows[first + n]` over n < 6; x counted as if it were flat."""

    def codegen(context, builder, signature, args):
        code = _Code(builder)
        table = _data(context, builder, signature.args[0], args[0])
        numbers = _data(context, builder, signature.args[2], args[2])
        to, from_ = (builder.mul(args[i], _INT(WIDTH)) for i in (1, 4))
        scale = code.spread(args[5])
        sums = [None] * 4
        for n in range(6):
            x_n = builder.fmul(scale, code.number(numbers, args[3], _INT(n)))
            for part in range(4):
                row = code.load(table, from_, _INT(WIDTH * n + 4 * part))
                before = sums[part]
                sums[part] = builder.fmul(x_n, row) if before is None else code.times_plus(x_n, row, before)
        for part in range(4):
            code.store(sums[part], table, to, _INT(4 * part))
        return context.get_dummy_value()

    index = types.int64
    return types.void(rows, index, x, index, index, types.float64), codegen


@intrinsic
def _reflect(typingctx, rows, v, first, last, factor):
    """`rows[i] += v[i] factor (sum of v[j] rows[j])`, i and j from `first` up to `last`: a Householder reflection."""

    def codegen(context, builder, signature, args):
        code = _Code(builder)
        table = _data(context, builder, signature.args[0], args[0])
        numbers = _data(context, builder, signature.args[1], args[1])
        sums = [cgutils.alloca_once_value(builder, ir.Constant(_FOUR, [0.0] * 4)) for _ in range(4)]
        for part in range(4):
            builder.store(ir.Constant(_FOUR, [0.0] * 4), sums[part])
        with cgutils.for_range_slice(builder, args[2], args[3], _INT(1)) as (i, _):
            x, at = code.number(numbers, i), builder.mul(i, _INT(WIDTH))
            for part in range(4):
                row = code.load(table, at, _INT(4 * part))
                builder.store(code.times_plus(x, row, builder.load(sums[part])), sums[part])
        scale = code.spread(args[4])
        moves = [builder.fmul(scale, builder.load(sums[part])) for part in range(4)]
        with cgutils.for_range_slice(builder, args[2], args[3], _INT(1)) as (i, _):
            x, at = code.number(numbers, i), builder.mul(i, _INT(WIDTH))
            for part in range(4):
                row = code.load(table, at, _INT(4 * part))
                code.store(code.times_plus(x, moves[part], row), table, at, _INT(4 * part))
        return context.get_dummy_value()

    index = types.int64
    return types.void(rows, v, index, index, types.float64), codegen


combine: Any = _combine  # to a type checker these take the context as well
reflect: Any = _reflect


# --- Householder reflections and triangular inverses

_fused = njit(error_model="numpy", nogil=True, fastmath={"contract"})
_inlined = njit(inline="always", error_model="numpy", nogil=True, fastmath={"contract"})


@_inlined
def householder(v, first, last):
    """Householder vector of v[first:last], in its place; returns -2 over its squared length, and the entry
    that the reflection leaves."""
    size = 0.0
    for j in range(first, last):
        size += v[j] * v[j]
    if size == 0.0:
        return 0.0, 0.0
    alpha = -math.sqrt(size) if v[first] > 0.0 else math.sqrt(size)
    v[first] -= alpha
    return 1.0 / (alpha * v[first]), alpha


@_fused
def reflect_rows(v, beta, first, last, x, begin, end):
    """Reflect rows `begin` to `end` of x from the right: `x += beta (x v) v^T` over columns `first` to `last`."""
    for i in range(begin, end):
        total = 0.0
        for j in range(first, last):
            total += v[j] * x[i, j]
        total *= beta
        for j in range(first, last):
            x[i, j] += total * v[j]


@_fused
def invert_lower(low, first, last):
    """Inverse of the lower triangular block from `first` to `last`, in its place."""
    for j in range(first, last):
        low[j, j] = 1.0 / low[j, j]
        for i in range(j + 1, last):
            total = 0.0
            for k in range(j, i):
                total -= low[i, k] * low[k, j]
            low[i, j] = total / low[i, i]
