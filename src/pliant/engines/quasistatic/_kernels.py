"""Kernels of the assembly tree: clusters from their children, and forces and accelerations back down.

`nodes`, `groups`: see `packing.py`. `data` holds the records of all clusters one after the other: inverse inertia and
bias at their handles (RL05 Eq. 1) and the rows L of their total acceleration, `sum of (weight qdd)^2 = |L [f; 1]|^2`
over the joints inside, f the forces on the handles. RL05 Eqs. 8-9 keep the square instead; it loses half the digits,
and near an equilibrium all of them. `joints` holds what back-substitution needs, one row per node above the leaves.

Handles have the frames of their groups. With E the change of motions from the parent's frame to the child's, f the
force through the joint on the child, g1 and g2 those on the handles of the merged cluster:

    Y = E Phi21 of A,  Z = Phi12 of B,  r = b1 of B - E b2 of A - Y g1 + Z g2
    qdd = s Q + U r,  f = U^T Q - W r
"""

import math

from numba import njit

from pliant.engines.quasistatic._elimination import eliminate
from pliant.engines.quasistatic._joint_kernels import compose, to_child, to_parent
from pliant.engines.quasistatic.assembly import LEAF, ROOT, SUM, WELD

_jit = njit(cache=True, error_model="numpy", nogil=True)

