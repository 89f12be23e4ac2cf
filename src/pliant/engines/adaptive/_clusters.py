"""Kernels of clusters: free accelerations and rigid motion of closed ones, free accelerations of open ones.

Acceleration forces of gravity are left out everywhere but at the world's joints: every frame falls freely. Motions of a
closed cluster that turns are relative to the rotation of a rigid body about the origin of its top handle: centrifugal
and gyroscopic forces are then wrenches on its bodies, linear in the products of its angular velocity.
"""

from pliant.compilation import njit
from pliant.engines.adaptive import arrays as col
from pliant.engines.adaptive._geometry import add_inertia, turn_back
from pliant.engines.quasistatic import arrays as qs
from pliant.engines.quasistatic.joints import (
    compose,
    copy_pose,
    primitive_pose,
    set_identity,
    to_child,
    to_parent,
)
from pliant.mechanism.links import LINK_BALL, LINK_SLIDE

_jit = njit(error_model="numpy", nogil=True, fastmath=False)
F = col.FORMS

# --- algebra


@_jit
def solve(a, n, count):
    """Solve for `count` right-hand sides in columns n on of `a`, in place, with partial pivoting."""
    for j in range(n):
        best = j
        for i in range(j + 1, n):
            if abs(a[i, j]) > abs(a[best, j]):
                best = i
        if best != j:
            for c in range(j, n + count):
                a[j, c], a[best, c] = a[best, c], a[j, c]
        inverse = 1.0 / a[j, j]
        for i in range(j + 1, n):
            x = a[i, j] * inverse
            if x != 0.0:
                for c in range(j + 1, n + count):
                    a[i, c] -= x * a[j, c]
        for c in range(n, n + count):
            a[j, c] *= inverse
        for c in range(j + 1, n):
            a[j, c] *= inverse
    for j in range(n - 1, 0, -1):
        for i in range(j):
            x = a[i, j]
            if x != 0.0:
                for c in range(n, n + count):
                    a[i, c] -= x * a[j, c]


@_jit
def expand(data, at, out):
    """Spatial inertia 6 x 6 from ten numbers of `data`."""
    m, x, y, z = data[at], data[at + 1], data[at + 2], data[at + 3]
    for i in range(6):
        for j in range(6):
            out[i, j] = 0.0
    out[0, 0] = out[1, 1] = out[2, 2] = m
    out[0, 4] = out[4, 0] = z
    out[0, 5] = out[5, 0] = -y
    out[1, 3] = out[3, 1] = -z
    out[1, 5] = out[5, 1] = x
    out[2, 3] = out[3, 2] = y
    out[2, 4] = out[4, 2] = -x
    k = at + 4
    for i in range(3):
        for j in range(i + 1):
            out[3 + i, 3 + j] = out[3 + j, 3 + i] = data[k]
            k += 1


@_jit
def products(w, out):
    """1 and the products of an angular velocity, (FORMS,)."""
    out[0] = 1.0
    out[1], out[2], out[3] = w[0] * w[0], w[1] * w[1], w[2] * w[2]
    out[4], out[5], out[6] = w[0] * w[1], w[0] * w[2], w[1] * w[2]


@_jit
def _centripetal(x, y, z, sign, out):
    """Rows 0 to 2 of `out`: acceleration `sign w x (w x r)` of a point, columns as in `products`."""
    for i in range(3):
        out[i, 0] = 0.0
    x, y, z = sign * x, sign * y, sign * z
    out[0, 1], out[1, 1], out[2, 1] = 0.0, -y, -z
    out[0, 2], out[1, 2], out[2, 2] = -x, 0.0, -z
    out[0, 3], out[1, 3], out[2, 3] = -x, -y, 0.0
    out[0, 4], out[1, 4], out[2, 4] = y, x, 0.0
    out[0, 5], out[1, 5], out[2, 5] = z, 0.0, x
    out[0, 6], out[1, 6], out[2, 6] = 0.0, z, y


