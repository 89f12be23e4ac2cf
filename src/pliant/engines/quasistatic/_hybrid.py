"""Kernels for hybrid bodies: joints that are computed move, all others are rigid.

The joints computed are the top of the assembly tree, so what is left are clusters without a joint that moves: rigid
bodies, each with at most two frames where joints attach. On this linkage of few bodies, `reduce_linkage` finds which
body every joint hangs on, `solve_reduced` runs the articulated-body algorithm (see `_aba.py`), and `place_bodies`
computes the accelerations of all bodies from those of the joints.

With M the inertias, plus what resists the acceleration of joints, and tau all forces, that is the solution of
`M[a, a] qdd = tau[a]` for the computed joints a. Mechanisms with loops are solved by `_hybrid_wide`.

**Errors.** What a rigid cluster misses is the difference of its own acceleration and of those of its bodies as if all
joints were free. With forces f on its handles and W = w + X^T f in all, it would accelerate by `a = I^-1 W` if it were
rigid; the energy of what its bodies do besides is

    eta = f . Phi f + 2 f . b + g - W . a

since rigid motions and motions of joints are orthogonal there. That bounds the acceleration of any body, by its
inertia. As a difference it has the round-off of its terms, which is added to it. Loops whose gaps are closed have no
such energy; there total accelerations and levers bound what bodies do besides the acceleration of the top handle.
"""

import math

from pliant.compilation import njit
from pliant.engines.quasistatic import arrays as col
from pliant.engines.quasistatic._aba import add_to_parent, eliminate_dof, eliminate_dofs, substitute_dofs
from pliant.engines.quasistatic._merge import closure_of, joint_freedoms
from pliant.engines.quasistatic._merge_wide import wide_row
from pliant.engines.quasistatic.joints import (
    compose,
    copy_pose,
    expand_inertia,
    invert_inertia,
    set_identity,
    to_child,
    to_parent,
)
from pliant.mechanism.links import LINK_HINGE

_jit = njit(error_model="numpy", nogil=True, fastmath=False)
_fused = njit(error_model="numpy", nogil=True, fastmath={"contract"})
_inline = njit(error_model="numpy", nogil=True, inline="always")
_ROUND_OFF = 1e-14  # of accelerations, relative to the terms they are sums of
ENERGY_ROUND_OFF = 1e-13  # the same of energies


# --- the linkage of rigid clusters


@_jit
def reduce_linkage(nodes, front):
    """Rigid clusters at the handles of computed nodes, and the computed nodes from tips to base.

    The latter are the first entries of `front.stack`: a node comes after its right child and before its left one.
    """
    computed, top, bottom, order = front.computed, front.top, front.bottom, front.stack
    count = int(front.numbers[col.COMPUTED])
    for i in range(count):
        for side in range(2):
            child = nodes[computed[i], col.LEFT + side]
            if child >= 0:
                top[child] = bottom[child] = child
    for i in range(count - 1, -1, -1):
        k = computed[i]
        kind, left, right = nodes[k, col.KIND], nodes[k, col.LEFT], nodes[k, col.RIGHT]
        if kind == col.SUM:
            top[k] = bottom[k] = -1
        elif kind in (col.ROOT, col.LOOP):
            top[k], bottom[k] = top[right], bottom[right]
        else:
            top[k] = top[left]
            bottom[k] = bottom[right] if nodes[k, col.HANDLES] == 2 else top[k]
    size, end = 0, nodes.shape[0]
    waiting, k = end, nodes.shape[0] - 1
    while count > 0:
        while k >= 0 and top[k] != k:
            waiting -= 1
            order[waiting] = k
            k = nodes[k, col.RIGHT]
        if waiting == end:
            break
        k = order[waiting]
        waiting += 1
        order[size] = k
        size += 1
        k = nodes[k, col.LEFT]


@_inline
def _rigid_body(k, nodes, data):
    """Row of a rigid cluster in the recursion, see `ArticulatedBodies.body`."""
    at = nodes[k, col.START] - col.BEFORE + col.RIGID_BODY
    return data[at : at + col.BODY_COLUMNS]


