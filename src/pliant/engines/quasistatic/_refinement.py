"""Partial back-substitution (RL05 section 4.2), the lazy update after it (section 5.2), and whole steps with both.

The front of the refinement is a heap of clusters whose joints are not computed, the largest total acceleration first.
`numbers` holds the terms of the stopping rules. The clusters computed form the top of the assembly tree; they are
the ones that change when their joints move.

Joints that are not computed are rigid, or, as the paper prints it, as if their accelerations were zero (`_hybrid.py`).
The paper's measures bound accelerations of joints that are left out. WORLD bounds those of bodies, ENERGY_NORM is the
norm of the inertias. Both depend on the rigid clusters, so they are evaluated only now and then: at some fraction
of the number of joints that the last step needed, then whenever there are a sixteenth more.
"""

import math

from pliant.compilation import njit
from pliant.engines import heap
from pliant.engines.quasistatic import arrays as col
from pliant.engines.quasistatic._hybrid import (
    ENERGY_ROUND_OFF,
    error_in_energy,
    error_in_places,
    place_bodies,
    place_children,
    reduce_linkage,
    solve_reduced,
)
from pliant.engines.quasistatic._hybrid_wide import solve_with_loops
from pliant.engines.quasistatic._merge import back_substitute, update_leaf, update_span
from pliant.engines.quasistatic._merge_wide import back_substitute_wide
from pliant.engines.quasistatic._passes import (
    assemble,
    inlined,
    leaf_wrench,
    total_acceleration,
)
from pliant.engines.quasistatic._twigs import close_twig, fill_twig, is_closed, open_twig
from pliant.engines.quasistatic.joints import integrate_joint, joint_pose, joint_torques
from pliant.statics.load_kernels import LINK

_jit = njit(error_model="numpy", nogil=True, fastmath=False)
_DIVIDED = (
    8  # rigid clusters that are divided for a closer bound on places, and a part of the joints computed
)
_ROUND_OFF = 1e-14  # accelerations below this fraction of the terms they are sums of count as zero


@_jit
def advance(n, begun, move_on, keep, loads, a, wide, rigid, front, criterion, scale, most):
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
            _start(a, wide, front)
            if most == 0:
                return i, spent, col.FINE
        failed = _refine(a, wide, rigid, front, criterion, most, move_on)
        spent += int(numbers[col.OPENED])
        numbers[col.OPENED] = 0.0
        if failed != col.FINE:
            return i, spent, failed
        square = numbers[col.COMPUTED_SUM]
        if criterion.rigid:
            square = max(square, _squared_sum(a.joints, a.clusters.nodes, front))
        if (
            not math.isfinite(numbers[col.UNCOMPUTED_SUM] + square)
            or square * scale * scale > col.FARTHEST**2
        ):
            return i, spent, col.INFINITE
        if criterion.measure not in (col.WORLD, col.ENERGY_NORM):
            numbers[col.ERROR] = _error(front, criterion.measure)
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
    return assemble(stack, size, a.joints, clusters, a.scratch, wide, clusters.data), size + inside


@inlined
def _start(a, wide, front):
    """Clear the accelerations computed; the front is the whole mechanism."""
    joints, clusters, numbers = a.joints, a.clusters, front.numbers
    for i in range(int(numbers[col.COMPUTED])):
        g = clusters.nodes[front.computed[i], col.GROUP]
        if g >= 0:
            for d in range(joints.groups[g, col.DOF], joints.groups[g, col.DOF] + joints.groups[g, col.DOFS]):
                joints.qdd[d] = 0.0
    for i in range(col.FIRST_TEST):
        numbers[i] = 0.0
    root = clusters.nodes.shape[0] - 1
    front.top[root] = root
    total = total_acceleration(root, clusters.nodes, clusters.data, wide)
    _push(root, total, total, clusters.nodes, front)