@_jit
def rigid_forms(data, at, out):
    """Wrench of inertia on a rigid body that turns about its origin: columns 1 to 6 of `out` (6, 7), column 0 zero."""
    _centripetal(data[at + 1], data[at + 2], data[at + 3], -1.0, out)
    xx, xy, yy = data[at + 4], data[at + 5], data[at + 6]
    xz, yz, zz = data[at + 7], data[at + 8], data[at + 9]
    out[3, 0] = out[4, 0] = out[5, 0] = 0.0
    out[3, 1], out[4, 1], out[5, 1] = 0.0, xz, -xy
    out[3, 2], out[4, 2], out[5, 2] = -yz, 0.0, xy
    out[3, 3], out[4, 3], out[5, 3] = yz, -xz, 0.0
    out[3, 4], out[4, 4], out[5, 4] = -xz, yz, xx - yy
    out[3, 5], out[4, 5], out[5, 5] = xy, zz - xx, -yz
    out[3, 6], out[4, 6], out[5, 6] = yy - zz, -xy, xz


@_jit
def _turned_products(pose, out):
    """Products of an angular velocity in the axes of a frame at this pose, from those in the parent's, (7, 7)."""
    for i in range(F):
        out[0, i] = out[i, 0] = 0.0
    out[0, 0] = 1.0
    for k in range(6):
        i = k if k < 3 else (0 if k < 5 else 1)
        j = k if k < 3 else (1 if k == 3 else 2)
        for n in range(6):
            p = n if n < 3 else (0 if n < 5 else 1)
            q = n if n < 3 else (1 if n == 3 else 2)
            x = pose[3 * p + i] * pose[3 * q + j]
            if n >= 3:
                x += pose[3 * q + i] * pose[3 * p + j]
            out[1 + k, 1 + n] = x


# --- closed clusters


@_jit
def record(k, place, clusters, s):
    """Start of the record of a closed cluster or a leaf; that of a leaf is computed, at the end of `data`."""
    if clusters.start[k] >= 0:
        return clusters.start[k]
    data = clusters.data
    at = data.shape[0] - (1 + place) * col.ONE_HANDLE
    g = clusters.nodes[k, qs.GROUP]
    share = 1.0 / clusters.shares[g]
    for i in range(10):
        data[at + col.INERTIA + i] = share * clusters.inertia[g, i]
    a, forms = s.system, s.forms[0]
    expand(data, at + col.INERTIA, a)
    for i in range(6):
        for j in range(6):
            a[i, 6 + j] = 1.0 if i == j else 0.0
    solve(a, 6, 6)
    rigid_forms(data, at + col.INERTIA, forms)
    for i in range(6):
        forms[i, 0] = data[at + col.WRENCH + i] = clusters.wrenches[k, i]
        for j in range(6):
            data[at + col.PHI + 6 * i + j] = 0.5 * (a[i, 6 + j] + a[j, 6 + i])
    for i in range(6):
        for c in range(F):
            x = 0.0
            for j in range(6):
                x += data[at + col.PHI + 6 * i + j] * forms[j, c]
            data[at + col.BIAS + F * i + c] = x
    for c in range(F):
        for e in range(F):
            x = 0.0
            for i in range(6):
                x += forms[i, c] * data[at + col.BIAS + F * i + e]
            data[at + col.GAUSS + F * c + e] = x
    return at


@_jit
def _second(k, nodes):
    """Offset of the inverse inertia, bias and coupling of a cluster's bottom handle, the top one if it is the same."""
    if nodes[k, qs.HANDLES] == 2:
        return col.PHI2, col.BIAS2, col.PHI12
    return col.PHI, col.BIAS, col.PHI


