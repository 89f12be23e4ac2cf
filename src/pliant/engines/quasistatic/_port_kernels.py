"""Kernels for clusters with any number of handles, and for loops: plain dense algebra (see `ports.py`).

With x the forces on all handles of both children and J the motion that the joint sees, as a function of theirs:

    r = J (Phi x + b) + what is given,   D = J Phi J^T,   f = U^T Q - W r,   x = x of the handles left + J^T f

as in `_kernels`, of which this is the general case. A LOOP has one child, whose handles meet: J compares two of them,
and D, which may be singular (a planar loop holds itself in its plane), is inverted on as many rows as geometry says are
independent (`redundancy.py`). What is given then asks for the gap to be closed in one step.
"""

import math

from pliant.compilation import njit
from pliant.engines.quasistatic._elimination import eliminate, keep
from pliant.engines.quasistatic._joint_kernels import to_child
from pliant.engines.quasistatic._loop_kernels import invert, meet, sight
from pliant.engines.quasistatic.assembly import LEAF, LOOP, ROOT, SUM, WELD

_jit = njit(error_model="numpy", nogil=True, fastmath={"contract"})


@_jit
def _record(k, nodes, wide):
    """Number of handles of a node, and its row in the table if its record is wide, else -1."""
    w = nodes[k, 9]
    if w >= 0 and wide.table[w, 1] == 1:
        return wide.table[w, 0], w
    return nodes[k, 5], -1


@_jit
def _fetch(k, at, nodes, data, wide, phi, b):
    """Inverse inertia and bias of a cluster into a block of `phi` and `b`; its number of handles."""
    h, w = _record(k, nodes, wide)
    n, first = 6 * h, 6 * at
    if w >= 0:
        o = wide.table[w, 4]
        for i in range(n):
            for j in range(n):
                phi[first + i, first + j] = wide.data[o + n * i + j]
            b[first + i] = wide.data[o + n * n + i]
        return h
    o = nodes[k, 6]
    for part in range(h):
        for i in range(6):
            for j in range(6):
                phi[first + 6 * part + i, first + 6 * part + j] = data[o + 42 * part + 6 * i + j]
            b[first + 6 * part + i] = data[o + 42 * part + 36 + i]
    if h == 2:
        for i in range(6):
            for j in range(6):
                x = data[o + 84 + 6 * i + j]
                phi[first + i, first + 6 + j] = x
                phi[first + 6 + j, first + i] = x
    return h


@_jit
def merge_wide(
    k, count, nodes, groups, primitives, data, joints, poses, screws, resist, torque, weights, world, m, wide
):
    """The cluster of node k from those of its children, whatever their handles; arguments as in `_kernels.merge`."""
    kind, left, right, g = nodes[k, 0], nodes[k, 1], nodes[k, 2], nodes[k, 4]
    row = wide.table[nodes[k, 9]]
    h, joint = row[0], joints[k - count]
    phi, b, seen, given = wide.phi, wide.bias, wide.seen, wide.given
    n = 0
    for i in range(phi.shape[0]):
        for j in range(phi.shape[0]):
            phi[i, j] = 0.0
    if left >= 0:
        n = _fetch(left, 0, nodes, data, wide, phi, b)
    middle = n
    n = 6 * (n + _fetch(right, n, nodes, data, wide, phi, b))
    # the handles that the joint sees, of all those fetched
    first, second = row[2], row[3] if row[3] < 0 else row[3] + middle
    if kind == LOOP:
        meet(k, nodes, data, poses, world, wide, given)
    elif kind != SUM:
        pose = wide.frames[0]
        for i in range(12):
            pose[i] = 0.0 if kind == WELD else poses[g, i]
        if kind == WELD:
            pose[0], pose[4], pose[8] = 1.0, 1.0, 1.0
        sight(pose, -1.0, wide.sight[0])
        for i in range(6):
            given[i] = 0.0
            for j in range(6):
                wide.sight[1, i, j] = 1.0 if i == j else 0.0
        if kind == ROOT:
            to_child(pose, world, wide.vector)
            for i in range(6):
                given[i] = -wide.vector[i]
    freedoms, dof = 0, 0
    if kind != SUM:
        d, s, w, u = m[0], m[1], m[2], m[3]
        # J Phi and D; r without forces
        for i in range(6):
            r = given[i]
            for j in range(n):
                seen[i, j] = 0.0
            for side in range(2):
                at = first if side == 0 else second
                if at >= 0:
                    for e in range(6):
                        x = wide.sight[side, i, e]
                        if x != 0.0:
                            r += x * b[6 * at + e]
                            for j in range(n):
                                seen[i, j] += x * phi[6 * at + e, j]
            joint[84 + i] = r
        for i in range(6):
            for j in range(6):
                total = 0.0
                for side in range(2):
                    at = first if side == 0 else second
                    if at >= 0:
                        for e in range(6):
                            total += seen[i, 6 * at + e] * wide.sight[side, j, e]
                d[i, j] = total
        for i in range(6):
            for j in range(i):
                d[i, j] = d[j, i] = 0.5 * (d[i, j] + d[j, i])
        if kind == LOOP:
            loop = row[9]
            if not invert(d, wide.unit[0], wide.rank[loop], w, m[5], wide.order, wide.limits[loop]):
                wide.stale[0] = 1
        else:
            single = 0
            if kind != WELD:
                freedoms, dof = groups[g, 4], groups[g, 3]
                single = primitives[groups[g, 1], 0] if groups[g, 2] == 1 else -1
            if not eliminate(d, freedoms, single, screws[dof:], resist[dof:], w, u, s, m[5:10]):
                return False
        keep(w, u, s, freedoms, torque, dof, joint)
    _keep(k, kind, h, middle, nodes, data, joint, wide)
    _wide_rows(k, kind, h, middle, first, second, freedoms, dof, nodes, data, joint, weights, wide)
    return True


