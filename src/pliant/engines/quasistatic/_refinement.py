"""Partial back-substitution (RL05 section 4.2), the lazy update after it (section 5.2), and whole steps with both.

The front of the refinement is a heap of clusters whose joints are not computed, the largest total acceleration first.
`numbers` holds the terms of the stopping rules. The clusters computed form the top of the assembly tree; they are
the ones that change when their joints move.

The paper's measures bound accelerations of joints. WORLD bounds displacements of bodies: a joint that is not computed
moves the bodies it carries by at most its own angle times the distance to the farthest of them. Errors of clusters
along a path add up, errors of side branches do not: `through` is the error from the top handle to the bottom one,
`inside` the largest error of a body relative to the top handle.
"""

import math

from pliant.compilation import njit
from pliant.engines.quasistatic import arrays as col
from pliant.engines.quasistatic._joints import distance, integrate_joint, joint_pose, joint_torques
from pliant.engines.quasistatic._merge import back_substitute, handle_distance, update_leaf, update_span
from pliant.engines.quasistatic._merge_wide import back_substitute_wide
from pliant.engines.quasistatic._passes import (
    assemble,
    inlined,
    leaf_wrench,
    total_acceleration,
)
from pliant.engines.quasistatic._twigs import close_twig, fill_twig, is_closed, open_twig
from pliant.statics.load_kernels import LINK

_jit = njit(error_model="numpy", nogil=True, fastmath=False)
_ROUND_OFF = 1e-14  # accelerations below this fraction of the terms they are sums of count as zero


@_jit
def advance(n, begun, move_on, keep, loads, a, wide, front, criterion, scale, most):
    """Update marked clusters, start a front (unless one is `begun`), refine it, and step by `scale qdd`: n times.

    With `move_on` False it stops before the first step; with `most` 0 before the first refinement. Twigs that are
    updated stay open only with `keep`. One function for all of it, so that it is compiled once.

    Returns the steps done (fewer than n where more than `most` nodes would be computed), the number of nodes updated,
    and the failure: a node, FINE, INFINITE, STALE where ranks of loops are to be computed again first, or FULL and
    FULL_AHEAD where there is no room for the records of a twig, before and during a refinement.
    """
    spent = 0
    numbers = front.numbers
    for i in range(n):
        if i > 0 or not begun:
            failed, count = _update(keep, loads, a, wide, front)
            spent += count
            if failed != col.FINE:
                return i, spent, failed
            if wide is not None:  # noqa: SIM102 - see `_passes`
                if wide.stale[0] != 0:
                    return i, spent, col.STALE
            _start(a, wide, front, criterion)
            if most == 0:
                return i, spent, col.FINE
        failed = _refine(a, wide, front, criterion, most)
        spent += int(numbers[col.OPENED])
        numbers[col.OPENED] = 0.0
        if failed != col.FINE:
            return i, spent, failed
        square = numbers[col.COMPUTED_SUM]
        if (
            not math.isfinite(numbers[col.UNCOMPUTED_SUM] + square)
            or square * scale * scale > col.FARTHEST**2
        ):
            return i, spent, col.INFINITE
        numbers[col.ERROR] = _error(a.clusters.nodes.shape[0] - 1, front, criterion.measure)
        if numbers[col.DONE] == 0.0 or not move_on:
            return i, spent, col.FINE
        spent += int(numbers[col.COMPUTED]) // 4
        _integrate(a, front, scale)
        a.joints.taken[0] += 1
    return n, spent, col.FINE