@_jit
def _join(k, a, b, joints, clusters, s, drag):
    """Factors of the joint that node k closes between clusters with records a and b: `s.system` holds, per row,
    columns 6 + d on, the wrench on b and the accelerations of the joint, for units of what is missing and for torques.

    With `drag`, (nv,), torques to subtract. `s.matrices[0]` holds E Phi21 of a, `s.matrices[1]` its Phi22 in axes of b.
    Returns the number of dofs.
    """
    nodes, data = clusters.nodes, clusters.data
    left, g = nodes[k, qs.LEFT], nodes[k, qs.GROUP]
    column, row = s.vectors[0], s.vectors[1]
    coupled, whole, m = s.matrices[0], s.matrices[1], s.system
    pose, screws, d, count = s.poses[0], joints.screws, 0, 0
    if g >= 0:
        copy_pose(joints.poses[g], pose)
        d, count = joints.groups[g, qs.DOF], joints.groups[g, qs.DOFS]
    else:
        set_identity(pose)
    if left >= 0:
        phi2, _, phi12 = _second(left, nodes)
        for j in range(6):
            for i in range(6):
                column[i] = data[a + phi12 + 6 * j + i]  # a column of Phi21
            to_child(pose, column, row)
            for i in range(6):
                coupled[i, j] = row[i]
            for i in range(6):
                column[i] = data[a + phi2 + 6 * i + j]
            to_child(pose, column, row)
            for i in range(6):
                whole[i, j] = row[i]
        for i in range(6):
            for j in range(6):
                column[j] = whole[i, j]
            to_child(pose, column, row)
            for j in range(6):
                m[i, j] = row[j] + data[b + col.PHI + 6 * i + j]
    else:
        for i in range(6):
            for j in range(6):
                m[i, j] = data[b + col.PHI + 6 * i + j]
    n = 6 + count
    for i in range(n):
        for j in range(7):
            m[i, n + j] = 1.0 if i == j else 0.0
    for j in range(count):
        for i in range(6):
            m[i, 6 + j] = -screws[d + j, i]
            m[6 + j, i] = screws[d + j, i]
        for i in range(count):
            m[6 + j, 6 + i] = joints.resist[d + j] if i == j else 0.0
        m[6 + j, n + 6] = joints.torque[d + j] - drag[d + j]
    solve(m, n, 7)
    return count


