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

from numba import njit
from numpy.typing import NDArray

from pliant.engines.quasistatic import _joint_kernels as joint_kernels
from pliant.engines.quasistatic._kernels import back, leaf, total
from pliant.engines.quasistatic._passes import assemble, load, place, span
from pliant.engines.quasistatic.assembly import MERGE, ROOT

_jit = njit(cache=True, error_model="numpy", nogil=True)

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


@_jit
def start(a, s, front, measure, unit):
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
    _push(root, a, s, front, measure, unit)


@_jit
def refine(a, s, front, measure, tolerance, unit, most):
    """Compute joints until the error is at most `tolerance`, or `most` nodes are computed.

    Args:
        unit: metres that a weight of one stands for where WORLD is measured: shifts weigh 1/unit, turns 1.
    """
    n = front.numbers
    count, root = a.leaves.shape[0], a.nodes.shape[0] - 1
    n[DONE] = 0.0
    while True:
        if _reached(a, front, measure, tolerance):
            n[DONE] = 1.0
            return
        if n[COMPUTED] >= most:
            return
        k = _pop(front)
        n[LEFT] -= front.totals[k]
        terms = back(k, count, a.nodes, a.groups, s.data, s.joints, s.poses, s.forces, s.qdd, s.spare)
        n[TERMS] = max(n[TERMS], terms)
        front.computed[int(n[COMPUTED])] = k
        n[COMPUTED] += 1.0
        g = a.nodes[k, 4]
        if g >= 0 and a.nodes[k, 0] != 0:
            square = 0.0
            for d in range(a.groups[g, 3], a.groups[g, 3] + a.groups[g, 4]):
                square += (a.weights[d] * s.qdd[d]) ** 2
            n[SUM_] += square
            n[LARGEST] = max(n[LARGEST], square)
        left, right = a.nodes[k, 1], a.nodes[k, 2]
        if measure == WORLD:
            _beyond(k, a, s, front)
        if left >= count:
            _push(left, a, s, front, measure, unit)
        if right >= count:
            _push(right, a, s, front, measure, unit)
        if measure == WORLD:
            _errors(k, root, a, front)


@_jit
def _reached(a, front, measure, tolerance):
    n = front.numbers
    if n[SIZE] == 0.0:
        return True
    square = tolerance * tolerance
    noise = (ROUND_OFF * n[TERMS]) ** 2
    if measure == WORLD:
        return front.inside[a.nodes.shape[0] - 1] <= tolerance
    if measure == RELATIVE_JOINT:
        return front.keys[0] <= max(square * n[LARGEST], noise)
    if measure == ABSOLUTE_JOINT:
        return front.keys[0] <= max(square, noise)
    # Sums by differences lose digits: add up afresh before believing that it is enough.
    for again in range(2):
        limit = square * (n[LEFT] + n[SUM_]) if measure == RELATIVE_LINKAGE else square
        if not n[LEFT] <= max(limit, noise):
            return False
        if again == 0:
            left = 0.0
            for i in range(int(n[SIZE])):
                left += front.keys[i]
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
def _push(k, a, s, front, measure, unit):
    if a.nodes[k, 7] == 0:
        front.through[k] = front.inside[k] = 0.0
        return
    value = total(k, a.nodes, s.data, s.forces[k])
    front.totals[k] = value
    key = value
    if measure == WORLD:
        length = s.extent[k]
        if a.nodes[k, 5] == 2:
            length = max(length, _length(k, a, s) + front.beyond[k])
        key = math.sqrt(a.nodes[k, 8] * value) * max(s.extent[k] + length, unit)
        front.inside[k] = key
        front.through[k] = key if a.nodes[k, 5] == 2 else 0.0
    n = front.numbers
    n[LEFT] += value
    i = int(n[SIZE])
    n[SIZE] += 1.0
    while i > 0:
        up = (i - 1) // 2
        if front.keys[up] >= key:
            break
        front.keys[i], front.items[i] = front.keys[up], front.items[up]
        i = up
    front.keys[i], front.items[i] = key, k