@_jit
def _keep(k, kind, h, middle, nodes, data, joint, wide):
    """Inverse inertia and bias at the handles left, and f and r as functions of the forces on them."""
    row, phi, b, seen, force = wide.table[nodes[k, 9]], wide.phi, wide.bias, wide.seen, wide.force
    columns = 6 * h
    place = wide.place  # of every handle left, its first row among all
    for i in range(h):
        x = wide.source[row[8] + i]
        place[i] = 6 * (x if x < 1000 else x - 1000 + middle)
    o = row[6]
    for i in range(6):
        for c in range(columns):
            x = 0.0 if kind == SUM else seen[i, place[c // 6] + c % 6]
            wide.data[o + columns * i + c] = x
    for i in range(36):
        wide.data[o + 6 * columns + i] = wide.sight[0, i // 6, i % 6]
        wide.data[o + 6 * columns + 36 + i] = wide.sight[1, i // 6, i % 6]
    # f = force [g; 1]
    for i in range(6):
        for c in range(columns + 1):
            total = 0.0
            if kind != SUM:
                if c == columns:
                    total = joint[72 + i]
                for j in range(6):
                    x = joint[84 + j] if c == columns else wide.data[o + columns * j + c]
                    total -= joint[6 * i + j] * x
            force[i, c] = total
    for i in range(columns):
        at = place[i // 6] + i % 6
        for c in range(columns + 1):
            x = b[at] if c == columns else phi[at, place[c // 6] + c % 6]
            if kind != SUM:
                for j in range(6):
                    x += seen[j, at] * force[j, c]
            wide.result[i, c] = x
    if row[1] == 1:
        o = row[4]
        for i in range(columns):
            for c in range(columns):
                wide.data[o + columns * i + c] = 0.5 * (wide.result[i, c] + wide.result[c, i])
            wide.data[o + columns * columns + i] = wide.result[i, columns]
        return
    o = nodes[k, 6]
    for part in range(h):
        for i in range(6):
            for j in range(6):
                x = 0.5 * (wide.result[6 * part + i, 6 * part + j] + wide.result[6 * part + j, 6 * part + i])
                data[o + 42 * part + 6 * i + j] = x
            data[o + 42 * part + 36 + i] = wide.result[6 * part + i, columns]
    if h == 2:
        for i in range(6):
            for j in range(6):
                data[o + 84 + 6 * i + j] = wide.result[i, 6 + j]


@_jit
def _wide_rows(k, kind, h, middle, first, second, freedoms, dof, nodes, data, joint, weights, wide):
    """Rows of the total acceleration in terms of the forces on the handles left (see `_metric.total_rows`)."""
    row, rows, force, place = wide.table[nodes[k, 9]], wide.rows, wide.force, wide.place
    columns = 6 * h + 1
    n = 0
    for side in range(2):
        child = nodes[k, 1 + side]
        if child < 0 or nodes[child, 0] == LEAF:
            continue
        hc, w = _record(child, nodes, wide)
        source, at = data, nodes[child, 6] + (0 if hc == 0 else (42 if hc == 1 else 132))
        if w >= 0:
            source, at = wide.data, wide.table[w, 5]
        begin = 0 if side == 0 else 6 * middle
        for _ in range(nodes[child, 7]):
            for c in range(columns - 1):
                x = place[c // 6] - begin
                rows[n, c] = source[at + x + c % 6] if 0 <= x < 6 * hc else 0.0
            rows[n, columns - 1] = source[at + 6 * hc]
            if kind != SUM:
                for end in range(2):
                    x = 6 * (first if end == 0 else second) - begin
                    if 0 <= x < 6 * hc and (first if end == 0 else second) >= 0:
                        for i in range(6):
                            total = 0.0
                            for j in range(6):
                                total += wide.sight[end, i, j] * source[at + x + j]
                            for c in range(columns):
                                rows[n, c] += total * force[i, c]
            at += 6 * hc + 1
            n += 1
    o = row[6]
    for q in range(freedoms):
        weight = weights[dof + q]
        for c in range(columns):
            total = joint[78 + q] if c == columns - 1 else 0.0
            for i in range(6):
                x = joint[84 + i] if c == columns - 1 else wide.data[o + (columns - 1) * i + c]
                total += joint[36 + 6 * q + i] * x
            rows[n, c] = weight * total
        n += 1
    if n > columns:
        _triangle(rows, n, columns)
        n = columns
    target, o = data, nodes[k, 6] + (0 if h == 0 else (42 if h == 1 else 132))
    if row[1] == 1:
        target, o = wide.data, row[5]
    for i in range(n):
        for c in range(columns):
            target[o + columns * i + c] = rows[i, c]


@_jit
def _triangle(a, n, columns):
    """Householder: `a` (n, columns) upper triangular, up to an orthogonal factor from the left."""
    for k in range(columns):
        size = 0.0
        for i in range(k, n):
            size += a[i, k] * a[i, k]
        if size == 0.0:
            continue
        size = math.sqrt(size)
        alpha = -size if a[k, k] > 0.0 else size
        a[k, k] -= alpha
        beta = 1.0 / (alpha * a[k, k])
        for j in range(k + 1, columns):
            total = 0.0
            for i in range(k, n):
                total += a[i, k] * a[i, j]
            total *= beta
            for i in range(k, n):
                a[i, j] += total * a[i, k]
        for i in range(k + 1, n):
            a[i, k] = 0.0
        a[k, k] = alpha


@_jit
def back_wide(k, count, nodes, groups, joints, forces, qdd, wide):
    """Acceleration of the joint of node k and the forces on its children's handles; see `_kernels.back`."""
    kind, left, right, g = nodes[k, 0], nodes[k, 1], nodes[k, 2], nodes[k, 4]
    row = wide.table[nodes[k, 9]]
    h, joint, r, f = row[0], joints[k - count], wide.given, wide.vector
    size, columns, o = 0.0, 6 * row[0], row[6]
    own = wide.forces[row[7] : row[7] + columns]
    if row[1] == 0:
        for i in range(columns):
            own[i] = forces[k, i]
    if kind != SUM:
        for i in range(6):
            total = joint[84 + i]
            for c in range(columns):
                total += wide.data[o + columns * i + c] * own[c]
            r[i] = total
        if g >= 0:
            for i in range(groups[g, 4]):
                total = joint[78 + i]
                terms = abs(total)
                for j in range(6):
                    x = joint[36 + 6 * i + j] * r[j]
                    total += x
                    terms += abs(x)
                qdd[groups[g, 3] + i] = total
                size = max(size, terms)
        for i in range(6):
            total = joint[72 + i]
            for j in range(6):
                total -= joint[6 * i + j] * r[j]
            f[i] = total
    for side in range(2):
        child = left if side == 0 else right
        if child < 0 or nodes[child, 0] == LEAF:
            continue
        hc, w = _record(child, nodes, wide)
        out = forces[child]
        if w >= 0:
            out = wide.forces[wide.table[w, 7] : wide.table[w, 7] + 6 * hc]
        for i in range(6 * hc):
            out[i] = 0.0
        for i in range(h):
            x = wide.source[row[8] + i] - 1000 * side
            if 0 <= x < 1000:
                for j in range(6):
                    out[6 * x + j] += own[6 * i + j]
        for end in range(2):
            at = row[2 + end]
            if at < 0 or kind == SUM or (kind != LOOP and end != side):
                continue
            for j in range(6):
                total = 0.0
                for i in range(6):
                    total += wide.data[o + 6 * columns + 36 * end + 6 * i + j] * f[i]
                out[6 * at + j] += total
    return size


@_jit
def total_wide(k, nodes, wide):
    """Total acceleration of a cluster whose record is wide, under the forces on its handles."""
    row = wide.table[nodes[k, 9]]
    columns, o, at = 6 * row[0] + 1, row[5], row[7]
    out = 0.0
    for _ in range(nodes[k, 7]):
        x = wide.data[o + columns - 1]
        for i in range(columns - 1):
            x += wide.data[o + i] * wide.forces[at + i]
        out += x * x
        o += columns
    return out