@inlined
def _refine(a, wide, rigid, front, criterion, most, move_on):
    """Compute joints until the error is at most the tolerance, or `most` nodes are computed.

    In the latter case, accelerations of rigid clusters are only complete unless it is to `move_on`. Returns FINE,
    FULL_AHEAD, or a node whose joint has no inertia.
    """
    groups, poses, weights, free, spare = (
        a.joints.groups,
        a.joints.poses,
        a.joints.weights,
        front.free,
        a.scratch.poses,
    )
    nodes, data, length = a.clusters.nodes, a.clusters.data, a.clusters.closure
    keys, items, totals, computed, numbers = (
        front.keys,
        front.items,
        front.totals,
        front.computed,
        front.numbers,
    )
    count = a.leaves.wrenches.shape[0]
    of_bodies = criterion.measure in (col.WORLD, col.ENERGY_NORM)
    numbers[col.DONE] = 0.0
    solved, tests = -1, 0
    numbers[col.TEST] = numbers[col.COMPUTED] if criterion.tolerance > 0.0 else math.inf
    while True:
        if numbers[col.HEAP_SIZE] == 0.0:
            numbers[col.TEST] = 0.0
        open_ring = numbers[col.HEAP_SIZE] > 0.0 and keys[0] == math.inf
        if of_bodies and numbers[col.COMPUTED] >= numbers[col.TEST] and not open_ring:
            solved = int(numbers[col.COMPUTED])
            failed = _solve_bodies(a, wide, rigid, front, criterion)
            if failed >= 0:
                return failed
            tests += solved > 0
            more = 1 + solved // 16
            if numbers[col.ERROR] <= criterion.tolerance:
                numbers[col.DONE] = 1.0
                numbers[col.FIRST_TEST] = (7 * solved) // 8 if tests <= 1 else solved - more
                if wide is None:  # noqa: SIM102 - see `_passes`
                    if criterion.measure == col.WORLD and solved > 0 and numbers[col.HEAP_SIZE] > 0.0:
                        numbers[col.ERROR] = _closer_error(a, wide, front, criterion)
                break
            numbers[col.TEST] = max(solved + more, numbers[col.FIRST_TEST] if solved == 0 else 0.0)
        elif not of_bodies and not open_ring and _reached(keys, numbers, criterion):
            numbers[col.DONE] = 1.0
            break
        if numbers[col.COMPUTED] >= most and (move_on or not open_ring):
            break
        if is_closed(items[0], nodes):
            opened = open_twig(items[0], a.clusters, a.leaves)
            if opened == 0:
                return col.FULL_AHEAD
            fill_twig(opened, a.joints, a.clusters, a.leaves, a.scratch, front.marks)
            numbers[col.OPENED] += opened
        k = heap.pop(int(numbers[col.HEAP_SIZE]), keys, items)
        numbers[col.HEAP_SIZE] -= 1.0
        numbers[col.UNCOMPUTED_SUM] -= totals[k]
        terms = 0.0
        general = False
        if wide is not None:  # noqa: SIM102 - see `_passes`
            if nodes[k, col.WIDE] >= 0:
                general = True
                terms = back_substitute_wide(k, nodes, groups, data, length, free, wide)
        if not general:
            terms = back_substitute(k, nodes, groups, poses, data, length, free, spare)
        numbers[col.TERMS] = max(numbers[col.TERMS], terms)
        computed[int(numbers[col.COMPUTED])] = k
        numbers[col.COMPUTED] += 1.0
        g = nodes[k, col.GROUP]
        if g >= 0:
            square = 0.0
            for d in range(groups[g, col.DOF], groups[g, col.DOF] + groups[g, col.DOFS]):
                square += (weights[d] * free[d]) ** 2
            numbers[col.COMPUTED_SUM] += square
            numbers[col.LARGEST] = max(numbers[col.LARGEST], square)
        for side in range(2):
            child = nodes[k, col.LEFT + side]
            if child >= count:
                total = total_acceleration(child, nodes, data, wide)
                key = total
                if wide is not None:  # noqa: SIM102 - see `_passes`
                    if criterion.rigid and wide.ring[child] == 1:
                        key = math.inf
                _push(child, key, total, nodes, front)
    if (of_bodies or criterion.rigid) and solved != int(numbers[col.COMPUTED]):  # noqa: SIM102
        if numbers[col.DONE] == 1.0 or not move_on:
            failed = _solve_bodies(a, wide, rigid, front, criterion)
            if failed >= 0:
                return failed
    return col.FINE


