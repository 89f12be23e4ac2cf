"""What numba lacks: a matrix on part of a flat array without delay, and vectors of four numbers.

numba leaves straight-line code scalar (its SLP vectoriser is off), which makes forward kinematics take twice as
long, and its `reshape` calls out to C. Both are said here in LLVM's own terms.
"""

from typing import Any

import numba
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

_ROW = ir.VectorType(ir.DoubleType(), 4)
_INT = ir.IntType(64)
_FUSE = ("contract",)


@intrinsic
def _pointer(typingctx, address):
    def codegen(context, builder, signature, args):
        return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

    return types.CPointer(types.float64)(address), codegen


_carray: Any = numba.carray  # type: ignore[attr-defined]
_as_pointer: Any = _pointer  # to a type checker it takes the context as well


@njit(cache=True, error_model="numpy", nogil=True)
def matrix(flat, start, rows, columns):
    """`flat[start : start + rows * columns].reshape(rows, columns)`, without bounds checks."""
    return _carray(_as_pointer(flat.ctypes.data + 8 * start), (rows, columns))


@intrinsic
def _swing(typingctx, local, k, sine, versine, poses, parent, place):
    """`poses[place] = poses[parent] (B0 + sine B1 + versine B2)` without bounds checks.

    Args:
        local: (links, 36): of link k, for every row its four numbers of B0, then of B1, then of B2.
        k, sine, versine: the link, and how far it has moved.
        poses: (places, 4, 4); the last rows of poses are left alone.
        parent, place: where in `poses`.
    """

    def codegen(context, builder, signature, args):
        local_type, poses_type = signature.args[0], signature.args[4]
        constants = context.make_array(local_type)(context, builder, args[0]).data
        numbers = context.make_array(poses_type)(context, builder, args[4]).data

        def multiply_add(a, b, c):
            return builder.fadd(builder.fmul(a, b, flags=_FUSE), c, flags=_FUSE)

        def address(pointer, start, offset):
            return builder.gep(pointer, [builder.add(start, _INT(offset))])

        def row(pointer, start, offset):
            at = builder.bitcast(address(pointer, start, offset), _ROW.as_pointer())
            return builder.load(at, align=8)

        def everywhere(number):
            one = builder.insert_element(ir.Constant(_ROW, ir.Undefined), number, ir.IntType(32)(0))
            return builder.shuffle_vector(
                one, ir.Constant(_ROW, ir.Undefined), ir.Constant(ir.VectorType(ir.IntType(32), 4), [0] * 4)
            )

        at, above, here = (builder.mul(i, _INT(n)) for i, n in ((args[1], 36), (args[5], 16), (args[6], 16)))
        s, v = everywhere(args[2]), everywhere(args[3])
        moved = []
        for i in range(3):
            turned = multiply_add(s, row(constants, at, 12 * i + 4), row(constants, at, 12 * i))
            moved.append(multiply_add(v, row(constants, at, 12 * i + 8), turned))
        last = ir.Constant(_ROW, [0.0, 0.0, 0.0, 1.0])
        for i in range(3):
            entries = [everywhere(builder.load(address(numbers, above, 4 * i + j))) for j in range(4)]
            # Two short sums instead of a long one: each link waits for the one before it.
            one = multiply_add(entries[1], moved[1], builder.fmul(entries[0], moved[0]))
            two = multiply_add(entries[2], moved[2], builder.fmul(entries[3], last))
            total = builder.fadd(one, two)
            target = builder.bitcast(address(numbers, here, 4 * i), _ROW.as_pointer())
            builder.store(total, target, align=8)
        return context.get_dummy_value()

    index = types.int64
    number = types.float64
    return types.void(local, index, number, number, poses, index, index), codegen


swing: Any = _swing