@_jit
def close(k, joints, clusters, none, s):
    """Record of closed node k, a MERGE or WELD, from those of its children; `none` are zeros, (nv,)."""
    nodes, data, start = clusters.nodes, clusters.data, clusters.start
    left, right, g = nodes[k, qs.LEFT], nodes[k, qs.RIGHT], nodes[k, qs.GROUP]
    out = start[k]
    a, b = record(left, 0, clusters, s), record(right, 1, clusters, s)
    count = _join(k, a, b, joints, clusters, s, none)
    n = 6 + count
    m = s.system
    joint, at, vector, turned = s.poses[0], s.poses[1], s.vectors[0], s.vectors[1]
    # pose of b's top handle in that of k
    if nodes[left, qs.HANDLES] == 2:
        compose(data[a + col.SPAN : a + col.SPAN + 12], joint, at)
    else:
        copy_pose(joint, at)
    turn, shift, force, bias_b = s.forms[0], s.forms[1], s.forms[2], s.forms[3]
    missing, carried = s.forms[4], s.forms[5]
    _turned_products(at, turn)
    _centripetal(at[9], at[10], at[11], 1.0, carried)
    for c in range(F):  # in axes of b
        for i in range(3):
            shift[i, c] = at[i] * carried[0, c] + at[3 + i] * carried[1, c] + at[6 + i] * carried[2, c]
    # net force on b as a rigid body
    o = b + col.INERTIA
    _centripetal(data[o + 1], data[o + 2], data[o + 3], -1.0, carried)
    for i in range(3):
        carried[i, 0] = data[b + col.WRENCH + i]
        for c in range(F):
            x = 0.0
            for e in range(F):
                x += carried[i, e] * turn[e, c]
            force[i, c] = x
    for i in range(6):
        for c in range(F):
            x = 0.0
            for e in range(F):
                x += data[b + col.BIAS + F * i + e] * turn[e, c]
            bias_b[i, c] = x - shift[i, c] if i < 3 else x
    _, bias2, _ = _second(left, nodes)
    for c in range(F):
        for i in range(6):
            vector[i] = data[a + bias2 + F * i + c]
        to_child(joint, vector, turned)
        for i in range(6):
            missing[i, c] = turned[i] - bias_b[i, c]
    # energy of acceleration: of a, of b in k's rotation, and of the joint
    for c in range(F):
        for e in range(F):
            x = 0.0
            for i in range(F):
                x += data[b + col.GAUSS + F * c + i] * turn[i, e]
            carried[c, e] = x
    mass = data[o]
    for c in range(F):
        for e in range(F):
            x = data[a + col.GAUSS + F * c + e]
            for i in range(F):
                x += turn[i, c] * carried[i, e]
            for i in range(3):
                x += mass * shift[i, c] * shift[i, e] - shift[i, c] * force[i, e] - force[i, c] * shift[i, e]
            data[out + col.GAUSS + F * c + e] = x
    through = carried  # wrench on b through the joint
    for i in range(6):
        for c in range(F):
            x = 0.0
            for j in range(6):
                x += m[i, n + j] * missing[j, c]
            through[i, c] = x
    for c in range(F):
        for e in range(F):
            x = 0.0
            for i in range(6):
                x += missing[i, c] * through[i, e]
            data[out + col.GAUSS + F * c + e] -= x
    for c in range(F):
        x = 0.0
        for i in range(6):
            x += missing[i, c] * m[i, n + 6]
        data[out + col.GAUSS + c] -= x
        data[out + col.GAUSS + F * c] -= x
    if count:
        d = joints.groups[g, qs.DOF]
        for j in range(count):
            data[out + col.GAUSS] += joints.torque[d + j] * m[6 + j, n + 6]
    for i in range(6):
        through[i, 0] += m[i, n + 6]
    _fill_handles(k, a, b, n, F, through, bias_b, clusters, s)
    # the rigid body
    for i in range(6):
        vector[i] = data[b + col.WRENCH + i]
    to_parent(at, vector, turned)
    for i in range(6):
        data[out + col.WRENCH + i] = data[a + col.WRENCH + i] + turned[i]
    for i in range(10):
        data[out + col.INERTIA + i] = data[a + col.INERTIA + i]
    add_inertia(at, data, o, 1.0, data[out + col.INERTIA : out + col.INERTIA + 10])
    if nodes[k, qs.HANDLES] == 2:
        span = data[out + col.SPAN : out + col.SPAN + 12]
        if nodes[right, qs.HANDLES] == 2:
            compose(at, data[b + col.SPAN : b + col.SPAN + 12], span)
            below = data[b + col.SPAN : b + col.SPAN + 12]
            for c in range(F):
                for i in range(3):
                    x = below[i] * shift[0, c] + below[3 + i] * shift[1, c] + below[6 + i] * shift[2, c]
                    data[out + col.BIAS2 + F * i + c] -= x
                    # columns of b's own products
            _turn_second(out, b, turn, data)
        else:
            copy_pose(at, span)


@_jit
def _turn_second(out, b, turn, data):
    """Add b's bias at its bottom handle, in k's products, to that of k."""
    for i in range(6):
        for c in range(F):
            x = 0.0
            for e in range(F):
                x += data[b + col.BIAS2 + F * i + e] * turn[e, c]
            data[out + col.BIAS2 + F * i + c] += x


