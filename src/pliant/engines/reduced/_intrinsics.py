"""What numba lacks: a matrix on part of a flat array without delay, arrays at addresses, vectors of four numbers.

numba leaves straight-line code scalar (its SLP vectoriser is off), which makes forward kinematics take twice as
long, and its `reshape` calls out to C. Both are said here in LLVM's own terms.
"""

from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from pliant.compilation import njit

_ROW = ir.VectorType(ir.DoubleType(), 4)
_INT = ir.IntType(64)
_FUSE = ("contract",)
_NOTHING = ir.Constant(_ROW, ir.Undefined)


def _to_pointer(context, builder, signature, args):
    return builder.inttoptr(args[0], context.get_value_type(signature.return_type))


@intrinsic
def _to_floats(typingctx, address):
    return types.CPointer(types.float64)(address), _to_pointer


@intrinsic
def _to_ints(typingctx, address):
    return types.CPointer(types.int64)(address), _to_pointer


_carray: Any = numba.carray  # type: ignore[attr-defined]
_floats: Any = _to_floats  # to a type checker they take the context as well
_ints: Any = _to_ints


@njit(error_model="numpy", nogil=True)
def matrix(flat, start, rows, columns):
    """`flat[start : start + rows * columns].reshape(rows, columns)`, without bounds checks."""
    return _carray(_floats(flat.ctypes.data + 8 * start), (rows, columns))


@njit(error_model="numpy", nogil=True, inline="always")
def five_arrays(at):
    """`sizes, links, constants, state, poses` of `_kernels`, from the address of their addresses and lengths.

    Python hands over a number in less than half the time that five arrays take.
    """
    given = _carray(_ints(at), 10)
    return (
        _carray(_ints(given[0]), given[1]),
        _carray(_ints(given[2]), (given[3], 4)),
        _carray(_floats(given[4]), given[5]),
        _carray(_floats(given[6]), given[7]),
        _carray(_floats(given[8]), (given[9], 4, 4)),
    )


@intrinsic
def _swing(typingctx, first, last, links, local, sine, versine, poses):
    """`poses[links[k, 0]] = poses[links[k, 1]] (B0 + sine[k] B1 + versine[k] B2)` for a run of links, unchecked.

    Args:
        first, last: which links, from and up to; parents come before children.
        links: (links, 4): where the pose of a link goes, and where that of its parent is.
        local: (links, 36): for every row of a link its four numbers of B0, then of B1, then of B2.
        sine, versine: how far each link has moved.
        poses: (places, 4, 4); the last rows of poses are left alone.
    """

    def codegen(context, builder, signature, args):
        tables, constants, sines, versines, numbers = (
            context.make_array(kind)(context, builder, value).data
            for kind, value in zip(signature.args[2:], args[2:], strict=True)
        )

        def times_plus(a, b, c):
            return builder.fadd(builder.fmul(a, b, flags=_FUSE), c, flags=_FUSE)

        def address(pointer, start, offset):
            return builder.gep(pointer, [builder.add(start, _INT(offset))])

        def row(pointer, start, offset):
            return builder.bitcast(address(pointer, start, offset), _ROW.as_pointer())

        def everywhere(vector, entry):
            mask = ir.Constant(ir.VectorType(ir.IntType(32), 4), [entry] * 4)
            return builder.shuffle_vector(vector, _NOTHING, mask)

        def spread(number):
            return everywhere(builder.insert_element(_NOTHING, number, ir.IntType(32)(0)), 0)

        # A link mostly hangs on the one before it, whose pose is kept in registers: memory would add to the wait.
        kept = [cgutils.alloca_once(builder, _ROW) for _ in range(3)]
        before = cgutils.alloca_once_value(builder, _INT(-1))
        fourth = ir.Constant(_ROW, [0.0, 0.0, 0.0, 1.0])
        with cgutils.for_range_slice(builder, args[0], args[1], _INT(1)) as (k, _):
            entry = builder.mul(k, _INT(4))
            place, parent = (builder.load(address(tables, entry, i)) for i in (0, 1))
            with builder.if_then(builder.icmp_signed("!=", parent, builder.load(before))):
                above = builder.mul(parent, _INT(16))
                for i in range(3):
                    builder.store(builder.load(row(numbers, above, 4 * i), align=8), kept[i])
            builder.store(place, before)
            at = builder.mul(k, _INT(36))
            s, v = (spread(builder.load(address(array, k, 0))) for array in (sines, versines))
            moved = []
            for i in range(3):
                parts = [builder.load(row(constants, at, 12 * i + 4 * part), align=8) for part in range(3)]
                moved.append(times_plus(v, parts[2], times_plus(s, parts[1], parts[0])))
            here = builder.mul(place, _INT(16))
            for i in range(3):
                old = builder.load(kept[i])
                # Two short sums instead of a long one: the next link waits for this one.
                one = times_plus(everywhere(old, 1), moved[1], builder.fmul(everywhere(old, 0), moved[0]))
                two = times_plus(everywhere(old, 2), moved[2], builder.fmul(old, fourth))
                new = builder.fadd(one, two)
                builder.store(new, kept[i])
                builder.store(new, row(numbers, here, 4 * i), align=8)
        return context.get_dummy_value()

    index = types.int64
    return types.void(index, index, links, local, sine, versine, poses), codegen


swing: Any = _swing