@inlined
def _solve_bodies(a, wide, rigid, front, criterion):
    """Accelerations of computed joints and of rigid clusters; the error of the latter, if it counts.

    Returns the node whose joint has no inertia, or -1.
    """
    numbers, qdd = front.numbers, a.joints.qdd
    failed = -1
    if numbers[col.HEAP_SIZE] == 0.0:
        if criterion.rigid:  # nothing is rigid
            _copy_accelerations(a.joints.groups, a.clusters.nodes, front, qdd)
        numbers[col.ERROR] = 0.0
    else:
        reduce_linkage(a.clusters.nodes, front)
        if not criterion.rigid:
            place_bodies(False, a, front)
        elif wide is not None:
            failed = solve_with_loops(a, wide, front, rigid.clusters, rigid.wide)
        else:
            failed = solve_reduced(a, front)
        if criterion.measure == col.WORLD:
            numbers[col.ERROR] = _largest_error(a, wide, front, criterion)
        if wide is None:  # noqa: SIM102 - see `_passes`
            if criterion.measure == col.ENERGY_NORM:
                numbers[col.ERROR] = _energy_error(a, front)
    return failed


@_jit
def _copy_accelerations(groups, nodes, front, qdd):
    """Accelerations of computed joints as if all joints were free."""
    for i in range(int(front.numbers[col.COMPUTED])):
        g = nodes[front.computed[i], col.GROUP]
        if g >= 0:
            for d in range(groups[g, col.DOF], groups[g, col.DOF] + groups[g, col.DOFS]):
                qdd[d] = front.free[d]


@_jit
def _squared_sum(joints, nodes, front):
    """Sum of squared weighted accelerations of the computed joints."""
    total = 0.0
    for i in range(int(front.numbers[col.COMPUTED])):
        g = nodes[front.computed[i], col.GROUP]
        if g >= 0:
            for d in range(joints.groups[g, col.DOF], joints.groups[g, col.DOF] + joints.groups[g, col.DOFS]):
                total += (joints.weights[d] * joints.qdd[d]) ** 2
    return total


@_jit
def _largest_error(a, wide, front, criterion):
    """Largest bound on the acceleration that a body misses, m/s^2.

    The bound of a large cluster counts as if all its energy were that of one body. So clusters of which it is beyond
    the tolerance are divided, up to as many as are computed: bounds of their parts are closer.
    """
    nodes, computed, root = a.clusters.nodes, front.computed, a.clusters.nodes.shape[0] - 1
    count = int(front.numbers[col.COMPUTED])
    if count == 0:
        return error_in_places(front.totals[root], root, criterion.unit, a, wide, a.scratch)
    largest, budget = 0.0, count
    for i in range(count):
        for side in range(2):
            child = nodes[computed[i], col.LEFT + side]
            if child >= 0 and front.top[child] == child:
                total = front.totals[child] if nodes[child, col.ROWS] > 0 else 0.0
                error = error_in_places(total, child, criterion.unit, a, wide, a.scratch)
                if wide is None:  # noqa: SIM102 - see `_passes`
                    if error > criterion.tolerance and largest <= criterion.tolerance:
                        parts, budget = _error_in_parts(child, budget, a, wide, front, criterion)
                        error = min(error, parts)
                if not error <= largest:
                    largest = error
    return largest


@_jit
def _error_in_parts(k, budget, a, wide, front, criterion):
    """Largest bound in the parts of a rigid cluster, divided until it is within the tolerance, and what budget is left.

    Infinity if there are not that many parts, or the budget is too small.
    """
    nodes, stack = a.clusters.nodes, front.stack
    size, largest = 1, 0.0
    stack[0] = k
    while size > 0:
        size -= 1
        k = stack[size]
        if budget <= 0 or nodes[k, col.ROWS] == 0 or is_closed(k, nodes):
            return math.inf, budget
        budget -= 1
        _divide(k, a, front)
        for side in range(2):
            child = nodes[k, col.LEFT + side]
            if child >= 0:
                error = error_in_places(0.0, child, criterion.unit, a, wide, a.scratch)
                if error <= criterion.tolerance:
                    largest = max(largest, error)
                else:
                    stack[size] = child
                    size += 1
    return largest, budget


@_jit
def _divide(k, a, front):
    """Forces on handles and accelerations of the parts of a rigid cluster."""
    nodes, groups, free = a.clusters.nodes, a.joints.groups, front.free
    g = nodes[k, col.GROUP]
    back_substitute(
        k, nodes, groups, a.joints.poses, a.clusters.data, a.clusters.closure, free, a.scratch.poses
    )
    if g >= 0:  # as before: it is not computed
        for d in range(groups[g, col.DOF], groups[g, col.DOF] + groups[g, col.DOFS]):
            free[d] = 0.0
    if nodes[k, col.KIND] != col.SUM:
        place_children(k, a)