@inlined
def _update(keep, loads, a, wide, front):
    """Update all marked clusters and those above leaves whose wrench has changed; twigs with such clusters are opened.

    Returns the node that fails, FULL or FINE, and the number of nodes updated.
    """
    clusters, leaves, marks, stack, wrench = (
        a.clusters,
        a.leaves,
        front.marks,
        front.stack,
        a.scratch.poses[2],
    )
    nodes = clusters.nodes
    count, root = leaves.wrenches.shape[0], nodes.shape[0] - 1
    row = 0
    while row < loads.shape[0]:
        k = int(loads[row, LINK])
        row = leaf_wrench(loads, row, a, wrench)
        same = True
        for i in range(6):
            if leaves.wrenches[k, i] != wrench[i]:
                same = False
                leaves.wrenches[k, i] = wrench[i]
        if not same:
            if nodes[k, col.START] >= 0:
                update_leaf(k, nodes, leaves.wrenches, clusters.data)
            k = nodes[k, col.ABOVE]
            while k >= 0 and marks[k] == 0:
                marks[k] = 1
                k = nodes[k, col.ABOVE]
    if marks[root] == 0:
        return col.FINE, 0
    # parents before children: `assemble` goes from the end
    size, done, inside = 1, 0, 0
    stack[0] = root
    while done < size:
        k = stack[done]
        marks[k] = 0
        done += 1
        if is_closed(k, nodes):
            opened = open_twig(k, clusters, leaves)
            if opened == 0:
                for i in range(size):
                    marks[stack[i]] = 1
                return col.FULL, inside
            failed = fill_twig(opened, a.joints, clusters, leaves, a.scratch, marks)
            if failed >= 0:
                return failed, inside
            inside += opened
            if not keep:
                close_twig(opened, clusters, leaves)
            done -= 1  # the last one takes its place
            size -= 1
            stack[done] = stack[size]
            continue
        for side in range(2):
            child = nodes[k, col.LEFT + side]
            if child >= count and marks[child] == 1:
                stack[size] = child
                size += 1
    return assemble(stack, size, a, wide), size + inside


@inlined
def _start(a, wide, front, criterion):
    """Clear the accelerations computed; the front is the whole mechanism."""
    joints, clusters, numbers = a.joints, a.clusters, front.numbers
    for i in range(int(numbers[col.COMPUTED])):
        g = clusters.nodes[front.computed[i], col.GROUP]
        if g >= 0:
            for d in range(joints.groups[g, col.DOF], joints.groups[g, col.DOF] + joints.groups[g, col.DOFS]):
                joints.qdd[d] = 0.0
    for i in range(col.NUMBERS):
        numbers[i] = 0.0
    root = clusters.nodes.shape[0] - 1
    front.below[root] = 0.0
    nodes, data, extent = clusters.nodes, clusters.data, a.leaves.extent
    total = total_acceleration(root, nodes, data, wide)
    _push(root, total, nodes, data, extent, front, criterion)


@inlined
def _refine(a, wide, front, criterion, most):
    """Compute joints until the error is at most the tolerance, or `most` nodes are computed.

    Returns FINE or FULL_AHEAD.
    """
    groups, poses, weights, qdd, spare = (
        a.joints.groups,
        a.joints.poses,
        a.joints.weights,
        a.joints.qdd,
        a.scratch.poses,
    )
    nodes, data, length, extent = (
        a.clusters.nodes,
        a.clusters.data,
        a.clusters.closure,
        a.leaves.extent,
    )
    keys, items, totals, computed, numbers = (
        front.keys,
        front.items,
        front.totals,
        front.computed,
        front.numbers,
    )
    below, through, inside = front.below, front.through, front.inside
    count, root = a.leaves.wrenches.shape[0], nodes.shape[0] - 1
    numbers[col.DONE] = 0.0
    while True:
        if _reached(inside[root], keys, numbers, criterion):
            numbers[col.DONE] = 1.0
            return col.FINE
        if numbers[col.COMPUTED] >= most:
            return col.FINE
        if is_closed(items[0], nodes):
            opened = open_twig(items[0], a.clusters, a.leaves)
            if opened == 0:
                return col.FULL_AHEAD
            fill_twig(opened, a.joints, a.clusters, a.leaves, a.scratch, front.marks)
            numbers[col.OPENED] += opened
        k = _pop(keys, items, numbers)
        numbers[col.UNCOMPUTED_SUM] -= totals[k]
        terms = 0.0
        general = False
        if wide is not None:  # noqa: SIM102 - see `_passes`
            if nodes[k, col.WIDE] >= 0:
                general = True
                terms = back_substitute_wide(k, nodes, groups, data, length, qdd, wide)
        if not general:
            terms = back_substitute(k, nodes, groups, poses, data, length, qdd, spare)
        numbers[col.TERMS] = max(numbers[col.TERMS], terms)
        computed[int(numbers[col.COMPUTED])] = k
        numbers[col.COMPUTED] += 1.0
        g = nodes[k, col.GROUP]
        if g >= 0:
            square = 0.0
            for d in range(groups[g, col.DOF], groups[g, col.DOF] + groups[g, col.DOFS]):
                square += (weights[d] * qdd[d]) ** 2
            numbers[col.COMPUTED_SUM] += square
            numbers[col.LARGEST] = max(numbers[col.LARGEST], square)
        if criterion.measure == col.WORLD:
            _reach_below(k, nodes, poses, data, extent, below)
        for side in range(2):
            child = nodes[k, col.LEFT + side]
            if child >= count:
                total = total_acceleration(child, nodes, data, wide)
                _push(child, total, nodes, data, extent, front, criterion)
        if criterion.measure == col.WORLD:
            _update_errors(k, nodes, through, inside)


