"""Intrinsics in LLVM IR: matrix views of flat arrays, arrays at given addresses, forward kinematics in vectors of four.

numba leaves straight-line code scalar (its SLP vectoriser is off), which doubles the time of forward kinematics, and
its `reshape` calls a C function.
"""

import operator
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

from pliant.compilation import njit

# Columns of `links`: place of the link's pose and of its parent's, whether its joint is a ball, row of its motion.
PLACE, PARENT, BALL, MOTION, LINK_SIZE = range(5)
POSE_ROW, POSE_SIZE = 4, 16  # numbers of a row of a pose, and of a pose
# Numbers of `local` per link. Hinges and slides: for each of three rows those of B0, B1, B2; see `swing`.
# Balls: the pose B0, then the unit twists of three dofs.
LOCAL_ROW, BALL_TWISTS, LOCAL_SIZE = 12, POSE_SIZE, 36
_SIZES, _LINKS, _CONSTANTS, _STATE, _POSES, _ARRAYS = range(6)  # rows of the table of `five_arrays`
_ADDRESS, _LENGTH, _COLUMNS = range(3)  # its columns

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


@njit(counts_references=True, error_model="numpy", nogil=True)
def matrix(flat, start, rows, columns):
    """`flat[start : start + rows * columns].reshape(rows, columns)`, without bounds checks."""
    return _carray(_floats(flat.ctypes.data + 8 * start), (rows, columns))


@njit(error_model="numpy", nogil=True, inline="always")
def five_arrays(at):
    """`sizes, links, constants, state, poses` of `kernels`, from the address of a table of addresses and lengths.

    One integer as argument takes less than half the time of five arrays.
    """
    table = _carray(_ints(at), (_ARRAYS, _COLUMNS))
    return (
        _carray(_ints(table[_SIZES, _ADDRESS]), table[_SIZES, _LENGTH]),
        _carray(_ints(table[_LINKS, _ADDRESS]), (table[_LINKS, _LENGTH], LINK_SIZE)),
        _carray(_floats(table[_CONSTANTS, _ADDRESS]), table[_CONSTANTS, _LENGTH]),
        _carray(_floats(table[_STATE, _ADDRESS]), table[_STATE, _LENGTH]),
        _carray(_floats(table[_POSES, _ADDRESS]), (table[_POSES, _LENGTH], 4, 4)),
    )


@intrinsic
def _swing(typingctx, first, last, links, local, sine, versine, poses):
    """Forward kinematics of consecutive links on hinges and slides, without bounds checks.

    `poses[links[k, PLACE]] = poses[links[k, PARENT]] (B0 + sine[k] B1 + versine[k] B2)`

    Args:
        first, last: the links, `last` excluded; parents come before children.
        links: (links, LINK_SIZE).
        local: (links, LOCAL_SIZE): for each row of the pose four numbers of B0, of B1 and of B2.
        sine, versine: sines and versines of the displacements, (links,).
        poses: (places, 4, 4); the fourth row of a pose is not written.
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

        # The parent is mostly the link before, whose pose stays in registers: a load would add latency.
        kept = [cgutils.alloca_once(builder, _ROW) for _ in range(3)]
        before = cgutils.alloca_once_value(builder, _INT(-1))
        fourth = ir.Constant(_ROW, [0.0, 0.0, 0.0, 1.0])
        with cgutils.for_range_slice(builder, args[0], args[1], _INT(1)) as (k, _):
            entry = builder.mul(k, _INT(LINK_SIZE))
            place, parent = (builder.load(address(tables, entry, column)) for column in (PLACE, PARENT))
            with builder.if_then(builder.icmp_signed("!=", parent, builder.load(before))):
                above = builder.mul(parent, _INT(POSE_SIZE))
                for i in range(3):
                    builder.store(builder.load(row(numbers, above, POSE_ROW * i), align=8), kept[i])
            builder.store(place, before)
            at = builder.mul(k, _INT(LOCAL_SIZE))
            s, v = (spread(builder.load(address(array, k, 0))) for array in (sines, versines))
            moved = []
            for i in range(3):
                b0, b1, b2 = (
                    builder.load(row(constants, at, LOCAL_ROW * i + POSE_ROW * part), align=8)
                    for part in range(3)
                )
                moved.append(times_plus(v, b2, times_plus(s, b1, b0)))
            here = builder.mul(place, _INT(POSE_SIZE))
            for i in range(3):
                old = builder.load(kept[i])
                # Two short sums instead of a long one: shorter latency for the next link.
                one = times_plus(everywhere(old, 1), moved[1], builder.fmul(everywhere(old, 0), moved[0]))
                two = times_plus(everywhere(old, 2), moved[2], builder.fmul(old, fourth))
                new = builder.fadd(one, two)
                builder.store(new, kept[i])
                builder.store(new, row(numbers, here, POSE_ROW * i), align=8)
        return context.get_dummy_value()

    index = types.int64
    return types.void(index, index, links, local, sine, versine, poses), codegen


swing: Any = _swing


# --- vectors of numbers

LANES = 4  # numbers of a vector


class _VectorType(types.Type):
    """Type of LANES numbers in a register; kernels add, subtract and multiply them as they do single numbers."""

    def __init__(self) -> None:
        super().__init__(name="vector")


_vector_type = _VectorType()


@register_model(_VectorType)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _ROW)


def _allow(operation: Any, name: str) -> None:
    """Let kernels apply an operation to vectors, and to vectors and single numbers."""
    kinds = [(a, b) for a in (_vector_type, types.float64) for b in (_vector_type, types.float64)][:3]

    class Rule(ConcreteTemplate):
        cases = [signature(_vector_type, *pair) for pair in kinds]  # noqa: RUF012

    infer: Any = infer_global
    infer(operation)(Rule)

    def lower(context: Any, builder: Any, given: Any, args: Any) -> Any:
        both = [
            value if kind is _vector_type else _spread(builder, value)
            for kind, value in zip(given.args, args, strict=True)
        ]
        return getattr(builder, name)(*both, flags=_FUSE)

    for pair in kinds:
        lower_builtin(operation, *pair)(lower)


_allow(operator.add, "fadd")
_allow(operator.iadd, "fadd")
_allow(operator.sub, "fsub")
_allow(operator.mul, "fmul")


@intrinsic
def _load(typingctx, numbers, at):
    """Vector of the numbers of an array from `at` on, flat or C-contiguous, without bounds checks."""

    def codegen(context, builder, given, args):
        (pointer,) = _pointers(context, builder, given.args[:1], args[:1])
        return builder.load(_vector(builder, pointer, args[1]), align=8)

    return _vector_type(numbers, types.int64), codegen


@intrinsic
def _store(typingctx, vector, numbers, at):
    """Write a vector to an array from `at` on."""

    def codegen(context, builder, given, args):
        (pointer,) = _pointers(context, builder, given.args[1:2], args[1:2])
        builder.store(args[0], _vector(builder, pointer, args[2]), align=8)
        return context.get_dummy_value()

    return types.void(vector, numbers, types.int64), codegen


@intrinsic
def _everywhere(typingctx, number):
    """Vector of equal numbers."""
    return _vector_type(types.float64), lambda context, builder, given, args: _spread(builder, args[0])


@intrinsic
def _total(typingctx, vector):
    """Sum of a vector's numbers."""

    def codegen(context, builder, given, args):
        out = builder.extract_element(args[0], ir.IntType(32)(0))
        for i in range(1, LANES):
            out = builder.fadd(out, builder.extract_element(args[0], ir.IntType(32)(i)))
        return out

    return types.float64(vector), codegen