@_jit
def _fill_handles(k, a, b, n, columns, through, bias_b, clusters, s):
    """Inverse inertias and biases of k's handles; the bias of b's own bottom handle is left out.

    Args:
        k, a, b: node, records of its children.
        n: first column of the factors in `s.system`.
        columns: number of columns of biases.
        through: wrench on b through the joint without forces on handles.
        bias_b: bias of b's top handle.
        clusters, s: as everywhere.
    """
    nodes, data, out = clusters.nodes, clusters.data, clusters.start[k]
    right = nodes[k, qs.RIGHT]
    m, coupled, product = s.system, s.matrices[0], s.matrices[2]
    for i in range(6):
        for j in range(6):
            x = 0.0
            for e in range(6):
                x += m[i, n + e] * coupled[e, j]
            product[i, j] = x
    for i in range(6):
        for j in range(6):
            x = data[a + col.PHI + 6 * i + j]
            for e in range(6):
                x -= coupled[e, i] * product[e, j]
            data[out + col.PHI + 6 * i + j] = x
        for c in range(columns):
            x = data[a + col.BIAS + columns * i + c]
            for e in range(6):
                x -= coupled[e, i] * through[e, c]
            data[out + col.BIAS + columns * i + c] = x
    if nodes[k, qs.HANDLES] == 2:
        phi2, bias2, phi12 = _second(right, nodes)
        for i in range(6):
            for j in range(6):
                x = 0.0
                for e in range(6):
                    x += m[i, n + e] * data[b + phi12 + 6 * e + j]
                product[i, j] = x
        for i in range(6):
            for j in range(6):
                x, y = 0.0, data[b + phi2 + 6 * i + j]
                for e in range(6):
                    x += coupled[e, i] * product[e, j]
                    y -= data[b + phi12 + 6 * e + i] * product[e, j]
                data[out + col.PHI12 + 6 * i + j] = x
                data[out + col.PHI2 + 6 * i + j] = y
            for c in range(columns):
                x = 0.0 if bias2 == col.BIAS2 else bias_b[i, c]
                for e in range(6):
                    x += data[b + phi12 + 6 * e + i] * through[e, c]
                data[out + col.BIAS2 + columns * i + c] = x


@_jit
def close_root(k, world, joints, clusters, none, s):
    """Defect of a tree held still by the world, node k of kind ROOT; `world` is the world's acceleration, (6,)."""
    nodes, data = clusters.nodes, clusters.data
    right, g = nodes[k, qs.RIGHT], nodes[k, qs.GROUP]
    b = record(right, 1, clusters, s)
    count = _join(k, -1, b, joints, clusters, s, none)
    n = 6 + count
    m, rigid, inertia = s.system, s.vectors[2], s.matrices[2]
    to_child(joints.poses[g], world, rigid)
    expand(data, b + col.INERTIA, inertia)
    out = data[b + col.GAUSS]
    for i in range(6):
        x = rigid[i] - data[b + col.BIAS + F * i]
        y = -2.0 * data[b + col.WRENCH + i]
        f = 2.0 * m[i, n + 6]
        for j in range(6):
            y += inertia[i, j] * rigid[j]
            f += m[i, n + j] * (rigid[j] - data[b + col.BIAS + F * j])
        out += rigid[i] * y - x * f
    for j in range(count):
        out += joints.torque[joints.groups[g, qs.DOF] + j] * m[6 + j, n + 6]
    clusters.defect[k] = max(out, 0.0)


# --- open clusters


@_jit
def joint_bias(g, joints, rates, spin, s, out):
    """Acceleration of group g's frame without joint accelerations, behind a frame that turns but does not accelerate.

    `spin` is the angular velocity before the joint, in that frame's axes.
    """
    groups, primitives = joints.groups, joints.primitives
    pose, w, a, r = s.poses[2], s.vectors[8], s.vectors[9], s.vectors[10]
    for i in range(3):
        w[i], a[i], a[3 + i] = spin[i], 0.0, 0.0
    first = groups[g, qs.FIRST]
    for k in range(first, first + groups[g, qs.COUNT]):
        primitive_pose(k, primitives, joints.offsets, joints.q, pose)
        x, y, z = pose[9], pose[10], pose[11]
        along = w[0] * x + w[1] * y + w[2] * z
        square = w[0] * w[0] + w[1] * w[1] + w[2] * w[2]
        r[0] = a[0] + a[4] * z - a[5] * y + w[0] * along - x * square
        r[1] = a[1] + a[5] * x - a[3] * z + w[1] * along - y * square
        r[2] = a[2] + a[3] * y - a[4] * x + w[2] * along - z * square
        turn_back(pose, r, a)
        turn_back(pose, a[3:6], a[3:6])
        turn_back(pose, w, w)
        d, kind = primitives[k, qs.MOTION_DOF], primitives[k, qs.MOTION]
        if kind == LINK_SLIDE:
            a[0] += 2.0 * w[1] * rates[d]
            a[1] -= 2.0 * w[0] * rates[d]
        elif kind == LINK_BALL:
            x, y, z = rates[d], rates[d + 1], rates[d + 2]
            a[3] += w[1] * z - w[2] * y
            a[4] += w[2] * x - w[0] * z
            a[5] += w[0] * y - w[1] * x
            w[0], w[1], w[2] = w[0] + x, w[1] + y, w[2] + z
        else:
            a[3] += w[1] * rates[d]
            a[4] -= w[0] * rates[d]
            w[2] += rates[d]
    for i in range(6):
        out[i] = a[i]