@_jit
def _reached(displacement, keys, numbers, criterion):
    """Whether the error is within the tolerance."""
    if numbers[col.HEAP_SIZE] == 0.0:
        return True
    measure = criterion.measure
    square = criterion.tolerance * criterion.tolerance
    noise = (_ROUND_OFF * numbers[col.TERMS]) ** 2
    if measure == col.WORLD:
        return displacement <= criterion.tolerance
    if measure == col.RELATIVE_JOINT:
        return keys[0] <= max(square * numbers[col.LARGEST], noise)
    if measure == col.ABSOLUTE_JOINT:
        return keys[0] <= max(square, noise)
    # Sums by differences lose digits: add up afresh before they count as small enough.
    for again in range(2):
        left = numbers[col.UNCOMPUTED_SUM]
        limit = square * (left + numbers[col.COMPUTED_SUM]) if measure == col.RELATIVE_LINKAGE else square
        if not left <= max(limit, noise):
            return False
        if again == 0:
            numbers[col.UNCOMPUTED_SUM] = _heap_sum(keys, numbers)
    return True


@_jit
def _heap_sum(keys, numbers):
    total = 0.0
    for i in range(int(numbers[col.HEAP_SIZE])):
        total += keys[i]
    return total


@_jit
def _error(root, front, measure):
    """Bound on the error of the accelerations computed so far, in the units of the measure."""
    numbers = front.numbers
    if numbers[col.HEAP_SIZE] == 0.0:
        return 0.0
    if measure == col.WORLD:
        return front.inside[root]
    if measure in (col.RELATIVE_JOINT, col.ABSOLUTE_JOINT):
        value, scale = front.keys[0], numbers[col.LARGEST]
    else:
        value = _heap_sum(front.keys, numbers)
        scale = value + numbers[col.COMPUTED_SUM]
    if measure in (col.ABSOLUTE_JOINT, col.ABSOLUTE_LINKAGE):
        return math.sqrt(value)
    return math.sqrt(value / scale) if scale > 0.0 else (0.0 if value == 0.0 else math.inf)


@_jit
def _push(k, value, nodes, data, extent, front, criterion):
    """Add a cluster with this total acceleration to the heap, unless it has no joints."""
    keys, items, numbers = front.keys, front.items, front.numbers
    if nodes[k, col.ROWS] == 0:
        front.through[k] = front.inside[k] = 0.0
        return
    front.totals[k] = value
    key = value
    if criterion.measure == col.WORLD:
        length = extent[k]
        if nodes[k, col.HANDLES] == 2:
            length = max(length, handle_distance(k, nodes, data) + front.below[k])
        key = math.sqrt(nodes[k, col.LEVELS] * value) * max(extent[k] + length, criterion.unit)
        front.inside[k] = key
        front.through[k] = key if nodes[k, col.HANDLES] == 2 else 0.0
    numbers[col.UNCOMPUTED_SUM] += value
    i = int(numbers[col.HEAP_SIZE])
    numbers[col.HEAP_SIZE] += 1.0
    while i > 0:
        up = (i - 1) // 2
        if keys[up] >= key:
            break
        keys[i], items[i] = keys[up], items[up]
        i = up
    keys[i], items[i] = key, k