load: Any = _load
store: Any = _store
everywhere: Any = _everywhere
total: Any = _total


@njit(error_model="numpy", nogil=True)
def add_product(count, numbers, columns, columns_at, stride, width, out):
    """`out += numbers @ columns` of `count` rows of `columns`, `stride` apart, `width` numbers each.

    `width` is a multiple of LANES. Two vectors at a time, with two sums each: every product waits for the one before in
    its sum.
    """
    pairs = count - count % 2
    for b in range(0, width - LANES, 2 * LANES):
        at = columns_at + b
        one, two, three, four = load(out, b), load(out, b + LANES), everywhere(0.0), everywhere(0.0)
        for j in range(0, pairs, 2):
            x, y = numbers[j], numbers[j + 1]
            one += x * load(columns, at)
            two += x * load(columns, at + LANES)
            three += y * load(columns, at + stride)
            four += y * load(columns, at + stride + LANES)
            at += 2 * stride
        if pairs < count:
            one += numbers[pairs] * load(columns, at)
            two += numbers[pairs] * load(columns, at + LANES)
        store(one + three, out, b)
        store(two + four, out, b + LANES)
    if width % (2 * LANES) > 0:
        at, b = columns_at + width - LANES, width - LANES
        one, three = load(out, b), everywhere(0.0)
        for j in range(0, pairs, 2):
            one += numbers[j] * load(columns, at)
            three += numbers[j + 1] * load(columns, at + stride)
            at += 2 * stride
        if pairs < count:
            one += numbers[pairs] * load(columns, at)
        store(one + three, out, b)


def _pointers(context, builder, kinds, arrays):
    """Addresses of the first numbers of arrays."""
    return [context.make_array(kind)(context, builder, a).data for kind, a in zip(kinds, arrays, strict=True)]


def _vector(builder, pointer, *offsets):
    """Address of four numbers at a sum of offsets."""
    for offset in offsets:
        pointer = builder.gep(pointer, [offset])
    return builder.bitcast(pointer, _ROW.as_pointer())


def _spread(builder, number):
    """Four times a number."""
    first = builder.insert_element(_NOTHING, number, ir.IntType(32)(0))
    return builder.shuffle_vector(first, _NOTHING, ir.Constant(ir.VectorType(ir.IntType(32), 4), [0] * 4))


def _fused(builder, a, b, c):
    return builder.fadd(builder.fmul(a, b, flags=_FUSE), c, flags=_FUSE)