@_jit
def free_bias(k, at, opened, spin, clusters, first, second):
    """Accelerations of a cluster's handles without forces on them, (6,) each, from its record and angular velocity."""
    nodes, data = clusters.nodes, clusters.data
    two = nodes[k, qs.HANDLES] == 2
    if opened:
        for i in range(6):
            first[i] = data[at + col.BIAS + i]
            second[i] = data[at + col.BIAS2 + i] if two else first[i]
        return
    x, y, z = spin[0], spin[1], spin[2]
    p = 1.0, x * x, y * y, z * z, x * y, x * z, y * z
    for i in range(6):
        a, b = 0.0, 0.0
        for c in range(F):
            a += data[at + col.BIAS + F * i + c] * p[c]
            if two:
                b += data[at + col.BIAS2 + F * i + c] * p[c]
        first[i] = a
        second[i] = b if two else a
    if two:
        o = at + col.SPAN
        rx, ry, rz = data[o + 9], data[o + 10], data[o + 11]
        along, square = x * rx + y * ry + z * rz, x * x + y * y + z * z
        a, b, c = x * along - rx * square, y * along - ry * square, z * along - rz * square
        for i in range(3):
            second[i] += data[o + i] * a + data[o + 3 + i] * b + data[o + 6 + i] * c


# Further places of a record of an open cluster, in place of GAUSS: acceleration missing at the joint, wrench through it
# by torques alone, wrench for a unit of missing acceleration (6 x 6).
MISSING, DRIVEN, FACTOR = col.GAUSS, col.GAUSS + 6, col.GAUSS + 12


@_jit
def join_open(k, a, b, bias_a, bias_b, spin, joints, rates, clusters, drag, s, missing):
    """Factors of an open node's joint in `s.system`, and the acceleration missing at it; returns the number of dofs.

    Args:
        k, a, b: node, records of its children (of a ROOT only b).
        bias_a, bias_b: free accelerations of the handles at the joint.
        spin: angular velocity before the joint, in its parent's axes.
        joints, rates, clusters, drag, s: as everywhere.
        missing: out, (6,).
    """
    g = clusters.nodes[k, qs.GROUP]
    count = _join(k, a, b, joints, clusters, s, drag)
    to_child(s.poses[0], bias_a, missing)
    if g >= 0:
        joint_bias(g, joints, rates, spin, s, s.vectors[2])
        for i in range(6):
            missing[i] += s.vectors[2][i]
    for i in range(6):
        missing[i] -= bias_b[i]
    return count


@_jit
def open_record(k, a, b, first_a, bias_b, second_b, count, missing, clusters, s):
    """Record of an open node, a MERGE or WELD, after `join_open`."""
    nodes, data, out = clusters.nodes, clusters.data, clusters.start[k]
    n, m, through, own = 6 + count, s.system, s.forms[0], s.forms[1]
    for i in range(6):
        x = m[i, n + 6]
        data[out + DRIVEN + i], data[out + MISSING + i] = x, missing[i]
        own[i, 0] = bias_b[i]
        for j in range(6):
            x += m[i, n + j] * missing[j]
            data[out + FACTOR + 6 * i + j] = m[i, n + j]
        through[i, 0] = x
    _fill_handles(k, a, b, n, 1, through, own, clusters, s)
    # biases of a and b are those at present velocities, not their records'
    coupled = s.matrices[0]
    for i in range(6):
        x = first_a[i]
        for e in range(6):
            x -= coupled[e, i] * through[e, 0]
        data[out + col.BIAS + i] = x
    if nodes[k, qs.HANDLES] == 2 and nodes[nodes[k, qs.RIGHT], qs.HANDLES] == 2:
        for i in range(6):
            data[out + col.BIAS2 + i] += second_b[i]