@_inline
def _gain(k, clusters):
    """Row of node k, whose joint has several dofs, see `ArticulatedBodies.gain`."""
    closure = closure_of(clusters.nodes[k, col.START], clusters.closure, clusters.data)
    return closure[clusters.closure - col.GAIN_COLUMNS :]


@_jit
def _joint_pose(k, nodes, poses, data, bottom, out):
    """Pose of the rigid cluster below the joint of node k in that above it, which is returned (-1 the world)."""
    kind, left = nodes[k, col.KIND], nodes[k, col.LEFT]
    if kind == col.WELD:
        set_identity(out)
    else:
        copy_pose(poses[nodes[k, col.GROUP]], out)
    if kind == col.ROOT:
        return -1
    above = bottom[left]
    if nodes[left, col.HANDLES] == 2 and nodes[above, col.HANDLES] == 2:
        o = nodes[above, col.START] + col.SPAN
        compose(data[o : o + 12], poses[nodes[k, col.GROUP]], out)
    return above


@_fused
def solve_reduced(a, front):
    """Accelerations of computed joints when all others are rigid, and of the rigid clusters; no loops.

    Returns the node whose joint has no inertia, or -1.
    """
    joints, clusters, scratch = a.joints, a.clusters, a.scratch
    nodes, data, poses = clusters.nodes, clusters.data, joints.poses
    screws, resist, torque = joints.screws, joints.resist, joints.torque
    computed, order, top, bottom = front.computed, front.stack, front.top, front.bottom
    count, pose, half = int(front.numbers[col.COMPUTED]), scratch.poses[0], scratch.matrices[col.SPARE]
    for i in range(count):
        for side in range(2):
            child = nodes[computed[i], col.LEFT + side]
            if child >= 0 and top[child] == child and nodes[child, col.HANDLES] > 0:
                at = nodes[child, col.START] - col.BEFORE
                row = _rigid_body(child, nodes, data)
                expand_inertia(data[at + col.RIGID_INERTIA : at + col.RIGID_WRENCH], row)
                for j in range(6):
                    row[col.FORCE + j] = -data[at + col.RIGID_WRENCH + j]
    for i in range(count):
        k = order[i]
        kind = nodes[k, col.KIND]
        if kind == col.SUM:
            continue
        own = _rigid_body(top[nodes[k, col.RIGHT]], nodes, data)
        freedoms, d, single = joint_freedoms(kind, nodes[k, col.GROUP], joints)
        if freedoms == 1:
            if not eliminate_dof(5 if single == LINK_HINGE else 2, resist[d], torque[d], own):
                return k
        elif freedoms > 1:
            gain = _gain(k, clusters)
            if not eliminate_dofs(freedoms, single >= 0, own, gain, screws[d:], resist[d:], torque[d:]):
                return k
        above = _joint_pose(k, nodes, poses, data, bottom, pose)
        if above >= 0:
            add_to_parent(pose, own, _rigid_body(above, nodes, data), half)
    place_bodies(True, a, front)
    return -1