@_jit
def _pop(keys, items, numbers):
    """Remove the cluster with the largest key from the heap."""
    out = items[0]
    numbers[col.HEAP_SIZE] -= 1.0
    size = int(numbers[col.HEAP_SIZE])
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
def _reach_below(k, nodes, poses, data, extent, below):
    """Largest distance, from the bottom handles of k's children, of anything that these handles carry."""
    left, right = nodes[k, col.LEFT], nodes[k, col.RIGHT]
    below[right] = below[k]
    if left >= 0:
        below[left] = below[k]
    if nodes[k, col.KIND] == col.MERGE and nodes[left, col.HANDLES] == 2:
        farther = extent[right]
        if nodes[k, col.HANDLES] == 2:
            farther = max(farther, handle_distance(right, nodes, data) + below[k])
        below[left] = distance(poses[nodes[k, col.GROUP]]) + farther


@_jit
def _update_errors(k, nodes, through, inside):
    """Errors of k and of all clusters that contain it, after its children's have changed."""
    while k >= 0:
        left, right, kind = nodes[k, col.LEFT], nodes[k, col.RIGHT], nodes[k, col.KIND]
        if kind in (col.ROOT, col.LOOP):
            inside[k] = inside[right]
            through[k] = through[right]
        elif kind == col.MERGE:
            inside[k] = max(inside[left], through[left] + inside[right])
            through[k] = through[left] + through[right] if nodes[k, col.HANDLES] == 2 else 0.0
        else:
            inside[k] = max(inside[left], inside[right])
        k = nodes[k, col.ABOVE]


@inlined
def _integrate(a, front, scale):
    """q += scale qdd for the computed joints; their nodes are marked, and the geometry of their clusters updated."""
    joints, springs, clusters, spare = a.joints, a.springs, a.clusters, a.scratch.poses
    nodes, data, extent, poses = clusters.nodes, clusters.data, a.leaves.extent, joints.poses
    groups, primitives, offsets, q = joints.groups, joints.primitives, joints.offsets, joints.q
    screws, torque, qdd = joints.screws, joints.torque, joints.qdd
    stiffness, pull, rest, motor = springs.stiffness, springs.pull, springs.rest, springs.motor
    for i in range(int(front.numbers[col.COMPUTED]) - 1, -1, -1):
        k = front.computed[i]
        front.marks[k] = 1
        g = nodes[k, col.GROUP]
        if g >= 0:
            integrate_joint(g, groups, primitives, q, qdd, scale)
            joint_pose(g, groups, primitives, offsets, q, poses, screws, spare)
            joint_torques(g, groups, primitives, stiffness, pull, rest, motor, q, torque)
        update_span(k, nodes, poses, data, extent, spare[0])


@_jit
def count_needed(joints, criterion):
    """At least how many joints a refinement would have to compute, from accelerations that are all known."""
    measure, tolerance, unit = criterion.measure, criterion.tolerance, criterion.unit
    weights, qdd = joints.weights, joints.qdd
    largest, whole = 0.0, 0.0
    for d in range(qdd.shape[0]):
        x = (weights[d] * qdd[d]) ** 2
        largest = max(largest, x)
        whole += x
    n = qdd.shape[0]
    if measure == col.RELATIVE_JOINT:
        limit = tolerance * tolerance * largest
    elif measure == col.ABSOLUTE_JOINT:
        limit = tolerance * tolerance
    elif measure == col.WORLD:
        limit = (tolerance / unit) ** 2 / n
    else:
        limit = tolerance * tolerance / n
        if measure == col.RELATIVE_LINKAGE:
            limit *= whole
    out = 0
    for d in range(n):
        if (weights[d] * qdd[d]) ** 2 > limit:
            out += 1
    return out
