"""Kernels of the assembly tree: clusters from their children, and forces and accelerations back down.

`nodes`, `groups`: see `packing.py`. `data` holds the records of all clusters one after the other: inverse inertia and
bias at their handles (RL05 Eq. 1), and the rows of their total acceleration (see `_metric.py`). `joints` holds what
back-substitution needs, one row per node above the leaves.

Handles have the frames of their groups. With E the change of motions from the parent's frame to the child's, f the
force through the joint on the child, g1 and g2 those on the handles of the merged cluster:

    r = b1 of B - E b2 of A - E Phi21 of A g1 + Phi12 of B g2,   qdd = s Q + U r,   f = U^T Q - W r

r and f are kept as matrices that act on [g1, g2, 1].
"""

import math

from pliant.compilation import njit
from pliant.engines.quasistatic._elimination import eliminate, keep
from pliant.engines.quasistatic._joint_kernels import seen, to_child, to_parent
from pliant.engines.quasistatic._metric import ROW_SPACE, F, R, total_rows
from pliant.engines.quasistatic._vectors import WIDTH, combine
from pliant.engines.quasistatic.assembly import LEAF, ROOT, SUM, WELD

_jit = njit(error_model="numpy", nogil=True, fastmath={"contract"})

# columns of joints: W, U, U^T Q, s Q, r without forces on handles
JOINT_COLUMNS = 90
# scratch for matrices: D, s, W, U, a vector, five for `eliminate`
MATRICES = 10


@_jit
def leaf(k, nodes, leaves, wrench, data):
    """A rigid body: Phi = M^-1, b = Phi times the wrench on it."""
    o = nodes[k, 6]
    for i in range(36):
        data[o + i] = leaves[k, i]
    for i in range(6):
        total = 0.0
        for j in range(6):
            total += leaves[k, 6 * i + j] * wrench[j]
        data[o + 36 + i] = total


@_jit
def merge(
    k,
    count,
    nodes,
    groups,
    primitives,
    data,
    joints,
    poses,
    screws,
    resist,
    torque,
    weights,
    world,
    m,
    rows,
    spare,
):
    """The cluster of node k from those of its children; False if the screws of its joint are dependent.

    Args:
        count: number of leaves.
        poses, screws, resist, torque, weights: per group its pose in the parent; per dof the rest.
        world: acceleration of the world, minus gravity.
        m, rows, spare: scratch, (MATRICES, 6, 6), (ROW_SPACE, WIDTH), (ROW_SPACE,).
    """
    kind, left, right, g = nodes[k, 0], nodes[k, 1], nodes[k, 2], nodes[k, 4]
    start = nodes[k, 6]
    if kind == SUM:
        a, b = nodes[left, 6], nodes[right, 6]
        data[start] = math.hypot(
            data[a] if nodes[left, 7] > 0 else 0.0, data[b] if nodes[right, 7] > 0 else 0.0
        )
        return True
    joint = joints[k - count]
    d, s, w, u, pose = m[0], m[1], m[2], m[3], rows[ROW_SPACE - 1]
    handles, hb, ob = nodes[k, 5], nodes[right, 5], nodes[right, 6]
    last = 6 * handles
    if kind == WELD:
        for i in range(12):
            pose[i] = 0.0
        pose[0], pose[4], pose[8] = 1.0, 1.0, 1.0
    else:
        for i in range(12):
            pose[i] = poses[g, i]

    # what meets at the joint, in the frame of the child; r as a function of [g1, g2, 1]
    for i in range(6):
        for j in range(WIDTH):
            rows[R + i, j] = 0.0
        for j in range(6):
            d[i, j] = data[ob + 6 * i + j]
    oa = 0
    if kind == ROOT:
        to_child(pose, world, m[4, 0])
    else:
        ha = nodes[left, 5]
        oa = nodes[left, 6]
        at = oa if ha == 1 else oa + 42
        _meet(pose, data, at, d, rows)
        if ha == 2:
            _across(pose, data, oa + 84, rows)
        to_child(pose, data[at + 36 : at + 42], m[4, 0])
    second = ob
    if handles == 2:
        phi = ob
        if hb == 2:
            second, phi = ob + 42, ob + 84
        for i in range(6):
            for j in range(6):
                rows[R + i, 6 + j] = data[phi + 6 * i + j]
    elif handles == 0:
        for i in range(6):
            for j in range(6):
                rows[R + i, j] = 0.0
    for i in range(6):
        x = data[ob + 36 + i] - m[4, 0, i]
        joint[84 + i] = x
        rows[R + i, last] = x

    freedoms, dof, single = 0, 0, 0
    if kind != WELD:
        freedoms, dof = groups[g, 4], groups[g, 3]
        single = primitives[groups[g, 1], 0] if groups[g, 2] == 1 else -1
    if not eliminate(d, freedoms, single, screws[dof:], resist[dof:], w, u, s, m[5:10]):
        return False
    keep(w, u, s, freedoms, torque, dof, joint)
    # f as a function of [g1, g2, 1]
    for i in range(6):
        combine(rows, F + i, m, 72 + 6 * i, R, -1.0)
        rows[F + i, last] += joint[72 + i]
    if handles > 0:
        _handles(data, start, oa, second, handles, rows, m)
    total_rows(k, kind, nodes, data, joint, freedoms, weights, dof, pose, rows, m, spare)
    return True


