"""Partial back-substitution (RL05 section 4.2) and the lazy update after it (section 5.2).

The front of the refinement is a heap of clusters whose joints are not computed, the largest total acceleration first.
`numbers` holds what the stopping rules need. The clusters computed form the top of the assembly tree: they are what
changes when their joints move.

The paper's measures bound accelerations of joints. WORLD bounds the displacement of bodies: every joint outside turns
what it carries by at most its own angle times the distance to the farthest point it carries, and what clusters along
a path add to the error adds up; side branches do not (`through` is the error from the top handle to the bottom one,
`inside` that from the top handle to the worst body).
"""

import math
from typing import NamedTuple

from numpy.typing import NDArray

from pliant.compilation import njit
from pliant.engines.quasistatic import _joint_kernels as joint_kernels
from pliant.engines.quasistatic._handles import across
from pliant.engines.quasistatic._kernels import back, leaf
from pliant.engines.quasistatic._passes import assemble, inlined, load, within
from pliant.engines.quasistatic._port_kernels import back_wide
from pliant.engines.quasistatic.assembly import LOOP, MERGE, ROOT

_jit = njit(error_model="numpy", nogil=True)

RELATIVE_JOINT, RELATIVE_LINKAGE, ABSOLUTE_JOINT, ABSOLUTE_LINKAGE, WORLD = 0, 1, 2, 3, 4
# what numbers holds: clusters in the heap, computed nodes; sum over the heap; sum and largest of computed joints;
# the largest terms met, whether all that was asked is reached, the error when last stepped
SIZE, COMPUTED, LEFT, SUM_, LARGEST, TERMS, DONE, ERROR = 0, 1, 2, 3, 4, 5, 6, 7
NUMBERS = 8
# Accelerations smaller than this fraction of the terms they are sums of are round-off, and count as none.
ROUND_OFF = 1e-14


class Front(NamedTuple):
    """Heap, computed nodes in order, marks and a stack for updates, per node what WORLD needs, `numbers`."""

    keys: NDArray
    items: NDArray
    totals: NDArray
    computed: NDArray
    marks: NDArray
    stack: NDArray
    beyond: NDArray
    through: NDArray
    inside: NDArray
    numbers: NDArray


@inlined
def start(a, s, wide, front, measure, unit):
    """Forget what was computed; the whole mechanism is in the front."""
    n = front.numbers
    for i in range(int(n[COMPUTED])):
        g = a.nodes[front.computed[i], 4]
        if g >= 0:
            for d in range(a.groups[g, 3], a.groups[g, 3] + a.groups[g, 4]):
                s.qdd[d] = 0.0
    for i in range(NUMBERS):
        n[i] = 0.0
    root = a.nodes.shape[0] - 1
    front.beyond[root] = 0.0
    _push(
        root,
        within(root, a.nodes, s.data, s.forces, wide),
        a.nodes,
        s.data,
        s.extent,
        front.keys,
        front.items,
        front.totals,
        front.beyond,
        front.through,
        front.inside,
        n,
        measure,
        unit,
    )