@_fused
def place_bodies(solve, a, front):
    """Accelerations of rigid clusters, and of their joints if `solve`, after the pass of `solve_reduced` to the base.

    Without it, they follow from the accelerations of the joints.
    """
    joints, clusters, scratch = a.joints, a.clusters, a.scratch
    nodes, data, poses, groups = clusters.nodes, clusters.data, joints.poses, joints.groups
    screws, qdd, order, top, bottom = joints.screws, joints.qdd, front.stack, front.top, front.bottom
    pose = scratch.poses[0]
    for i in range(int(front.numbers[col.COMPUTED]) - 1, -1, -1):
        k = order[i]
        kind = nodes[k, col.KIND]
        if kind in (col.SUM, col.LOOP):
            continue
        own = _rigid_body(top[nodes[k, col.RIGHT]], nodes, data)
        acceleration = own[col.ACCELERATION : col.ACCELERATION + 6]
        above = _joint_pose(k, nodes, poses, data, bottom, pose)
        if above >= 0:
            o = col.ACCELERATION
            to_child(pose, _rigid_body(above, nodes, data)[o : o + 6], acceleration)
        else:
            to_child(pose, clusters.world, acceleration)
        freedoms, d, single = joint_freedoms(kind, nodes[k, col.GROUP], joints)
        if freedoms == 0:
            continue
        ball = freedoms > 1 and single >= 0
        c = 5 if single == LINK_HINGE else 2
        if solve and freedoms == 1:
            x = own[col.AXIS_TORQUE]
            for j in range(6):
                x -= own[col.AXIS_ROW + j] * acceleration[j]
            qdd[d] = x * own[col.AXIS_INVERSE]
        if solve and freedoms > 1:
            substitute_dofs(d, freedoms, ball, acceleration, _gain(k, clusters), screws, qdd)
        elif freedoms == 1:
            acceleration[c] += qdd[d]
        else:
            for n in range(groups[nodes[k, col.GROUP], col.DOFS]):
                if ball:
                    acceleration[3 + n] += qdd[d + n]
                else:
                    for j in range(6):
                        acceleration[j] += screws[d + n, j] * qdd[d + n]


@_fused
def place_children(k, a):
    """Accelerations of the children of a rigid cluster; of MERGE, WELD or ROOT."""
    nodes, data, poses, spare = a.clusters.nodes, a.clusters.data, a.joints.poses, a.scratch.poses[0]
    kind, left, o = nodes[k, col.KIND], nodes[k, col.LEFT], col.ACCELERATION
    right = _rigid_body(nodes[k, col.RIGHT], nodes, data)[o : o + 6]
    if kind == col.ROOT:
        to_child(poses[nodes[k, col.GROUP]], a.clusters.world, right)
        return
    own, other = _rigid_body(k, nodes, data), _rigid_body(left, nodes, data)
    for i in range(o, o + 6):
        other[i] = own[i]
    if kind == col.WELD:
        set_identity(spare)
    elif nodes[left, col.HANDLES] == 2:
        at = nodes[left, col.START] + col.SPAN
        compose(data[at : at + 12], poses[nodes[k, col.GROUP]], spare)
    else:
        copy_pose(poses[nodes[k, col.GROUP]], spare)
    to_child(spare, own[o : o + 6], right)


# --- what rigid clusters miss


@_fused
def _top_acceleration(k, nodes, data, wide, out):
    """Acceleration of the top handle of a cluster with all joints free; returns the size of its terms."""
    size = 0.0
    h, w = wide_row(k, nodes, wide.table)
    if w >= 0:
        n, o, at = 6 * h, wide.table[w, col.RECORD], wide.table[w, col.FORCES]
        for i in range(6):
            out[i] = wide.data[o + n * n + i]
            size = max(size, abs(out[i]))
            for j in range(n):
                x = wide.data[o + n * i + j] * wide.forces[at + j]
                out[i] += x
                size = max(size, abs(x))
        return size
    o = nodes[k, col.START]
    at = o - col.BEFORE
    for i in range(6):
        out[i] = data[o + col.BIAS + i]
        size = max(size, abs(out[i]))
        for j in range(6):
            x = data[o + col.PHI + 6 * i + j] * data[at + j]
            out[i] += x
            size = max(size, abs(x))
        if nodes[k, col.HANDLES] == 2:
            for j in range(6):
                x = data[o + col.PHI12 + 6 * i + j] * data[at + 6 + j]
                out[i] += x
                size = max(size, abs(x))
    return size