@_jit
def _meet(x, data, o, d, rows):
    """Add E Phi E^T to d, and put -E Phi into the first columns of r; Phi the symmetric matrix at o."""
    for i in range(6):
        e0, e1, e2, e3, e4, e5 = seen(
            x, data[o], data[o + 1], data[o + 2], data[o + 3], data[o + 4], data[o + 5]
        )
        rows[R, i], rows[R + 1, i], rows[R + 2, i] = -e0, -e1, -e2
        rows[R + 3, i], rows[R + 4, i], rows[R + 5, i] = -e3, -e4, -e5
        o += 6
    for i in range(6):
        r = rows[R + i]
        e0, e1, e2, e3, e4, e5 = seen(x, r[0], r[1], r[2], r[3], r[4], r[5])
        d[i, 0] -= 0.5 * e0
        d[i, 1] -= 0.5 * e1
        d[i, 2] -= 0.5 * e2
        d[i, 3] -= 0.5 * e3
        d[i, 4] -= 0.5 * e4
        d[i, 5] -= 0.5 * e5
        d[0, i] -= 0.5 * e0
        d[1, i] -= 0.5 * e1
        d[2, i] -= 0.5 * e2
        d[3, i] -= 0.5 * e3
        d[4, i] -= 0.5 * e4
        d[5, i] -= 0.5 * e5


@_jit
def _across(x, data, o, rows):
    """Put -E Phi21 into the first columns of r; Phi12 the matrix at o."""
    for i in range(6):
        e0, e1, e2, e3, e4, e5 = seen(
            x, data[o], data[o + 1], data[o + 2], data[o + 3], data[o + 4], data[o + 5]
        )
        rows[R, i], rows[R + 1, i], rows[R + 2, i] = -e0, -e1, -e2
        rows[R + 3, i], rows[R + 4, i], rows[R + 5, i] = -e3, -e4, -e5
        o += 6


@_jit
def _handles(data, start, first, second, handles, rows, m):
    """Inverse inertia and bias at the handles (RL05 Eqs. 2, 6, 7): those of the children, and r^T f."""
    last = 6 * handles
    for i in range(6):
        for n in range(6):
            m[4, 0, n] = rows[R + n, i]
        combine(rows, 0, m, 144, F, 1.0)
        data[start + 36 + i] = data[first + 36 + i] + rows[0, last]
        for j in range(i, 6):
            x = data[first + 6 * i + j] + rows[0, j]
            data[start + 6 * i + j] = x
            data[start + 6 * j + i] = x
        if handles == 2:
            for j in range(6):
                data[start + 84 + 6 * i + j] = rows[0, 6 + j]
    if handles == 2:
        for i in range(6):
            for n in range(6):
                m[4, 0, n] = rows[R + n, 6 + i]
            combine(rows, 0, m, 144, F, 1.0)
            data[start + 78 + i] = data[second + 36 + i] + rows[0, 12]
            for j in range(i, 6):
                x = data[second + 6 * i + j] + rows[0, 6 + j]
                data[start + 42 + 6 * i + j] = x
                data[start + 42 + 6 * j + i] = x


@_jit
def back(k, count, nodes, groups, data, joints, poses, forces, qdd, spare):
    """Acceleration of the joint of node k, and the forces on the handles of its children (RL05 Eqs. 3-4).

    Returns the size of the terms that an acceleration is the sum of: what round-off is relative to.
    """
    kind, left, right, g = nodes[k, 0], nodes[k, 1], nodes[k, 2], nodes[k, 4]
    size = 0.0
    if kind == SUM:
        return size
    handles, hb = nodes[k, 5], nodes[right, 5]
    joint, r, f = joints[k - count], spare[0], spare[1]
    for i in range(6):
        r[i] = joint[84 + i]
    if handles == 2:
        phi = nodes[right, 6] + (84 if hb == 2 else 0)
        for i in range(6):
            total = 0.0
            for j in range(6):
                total += data[phi + 6 * i + j] * forces[k, 6 + j]
            r[i] += total
    if handles > 0:
        ha = nodes[left, 5]
        phi = nodes[left, 6] + (84 if ha == 2 else 0)
        for i in range(6):
            total = 0.0
            for j in range(6):
                total += data[phi + 6 * j + i] * forces[k, j]
            f[i] = total
        if kind != WELD:
            to_child(poses[g], f, f)
        for i in range(6):
            r[i] -= f[i]
    if kind != WELD:
        dof = groups[g, 3]
        for i in range(groups[g, 4]):
            total = joint[78 + i]
            terms = abs(total)
            for j in range(6):
                x = joint[36 + 6 * i + j] * r[j]
                total += x
                terms += abs(x)
            qdd[dof + i] = total
            size = max(size, terms)
    for i in range(6):
        total = joint[72 + i]
        for j in range(6):
            total -= joint[6 * i + j] * r[j]
        f[i] = total
    if nodes[right, 0] != LEAF:
        out = forces[right]
        for i in range(6):
            out[i] = f[i]
        if handles == 2:
            at = 6 if hb == 2 else 0
            for i in range(6):
                out[at + i] = forces[k, 6 + i] + (f[i] if hb == 1 else 0.0)
    if kind != ROOT and nodes[left, 0] != LEAF:
        if kind != WELD:
            to_parent(poses[g], f, f)
        out = forces[left]
        at = 6 if nodes[left, 5] == 2 else 0
        for i in range(6):
            out[i] = forces[k, i]
        for i in range(6):
            out[at + i] = (0.0 if at == 6 else out[i]) - f[i]
    return size