@_jit
def _pop(front):
    n = front.numbers
    out = front.items[0]
    n[SIZE] -= 1.0
    size = int(n[SIZE])
    key, item = front.keys[size], front.items[size]
    i = 0
    while True:
        down = 2 * i + 1
        if down >= size:
            break
        if down + 1 < size and front.keys[down + 1] > front.keys[down]:
            down += 1
        if front.keys[down] <= key:
            break
        front.keys[i], front.items[i] = front.keys[down], front.items[down]
        i = down
    front.keys[i], front.items[i] = key, item
    return out


@_jit
def _length(k, a, s):
    """Distance between the handles of a cluster."""
    if a.nodes[k, 5] < 2:
        return 0.0
    o = a.nodes[k, 6] + 129
    return math.sqrt(s.data[o] ** 2 + s.data[o + 1] ** 2 + s.data[o + 2] ** 2)


@_jit
def _beyond(k, a, s, front):
    """How far from the bottom handles of k's children things go on: what the children's joints carry besides."""
    left, right, g = a.nodes[k, 1], a.nodes[k, 2], a.nodes[k, 4]
    front.beyond[right] = front.beyond[k]
    if left >= 0:
        front.beyond[left] = front.beyond[k]
    if a.nodes[k, 0] == MERGE and a.nodes[left, 5] == 2:
        farther = s.extent[right]
        if a.nodes[k, 5] == 2:
            farther = max(farther, _length(right, a, s) + front.beyond[k])
        x, y, z = s.poses[g, 9], s.poses[g, 10], s.poses[g, 11]
        front.beyond[left] = math.sqrt(x * x + y * y + z * z) + farther


@_jit
def _errors(k, root, a, front):
    """Errors of k and of all clusters that contain it, after its children's have changed."""
    while k >= 0:
        left, right = a.nodes[k, 1], a.nodes[k, 2]
        kind = a.nodes[k, 0]
        if kind == ROOT:
            front.inside[k] = front.inside[right]
        elif kind == MERGE:
            front.inside[k] = max(front.inside[left], front.through[left] + front.inside[right])
            front.through[k] = front.through[left] + front.through[right] if a.nodes[k, 5] == 2 else 0.0
        else:
            front.inside[k] = max(front.inside[left], front.inside[right])
        if k == root:
            return
        k = a.nodes[k, 3]


@_jit
def move(a, s, front, scale):
    """q += scale * qdd for the computed joints; their nodes are marked, the ways across them brought up to date."""
    for i in range(int(front.numbers[COMPUTED]) - 1, -1, -1):
        k = front.computed[i]
        front.marks[k] = 1
        g = a.nodes[k, 4]
        if g >= 0:
            joint_kernels.move(g, a.groups, a.primitives, s.q, s.qdd, scale)
            place(g, a, s)
        span(k, a, s)


@_jit
def update(loads, a, s, front):
    """Bring up to date all marked clusters and those above leaves whose wrench has changed; the node that fails, or -1.

    Returns also how many there were.
    """
    count, root = a.leaves.shape[0], a.nodes.shape[0] - 1
    wrench = s.spare[2]
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
            leaf(k, a.nodes, a.leaves, s.wrenches[k], s.data)
            k = a.nodes[k, 3]
            while k >= 0 and front.marks[k] == 0:
                front.marks[k] = 1
                k = a.nodes[k, 3]
    if front.marks[root] == 0:
        return -1, 0
    # parents before children; then from the end
    size, done = 1, 0
    front.stack[0] = root
    while done < size:
        k = front.stack[done]
        done += 1
        for side in range(1, 3):
            child = a.nodes[k, side]
            if child >= count and front.marks[child] == 1:
                front.stack[size] = child
                size += 1
    failed = -1
    for i in range(size - 1, -1, -1):
        k = front.stack[i]
        front.marks[k] = 0
        if not assemble(k, a, s):
            failed = k
    return failed, size