@_fused
def _inner_energy(k, nodes, data, scratch, out):
    """Energy of the motion in a cluster, besides the acceleration that it would have if it were rigid, which is `out`.

    An upper bound: round-off is added. Loops have none of it.
    """
    o = nodes[k, col.START]
    at = o - col.BEFORE
    energy, terms = data[at + col.ENERGY], data[at + col.ENERGY_TERMS]
    handles = nodes[k, col.HANDLES]
    if handles == 0:
        return max(energy, 0.0) + ENERGY_ROUND_OFF * terms
    wrench, inverse = scratch.poses[1], scratch.matrices[col.SPARE + 2].reshape(36)
    if handles == 2:
        to_parent(data[o + col.SPAN : o + col.SPAN + 12], data[at + 6 : at + 12], wrench)
    for i in range(6):
        x = data[at + col.RIGID_WRENCH + i] + data[at + i]
        wrench[i] = x + wrench[i] if handles == 2 else x
    whole, low = scratch.matrices[col.SPARE].reshape(36), scratch.matrices[col.SPARE + 1]
    invert_inertia(data[at + col.RIGID_INERTIA : at + col.RIGID_WRENCH], 1, whole, low, inverse)
    for i in range(6):
        x = 0.0
        for j in range(6):
            x += inverse[6 * i + j] * wrench[j]
        out[i] = x
    if nodes[k, col.ROWS] == 0:
        return 0.0
    for part in range(handles):
        phi, f = o + col.HANDLE_STRIDE * part, at + 6 * part
        for i in range(6):
            x = 2.0 * data[phi + col.BIAS + i]
            size = abs(x)
            for j in range(6):
                y = data[phi + col.PHI + 6 * i + j] * data[f + j]
                if part == 1:
                    y += 2.0 * data[o + col.PHI12 + 6 * j + i] * data[at + j]
                x += y
                size += abs(y)
            energy += x * data[f + i]
            terms += size * abs(data[f + i])
    for i in range(6):
        x = wrench[i] * out[i]
        energy -= x
        terms += abs(x)
    return max(energy, 0.0) + ENERGY_ROUND_OFF * terms


@_fused
def error_in_places(total, k, unit, a, wide, scratch):
    """Bound on the difference of accelerations of bodies in a rigid cluster, m/s^2.

    Args:
        total: its total acceleration.
        k: its node.
        unit: of slides in it, m per radian.
        a, wide: arrays.
        scratch: those of `a`.
    """
    nodes, data, extent = a.clusters.nodes, a.clusters.data, a.leaves.extent[k]
    if extent < 0.0:  # no body whose place counts
        return 0.0
    other, size = scratch.poses[2], 0.0
    if wide is not None:
        # joints move a body by their own accelerations times the distance to it
        if total > 0.0:
            size = math.sqrt(nodes[k, col.LEVELS] * total) * max(2.0 * extent, unit)
        if nodes[k, col.HANDLES] > 0:
            size += _ROUND_OFF * _top_acceleration(k, nodes, data, wide, other) * (1.0 + extent)
    else:
        size = math.sqrt(_inner_energy(k, nodes, data, scratch, other) * a.leaves.mobility[k])
    if nodes[k, col.HANDLES] == 0:
        return size
    return size + _lever_motion(_rigid_body(k, nodes, data), other, extent)


@_fused
def _lever_motion(row, other, extent):
    """Largest difference, within `extent` of a frame, of the acceleration in a row of the recursion and another."""
    o = col.ACCELERATION
    x, y, z = row[o] - other[0], row[o + 1] - other[1], row[o + 2] - other[2]
    u, v, w = row[o + 3] - other[3], row[o + 4] - other[4], row[o + 5] - other[5]
    return math.sqrt(x * x + y * y + z * z) + extent * math.sqrt(u * u + v * v + w * w)


@_fused
def error_in_energy(k, a, scratch):
    """Energy of the difference of accelerations in a rigid cluster; no loops."""
    nodes, data = a.clusters.nodes, a.clusters.data
    rigid, off = scratch.poses[2], scratch.poses[2, 6:]
    energy = _inner_energy(k, nodes, data, scratch, rigid)
    if nodes[k, col.HANDLES] == 0:
        return energy
    own, at = _rigid_body(k, nodes, data), nodes[k, col.START] - col.BEFORE
    for i in range(6):
        off[i] = own[col.ACCELERATION + i] - rigid[i]
    whole = scratch.matrices[col.SPARE].reshape(36)
    expand_inertia(data[at + col.RIGID_INERTIA : at + col.RIGID_WRENCH], whole)
    for i in range(6):
        for j in range(6):
            energy += off[i] * whole[6 * i + j] * off[j]
    return energy