# columns of joints: W, U, U^T Q, s Q, r without forces on handles
JW, JU, JT, JQ, JR = 0, 36, 72, 78, 84
JOINT_COLUMNS = 90
# what `scratch` holds: matrices, rows of the total acceleration, poses
MATRICES, ROW_SPACE = 16, 34
# columns of loads: leaf, force and torque (world axes), where that force acts (group's frame), wrench (group's axes)
LOAD_COLUMNS = 16


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
    k, count, nodes, groups, primitives, data, joints, poses, screws, resist, torque, weights, world, m, rows
):
    """The cluster of node k from those of its children; False if the screws of its joint are dependent.

    Args:
        count: number of leaves.
        poses, screws, resist, torque, weights: per group its pose in the parent; per dof the rest.
        world: acceleration of the world, minus gravity.
        m, rows: scratch, (MATRICES, 6, 6) and (ROW_SPACE, 13).
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
    w, u = joint[0:36].reshape((6, 6)), joint[36:72].reshape((6, 6))
    y, z, wy, wz, d, s, pose = m[0], m[1], m[2], m[3], m[4], m[5], m[6].reshape(36)[0:12]
    gamma, short = m[7, 0], m[7, 1]
    handles, ha, hb = nodes[k, 5], 0, nodes[right, 5]
    ob = nodes[right, 6]
    phi_b = data[ob : ob + 36].reshape((6, 6))
    oa = 0
    if kind == WELD:
        for i in range(12):
            pose[i] = 0.0
        pose[0], pose[4], pose[8] = 1.0, 1.0, 1.0
    else:
        for i in range(12):
            pose[i] = poses[g, i]

    # what meets at the joint, in the frame of the child
    for i in range(6):
        for j in range(6):
            d[i, j] = phi_b[i, j]
    if kind == ROOT:
        to_child(pose, world, short)
    else:
        ha = nodes[left, 5]
        oa = nodes[left, 6]
        at = oa if ha == 1 else oa + 42
        _times(pose, data[at : at + 36].reshape((6, 6)), y, wy)
        for i in range(6):
            to_child(pose, y[i], z[i])
        for i in range(6):
            for j in range(6):
                d[i, j] += 0.5 * (z[i, j] + z[j, i])
        if ha == 2:
            _times(pose, data[oa + 84 : oa + 120].reshape((6, 6)), y, wy)
        to_child(pose, data[at + 36 : at + 42], short)
    for i in range(6):
        joint[84 + i] = data[ob + 36 + i] - short[i]

    freedoms, dof, single = 0, 0, 0
    if kind != WELD:
        freedoms, dof = groups[g, 4], groups[g, 3]
        single = primitives[groups[g, 1], 0] if groups[g, 2] == 1 else -1
    if not eliminate(d, freedoms, single, screws[dof:], resist[dof:], w, u, s, m[8:13]):
        return False
    for i in range(6):
        total = 0.0
        for j in range(freedoms):
            total += u[j, i] * torque[dof + j]
        joint[72 + i] = total
        for j in range(6):
            total -= w[i, j] * joint[84 + j]
        gamma[i] = total
    for i in range(freedoms):
        total = 0.0
        for j in range(freedoms):
            total += s[i, j] * torque[dof + j]
        joint[78 + i] = total

    # RL05 Eqs. 2, 6, 7
    if handles > 0:
        _product(w, y, wy)
        _reduced(data[oa : oa + 36].reshape((6, 6)), y, wy, data[start : start + 36].reshape((6, 6)))
        for i in range(6):
            total = data[oa + 36 + i]
            for j in range(6):
                total -= y[j, i] * gamma[j]
            data[start + 36 + i] = total
    if handles == 2:
        second = ob
        if hb == 2:
            second = ob + 42
            phi = data[ob + 84 : ob + 120].reshape((6, 6))
            for i in range(6):
                for j in range(6):
                    z[i, j] = phi[i, j]
        else:
            for i in range(6):
                for j in range(6):
                    z[i, j] = phi_b[i, j]
        _product(w, z, wz)
        _reduced(
            data[second : second + 36].reshape((6, 6)), z, wz, data[start + 42 : start + 78].reshape((6, 6))
        )
        for i in range(6):
            total = data[second + 36 + i]
            for j in range(6):
                total += z[j, i] * gamma[j]
            data[start + 78 + i] = total
            for j in range(6):
                total = 0.0
                for n in range(6):
                    total += y[n, i] * wz[n, j]
                data[start + 84 + 6 * i + j] = total
    _total(k, kind, nodes, data, joint, u, freedoms, weights[dof:], pose, y, z, wy, wz, gamma, rows, m[13])
    return True


@_jit
def across(k, nodes, data, poses, extent, spare):
    """Pose of the bottom handle of node k in its top one, and how far from the top handle anything in it may be."""
    kind, left, right, g = nodes[k, 0], nodes[k, 1], nodes[k, 2], nodes[k, 4]
    if kind == ROOT:
        extent[k] = extent[right]
        return
    if kind in (SUM, WELD):
        extent[k] = max(extent[left], extent[right])
        return
    start, pose = nodes[k, 6], poses[g]
    if nodes[left, 5] == 2:
        o = nodes[left, 6]
        compose(data[o + 120 : o + 132], poses[g], spare)
        pose = spare
    extent[k] = max(extent[left], math.sqrt(pose[9] ** 2 + pose[10] ** 2 + pose[11] ** 2) + extent[right])
    if nodes[k, 5] == 2:
        if nodes[right, 5] == 2:
            o = nodes[right, 6]
            compose(pose, data[o + 120 : o + 132], data[start + 120 : start + 132])
        else:
            for i in range(12):
                data[start + 120 + i] = pose[i]


@_jit
def _times(pose, a, out, spare):
    """out = E a^T."""
    for i in range(6):
        to_child(pose, a[i], spare[i])
    for i in range(6):
        for j in range(6):
            out[i, j] = spare[j, i]


@_jit
def _product(a, b, out):
    for i in range(6):
        for j in range(6):
            total = 0.0
            for k in range(6):
                total += a[i, k] * b[k, j]
            out[i, j] = total


@_jit
def _reduced(a, y, wy, out):
    """a - y^T W y, symmetric."""
    for i in range(6):
        for j in range(i, 6):
            total = 0.0
            for k in range(6):
                total += y[k, i] * wy[k, j]
            out[i, j] = out[j, i] = a[i, j] - total


@_jit
def _total(k, kind, nodes, data, joint, u, freedoms, weights, pose, y, z, wy, wz, gamma, rows, spare):
    """Rows of the total acceleration of node k, in terms of the forces on its own handles.

    RL05 Eqs. 8-9 as a square root: rows of both children with their forces replaced, rows of the joint; where there
    are more rows than columns, an orthogonal transformation leaves as many as there are columns.
    """
    handles = nodes[k, 5]
    columns = 6 * handles + 1
    n = 0
    turned = spare[0]
    if kind != ROOT:
        child = nodes[k, 1]
        ha, count = nodes[child, 5], nodes[child, 7]
        at = nodes[child, 6] + (42 if ha == 1 else 132)
        for r in range(count):
            # forces on A: g1, and minus f at the joint; l E^T f = (E l) f
            o = at + r * (6 * ha + 1)
            to_child(pose, data[o + 6 * ha - 6 : o + 6 * ha], turned)
            _through(rows[n], handles, turned, -1.0, wy, wz, gamma)
            if handles > 0:
                for i in range(6):
                    rows[n, i] += data[o + i]
            rows[n, columns - 1] += data[o + 6 * ha]
            n += 1
    child = nodes[k, 2]
    hb, count = nodes[child, 5], nodes[child, 7]
    at = nodes[child, 6] + (42 if hb == 1 else 132)
    for r in range(count):
        # forces on B: f at the joint, and g2
        o = at + r * (6 * hb + 1)
        _through(rows[n], handles, data[o : o + 6], 1.0, wy, wz, gamma)
        if handles == 2:
            for i in range(6):
                rows[n, 6 + i] += data[o + 6 * hb - 6 + i]
        rows[n, columns - 1] += data[o + 6 * hb]
        n += 1
    for r in range(freedoms):
        # qdd = s Q + U (r - Y g1 + Z g2)
        total = joint[78 + r]
        for i in range(6):
            total += u[r, i] * joint[84 + i]
        rows[n, columns - 1] = weights[r] * total
        for i in range(6):
            if handles > 0:
                total = 0.0
                for j in range(6):
                    total -= u[r, j] * y[j, i]
                rows[n, i] = weights[r] * total
            if handles == 2:
                total = 0.0
                for j in range(6):
                    total += u[r, j] * z[j, i]
                rows[n, 6 + i] = weights[r] * total
        n += 1
    if n > columns:
        _triangle(rows, n, columns, spare.reshape(36))
        n = columns
    o = nodes[k, 6] + (0 if handles == 0 else (42 if handles == 1 else 132))
    for r in range(n):
        for i in range(columns):
            data[o + r * columns + i] = rows[r, i]


@_jit
def _through(row, handles, a, sign, wy, wz, gamma):
    """row = sign a f, with f = gamma + W Y g1 - W Z g2."""
    constant = 0.0
    for j in range(6):
        constant += a[j] * gamma[j]
    row[6 * handles] = sign * constant
    if handles > 0:
        for i in range(6):
            row[i] = 0.0
        for j in range(6):
            x = sign * a[j]
            for i in range(6):
                row[i] += x * wy[j, i]
    if handles == 2:
        for i in range(6, 12):
            row[i] = 0.0
        for j in range(6):
            x = sign * a[j]
            for i in range(6):
                row[6 + i] -= x * wz[j, i]


@_jit
def _triangle(a, n, columns, dots):
    """Householder: `a` (n, columns) upper triangular, the same up to an orthogonal factor from the left."""
    for k in range(columns):
        size = 0.0
        for i in range(k, n):
            size += a[i, k] * a[i, k]
        if size == 0.0:
            continue
        size = math.sqrt(size)
        alpha = -size if a[k, k] > 0.0 else size
        head = a[k, k] - alpha
        beta = 1.0 / (alpha * head)
        for j in range(k + 1, columns):
            dots[j] = head * a[k, j]
        for i in range(k + 1, n):
            x = a[i, k]
            for j in range(k + 1, columns):
                dots[j] += x * a[i, j]
        for j in range(k + 1, columns):
            dots[j] *= beta
            a[k, j] += head * dots[j]
        a[k, k] = alpha
        for i in range(k + 1, n):
            x = a[i, k]
            for j in range(k + 1, columns):
                a[i, j] += x * dots[j]
            a[i, k] = 0.0


@_jit
def total(k, nodes, data, force):
    """Total acceleration of a cluster under forces on its handles (RL05 Eq. 8), never negative."""
    handles = nodes[k, 5]
    columns = 6 * handles + 1
    o = nodes[k, 6] + (0 if handles == 0 else (42 if handles == 1 else 132))
    out = 0.0
    for _ in range(nodes[k, 7]):
        x = data[o + columns - 1]
        for i in range(columns - 1):
            x += data[o + i] * force[i]
        out += x * x
        o += columns
    return out


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


@_jit
def climb(k, nodes, data, poses, out, spare):
    """World pose of the top handle of node k: one product per level (RL05 section 5.1)."""
    for i in range(12):
        out[i] = 0.0
    out[0], out[4], out[8] = 1.0, 1.0, 1.0
    while nodes[k, 3] >= 0:
        p = nodes[k, 3]
        kind = nodes[p, 0]
        if kind == ROOT or (kind != WELD and kind != SUM and nodes[p, 2] == k):
            compose(poses[nodes[p, 4]], out, spare)
            left = nodes[p, 1]
            if kind != ROOT and nodes[left, 5] == 2:
                o = nodes[left, 6]
                compose(data[o + 120 : o + 132], spare, out)
            else:
                for i in range(12):
                    out[i] = spare[i]
        k = p


@_jit
def wrench(loads, first, turn, out):
    """The wrench on a group at world pose `turn`, in its frame: the rows of `loads` from `first` on that name its leaf.

    Returns the row after them.
    """
    k = loads[first, 0]
    for i in range(6):
        out[i] = 0.0
    row = first
    while row < loads.shape[0] and loads[row, 0] == k:
        x, y, z = loads[row, 7], loads[row, 8], loads[row, 9]
        f0, f1, f2 = loads[row, 1], loads[row, 2], loads[row, 3]
        t0, t1, t2 = loads[row, 4], loads[row, 5], loads[row, 6]
        fx = turn[0] * f0 + turn[3] * f1 + turn[6] * f2
        fy = turn[1] * f0 + turn[4] * f1 + turn[7] * f2
        fz = turn[2] * f0 + turn[5] * f1 + turn[8] * f2
        out[0] += fx + loads[row, 10]
        out[1] += fy + loads[row, 11]
        out[2] += fz + loads[row, 12]
        out[3] += turn[0] * t0 + turn[3] * t1 + turn[6] * t2 + y * fz - z * fy + loads[row, 13]
        out[4] += turn[1] * t0 + turn[4] * t1 + turn[7] * t2 + z * fx - x * fz + loads[row, 14]
        out[5] += turn[2] * t0 + turn[5] * t1 + turn[8] * t2 + x * fy - y * fx + loads[row, 15]
        row += 1
    return row