@inlined
def refine(a, s, wide, front, measure, tolerance, unit, most):
    """Compute joints until the error is at most `tolerance`, or `most` nodes are computed.

    Args:
        unit: metres that a weight of one stands for where WORLD is measured: shifts weigh 1/unit, turns 1.
    """
    # out of their tuples: see `_passes.assemble`
    n, computed, totals, keys, items = front.numbers, front.computed, front.totals, front.keys, front.items
    beyond, through, inside = front.beyond, front.through, front.inside
    nodes, groups, weights = a.nodes, a.groups, a.weights
    data, joints, poses, forces, qdd, spare, extent = (
        s.data,
        s.joints,
        s.poses,
        s.forces,
        s.qdd,
        s.spare,
        s.extent,
    )
    count, root = a.leaves.shape[0], nodes.shape[0] - 1
    n[DONE] = 0.0
    while True:
        if _reached(inside[root], keys, n, measure, tolerance):
            n[DONE] = 1.0
            return
        if n[COMPUTED] >= most:
            return
        k = _pop(keys, items, n)
        n[LEFT] -= totals[k]
        terms = 0.0
        general = False
        if wide is not None:  # noqa: SIM102 - only by itself it is pruned before compilation
            if nodes[k, 9] >= 0:
                general = True
                terms = back_wide(k, count, nodes, groups, joints, forces, qdd, wide)
        if not general:
            terms = back(k, count, nodes, groups, data, joints, poses, forces, qdd, spare)
        n[TERMS] = max(n[TERMS], terms)
        computed[int(n[COMPUTED])] = k
        n[COMPUTED] += 1.0
        g = nodes[k, 4]
        if g >= 0:
            square = 0.0
            for d in range(groups[g, 3], groups[g, 3] + groups[g, 4]):
                square += (weights[d] * qdd[d]) ** 2
            n[SUM_] += square
            n[LARGEST] = max(n[LARGEST], square)
        if measure == WORLD:
            _beyond(k, nodes, data, poses, extent, beyond)
        for side in range(1, 3):
            child = nodes[k, side]
            if child >= count:
                _push(
                    child,
                    within(child, nodes, data, forces, wide),
                    nodes,
                    data,
                    extent,
                    keys,
                    items,
                    totals,
                    beyond,
                    through,
                    inside,
                    n,
                    measure,
                    unit,
                )
        if measure == WORLD:
            _errors(k, nodes, through, inside)


@_jit
def _reached(displacement, keys, n, measure, tolerance):
    if n[SIZE] == 0.0:
        return True
    square = tolerance * tolerance
    noise = (ROUND_OFF * n[TERMS]) ** 2
    if measure == WORLD:
        return displacement <= tolerance
    if measure == RELATIVE_JOINT:
        return keys[0] <= max(square * n[LARGEST], noise)
    if measure == ABSOLUTE_JOINT:
        return keys[0] <= max(square, noise)
    # Sums by differences lose digits: add up afresh before believing that it is enough.
    for again in range(2):
        limit = square * (n[LEFT] + n[SUM_]) if measure == RELATIVE_LINKAGE else square
        if not n[LEFT] <= max(limit, noise):
            return False
        if again == 0:
            left = 0.0
            for i in range(int(n[SIZE])):
                left += keys[i]
            n[LEFT] = left
    return True


@_jit
def error(a, front, measure):
    """The bound on the error of what is computed so far, in the units of the measure."""
    n = front.numbers
    if n[SIZE] == 0.0:
        return 0.0
    if measure == WORLD:
        return front.inside[a.nodes.shape[0] - 1]
    if measure in (RELATIVE_JOINT, ABSOLUTE_JOINT):
        value, scale = front.keys[0], n[LARGEST]
    else:
        value = 0.0
        for i in range(int(n[SIZE])):
            value += front.keys[i]
        scale = value + n[SUM_]
    if measure in (ABSOLUTE_JOINT, ABSOLUTE_LINKAGE):
        return math.sqrt(value)
    return math.sqrt(value / scale) if scale > 0.0 else (0.0 if value == 0.0 else math.inf)


@_jit
def _push(k, value, nodes, data, extent, keys, items, totals, beyond, through, inside, n, measure, unit):
    if nodes[k, 7] == 0:
        through[k] = inside[k] = 0.0
        return
    totals[k] = value
    key = value
    if measure == WORLD:
        length = extent[k]
        if nodes[k, 5] == 2:
            length = max(length, _length(k, nodes, data) + beyond[k])
        key = math.sqrt(nodes[k, 8] * value) * max(extent[k] + length, unit)
        inside[k] = key
        through[k] = key if nodes[k, 5] == 2 else 0.0
    n[LEFT] += value
    i = int(n[SIZE])
    n[SIZE] += 1.0
    while i > 0:
        up = (i - 1) // 2
        if keys[up] >= key:
            break
        keys[i], items[i] = keys[up], items[up]
        i = up
    keys[i], items[i] = key, k


@_jit
def _pop(keys, items, n):
    out = items[0]
    n[SIZE] -= 1.0
    size = int(n[SIZE])
    key, item = keys[size], items[size]
    i = 0
    while True:
        down = 2 * i + 1
        if down >= size:
            break
        if down + 1 < size and keys[down + 1] > keys[down]:
            down += 1
        if keys[down] <= key:
            break
        keys[i], items[i] = keys[down], items[down]
        i = down
    keys[i], items[i] = key, item
    return out