@_jit
def _closer_error(a, wide, front, criterion):
    """Largest bound on the acceleration that a body misses, m/s^2, closer than that of `_largest_error`.

    The rigid cluster with the largest bound is divided, eight times and once more for every eight joints computed; no
    loops.
    """
    nodes, computed = a.clusters.nodes, front.computed
    count, size, keys, items = int(front.numbers[col.COMPUTED]), 0, front.bounds, front.bounded
    for i in range(count):
        for side in range(2):
            child = nodes[computed[i], col.LEFT + side]
            if child >= 0 and front.top[child] == child:
                heap.push(
                    error_in_places(0.0, child, criterion.unit, a, wide, a.scratch), child, size, keys, items
                )
                size += 1
    for _ in range(_DIVIDED + count // _DIVIDED):
        k, error = items[0], keys[0]
        if error == 0.0 or nodes[k, col.ROWS] == 0 or is_closed(k, nodes):
            break
        heap.pop(size, keys, items)
        size -= 1
        _divide(k, a, front)
        for side in range(2):
            child = nodes[k, col.LEFT + side]
            if child >= 0:
                own = error_in_places(0.0, child, criterion.unit, a, wide, a.scratch)
                heap.push(min(own, error), child, size, keys, items)
                size += 1
    return min(keys[0], front.numbers[col.ERROR])


@_jit
def _energy_error(a, front):
    """Energy norm of the accelerations missed over that of all; an upper bound, as round-off is added."""
    joints, nodes, data = a.joints, a.clusters.nodes, a.clusters.data
    computed, root = front.computed, nodes.shape[0] - 1
    at = nodes[root, col.START] - col.BEFORE
    noise = ENERGY_ROUND_OFF * data[at + col.ENERGY_TERMS]
    whole, missed = data[at + col.ENERGY] - noise, 0.0
    count = int(front.numbers[col.COMPUTED])
    if count == 0:
        missed = error_in_energy(root, a, a.scratch)
    for i in range(count):
        k = computed[i]
        for side in range(2):
            child = nodes[k, col.LEFT + side]
            if child >= 0 and front.top[child] == child:
                missed += error_in_energy(child, a, a.scratch)
        g = nodes[k, col.GROUP]
        if g >= 0:
            for d in range(joints.groups[g, col.DOF], joints.groups[g, col.DOF] + joints.groups[g, col.DOFS]):
                missed += joints.resist[d] * (front.free[d] - joints.qdd[d]) ** 2
    if missed == 0.0:
        return 0.0
    return math.sqrt(missed / whole) if whole > 0.0 else math.inf


@_jit
def _reached(keys, numbers, criterion):
    """Whether the error of accelerations is within the tolerance."""
    if numbers[col.HEAP_SIZE] == 0.0:
        return True
    measure = criterion.measure
    square = criterion.tolerance * criterion.tolerance
    noise = (_ROUND_OFF * numbers[col.TERMS]) ** 2
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
def _error(front, measure):
    """Bound on the accelerations left out so far, in the units of the measure."""
    numbers = front.numbers
    if numbers[col.HEAP_SIZE] == 0.0:
        return 0.0
    if measure in (col.RELATIVE_JOINT, col.ABSOLUTE_JOINT):
        value, scale = front.keys[0], numbers[col.LARGEST]
    else:
        value = _heap_sum(front.keys, numbers)
        scale = value + numbers[col.COMPUTED_SUM]
    if measure in (col.ABSOLUTE_JOINT, col.ABSOLUTE_LINKAGE):
        return math.sqrt(value)
    return math.sqrt(value / scale) if scale > 0.0 else (0.0 if value == 0.0 else math.inf)


@_jit
def _push(k, key, total, nodes, front):
    """Add a cluster with this total acceleration to the heap, unless it has no joints."""
    numbers = front.numbers
    if nodes[k, col.ROWS] == 0:
        return
    front.totals[k] = total
    numbers[col.UNCOMPUTED_SUM] += total
    heap.push(key, k, int(numbers[col.HEAP_SIZE]), front.keys, front.items)
    numbers[col.HEAP_SIZE] += 1.0


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
        limit = (tolerance / unit) ** 2
    else:
        limit = tolerance * tolerance / n
        if measure != col.ABSOLUTE_LINKAGE:
            limit *= whole
    out = 0
    for d in range(n):
        if (weights[d] * qdd[d]) ** 2 > limit:
            out += 1
    return out