@_jit
def _length(k, nodes, data):
    """Distance between the handles of a cluster."""
    if nodes[k, 5] < 2:
        return 0.0
    o = nodes[k, 6] + 129
    return math.sqrt(data[o] ** 2 + data[o + 1] ** 2 + data[o + 2] ** 2)


@_jit
def _beyond(k, nodes, data, poses, extent, beyond):
    """How far from the bottom handles of k's children things go on: what the children's joints carry besides."""
    left, right, g = nodes[k, 1], nodes[k, 2], nodes[k, 4]
    beyond[right] = beyond[k]
    if left >= 0:
        beyond[left] = beyond[k]
    if nodes[k, 0] == MERGE and nodes[left, 5] == 2:
        farther = extent[right]
        if nodes[k, 5] == 2:
            farther = max(farther, _length(right, nodes, data) + beyond[k])
        x, y, z = poses[g, 9], poses[g, 10], poses[g, 11]
        beyond[left] = math.sqrt(x * x + y * y + z * z) + farther


@_jit
def _errors(k, nodes, through, inside):
    """Errors of k and of all clusters that contain it, after its children's have changed."""
    while k >= 0:
        left, right = nodes[k, 1], nodes[k, 2]
        kind = nodes[k, 0]
        if kind in (ROOT, LOOP):
            inside[k] = inside[right]
            through[k] = through[right]
        elif kind == MERGE:
            inside[k] = max(inside[left], through[left] + inside[right])
            through[k] = through[left] + through[right] if nodes[k, 5] == 2 else 0.0
        else:
            inside[k] = max(inside[left], inside[right])
        k = nodes[k, 3]


@inlined
def move(a, s, front, scale):
    """q += scale * qdd for the computed joints; their nodes are marked, the ways across them brought up to date."""
    nodes, groups, primitives, offsets = a.nodes, a.groups, a.primitives, a.offsets
    stiffness, pull, rest = a.stiffness, a.pull, a.rest
    q, qdd, motor, torque, screws, poses = s.q, s.qdd, s.motor, s.torque, s.screws, s.poses
    data, extent, spare, computed, marks = s.data, s.extent, s.spare, front.computed, front.marks
    for i in range(int(front.numbers[COMPUTED]) - 1, -1, -1):
        k = computed[i]
        marks[k] = 1
        g = nodes[k, 4]
        if g >= 0:
            joint_kernels.move(g, groups, primitives, q, qdd, scale)
            joint_kernels.place(g, groups, primitives, offsets, q, poses, screws, spare)
            joint_kernels.springs(g, groups, primitives, stiffness, pull, rest, motor, q, torque)
        across(k, nodes, data, poses, extent, spare[0])


@inlined
def update(loads, a, s, wide, front):
    """Bring up to date all marked clusters and those above leaves whose wrench has changed.

    Returns the node that fails, or -1, and how many there were.
    """
    nodes, marks, stack, wrench = a.nodes, front.marks, front.stack, s.spare[2]
    count, root = a.leaves.shape[0], nodes.shape[0] - 1
    row = 0
    while row < loads.shape[0]:
        k = int(loads[row, 0])
        row = load(loads, row, a, s, wrench)
        same = True
        for i in range(6):
            if s.wrenches[k, i] != wrench[i]:
                same = False
                s.wrenches[k, i] = wrench[i]
        if not same:
            leaf(k, nodes, a.leaves, s.wrenches[k], s.data)
            k = nodes[k, 3]
            while k >= 0 and marks[k] == 0:
                marks[k] = 1
                k = nodes[k, 3]
    if marks[root] == 0:
        return -1, 0
    # parents before children: `assemble` goes from the end
    size, done = 1, 0
    stack[0] = root
    while done < size:
        k = stack[done]
        marks[k] = 0
        done += 1
        for side in range(1, 3):
            child = nodes[k, side]
            if child >= count and marks[child] == 1:
                stack[size] = child
                size += 1
    return assemble(stack, size, a, s, wide), size
