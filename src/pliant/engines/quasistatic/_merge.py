"""Kernels of the assembly tree: merge two clusters at a joint, and back-substitute forces and accelerations.

A cluster's record holds inverse inertia Phi and bias b at its handles (RL05 Eq. 1), the pose of its bottom handle in
its top one, and rows of its total acceleration (below). Handles have the frames of their groups. A is the left child,
nearer to the world, B the right one, E the transform of motions from the parent's frame to the child's at the joint, f
the wrench through the joint on B, g1 and g2 the wrenches on the handles of the merged cluster, Q the joint's torques:

    r = b1 of B - E b2 of A - E Phi21 of A g1 + Phi12 of B g2,   qdd = s Q + U r,   f = U^T Q - W r

r and f are kept as matrices that act on [g1, g2, 1].

**Elimination.** RL05 Eqs. 3-5 take the inverse of D, the sum of the inverse inertias that meet at the joint. Where the
joint's motion is a choice F of coordinates (K the others), this is the same and loses no digits:

    W = D_KK^-1 on K,   U = E_F^T (I - D W),   s = (S^T D^-1 S)^-1 = U D E_F

A joint of several primitives is turned into such coordinates by an orthogonal basis. Resistance to acceleration
(armature, springs and dampers that act implicitly) is a change of low rank after that.

**Total acceleration** (RL05 section 4.1): the sum of `(weight qdd)^2` over the joints inside, a quadratic function of
the forces on handles. RL05 Eqs. 8-9 keep its coefficients. They lose half the digits, and near an equilibrium, where
accelerations are small differences of large terms, all of them; the sum may even come out negative. Kept here are rows
L with `|L [f; 1]|^2` equal to the sum: one per dof as long as these are few, then as many as there are columns, by an
orthogonal transformation.
"""

import math

from pliant.compilation import njit
from pliant.engines.quasistatic import arrays as col
from pliant.engines.quasistatic._composite import (
    fill_composite,
    merge_composite,
    merge_energy,
    sum_energies,
)
from pliant.engines.quasistatic._linalg import (
    WIDTH,
    combine,
    householder,
    invert_lower,
    reflect,
    reflect_rows,
)
from pliant.engines.quasistatic.joints import (
    compose,
    copy_pose,
    distance,
    invert_inertia,
    motion_to_child,
    set_identity,
    to_child,
    to_parent,
)
from pliant.mechanism.links import LINK_BALL, LINK_HINGE

_jit = njit(error_model="numpy", nogil=True, fastmath=False)
_fused = njit(error_model="numpy", nogil=True, fastmath={"contract"})
_inline = njit(error_model="numpy", nogil=True, inline="always")
SEVERAL = -1  # in place of the kind of a joint's only primitive
_SINGULAR = 1e-9  # sine below which screws of a joint count as dependent


@_fused
def fill_leaf(k, clusters, leaves, scratch):
    """Record of a body: Phi = M^-1 of its share of the inertia, b = Phi times the wrench on it."""
    nodes, data = clusters.nodes, clusters.data
    g, o = nodes[k, col.GROUP], nodes[k, col.START]
    invert_inertia(
        leaves.inertia[g],
        leaves.shares[g],
        scratch.matrices[col.SPARE].reshape(36),
        scratch.matrices[col.SPARE + 1],
        data[o + col.PHI : o + col.PHI + 36],
    )
    fill_composite(k, leaves.inertia[g], leaves.shares[g], nodes, data)
    update_leaf(k, nodes, leaves.wrenches, data)


@_fused
def update_leaf(k, nodes, wrenches, data):
    """Bias of a body, b = Phi times the wrench on it, from Phi in its record; its wrench and energy w . b."""
    o, wrench = nodes[k, col.START], wrenches[k]
    before = o - col.BEFORE
    energy, terms = 0.0, 0.0
    for i in range(6):
        total = 0.0
        for j in range(6):
            total += data[o + col.PHI + 6 * i + j] * wrench[j]
        data[o + col.BIAS + i] = total
        data[before + col.RIGID_WRENCH + i] = wrench[i]
        energy += total * wrench[i]
        terms += abs(total * wrench[i])
    data[before + col.ENERGY], data[before + col.ENERGY_TERMS] = energy, terms


@_inline
def closure_of(start, length, data):
    """Closure of the cluster whose record starts at `start`."""
    return data[start - col.BEFORE - length : start - col.BEFORE]


@_inline
def _merge(k, joints, clusters, scratch):
    """Record and closure of node k from its children's records; False if the screws of its joint are dependent."""
    nodes, data, m, rows = clusters.nodes, clusters.data, scratch.matrices, scratch.rows
    kind, left, right, g = nodes[k, col.KIND], nodes[k, col.LEFT], nodes[k, col.RIGHT], nodes[k, col.GROUP]
    start = nodes[k, col.START]
    if kind == col.SUM:
        a, b = nodes[left, col.START], nodes[right, col.START]
        data[start] = math.hypot(
            data[a] if nodes[left, col.ROWS] > 0 else 0.0, data[b] if nodes[right, col.ROWS] > 0 else 0.0
        )
        sum_energies(k, nodes, data)
        return True
    closure = closure_of(start, clusters.closure, data)
    d, vector, pose = m[col.D_MATRIX], m[col.VECTOR, 0], rows[col.POSE_ROW]
    handles, hb, ob = nodes[k, col.HANDLES], nodes[right, col.HANDLES], nodes[right, col.START]
    last = 6 * handles
    if kind == col.WELD:
        set_identity(pose)
    else:
        copy_pose(joints.poses[g], pose)

    # D, in the frame of B; r as a function of [g1, g2, 1]
    for i in range(6):
        for j in range(WIDTH):
            rows[col.R_ROWS + i, j] = 0.0
        for j in range(6):
            d[i, j] = data[ob + col.PHI + 6 * i + j]
    oa = 0
    if kind == col.ROOT:
        to_child(pose, clusters.world, vector)
    else:
        ha = nodes[left, col.HANDLES]
        oa = nodes[left, col.START]
        at = oa if ha == 1 else oa + col.HANDLE_STRIDE
        _add_parent_inertia(pose, data, at + col.PHI, d, rows)
        if ha == 2:
            _add_parent_coupling(pose, data, oa + col.PHI12, rows)
        to_child(pose, data[at + col.BIAS : at + col.BIAS + 6], vector)
    second = ob
    if handles == 2:
        phi = ob + col.PHI
        if hb == 2:
            second, phi = ob + col.HANDLE_STRIDE, ob + col.PHI12
        for i in range(6):
            for j in range(6):
                rows[col.R_ROWS + i, 6 + j] = data[phi + 6 * i + j]
    elif handles == 0:
        for i in range(6):
            for j in range(6):
                rows[col.R_ROWS + i, j] = 0.0
    for i in range(6):
        x = data[ob + col.BIAS + i] - vector[i]
        closure[col.R_AT + i] = x
        rows[col.R_ROWS + i, last] = x

    freedoms, dof, single = joint_freedoms(kind, g, joints)
    if not eliminate(freedoms, single, joints.screws[dof:], joints.resist[dof:], m):
        return False
    store_closure(m, freedoms, joints.torque[dof:], closure)
    # f as a function of [g1, g2, 1]
    for i in range(6):
        combine(rows, col.F_ROWS + i, m, 36 * col.W_MATRIX + 6 * i, col.R_ROWS, -1.0)
        rows[col.F_ROWS + i, last] += closure[col.UTQ_AT + i]
    if clusters.bounds:
        for i in range(6):
            vector[i] = rows[col.F_ROWS + i, last]
        base = m[col.SPARE, 0]
        if kind == col.ROOT:
            to_child(pose, clusters.world, base)
        else:
            merge_composite(k, kind, pose, nodes, data, scratch.poses[0])
        merge_energy(k, kind, freedoms, joints.torque[dof:], vector, base, nodes, data, closure)
    if handles > 0:
        _merge_handles(data, start, oa, second, handles, rows, m)
    if clusters.bounds:
        _merge_rows(k, kind, freedoms, joints.weights[dof:], nodes, data, closure, rows, m, scratch.reflector)
    return True


@_fused
def merge(order, first, last, joints, clusters, scratch):
    """Merge the nodes `order[first]` to `order[last - 1]` but leaves, the last one first.

    Returns the last node whose joint has dependent screws, or -1. One call for all: its arguments are more than a
    hundred numbers.
    """
    failed = -1
    for i in range(last - 1, first - 1, -1):
        k = order[i]
        if clusters.nodes[k, col.KIND] != col.LEAF and not _merge(k, joints, clusters, scratch):
            failed = k
    return failed


@_jit
def joint_freedoms(kind, g, joints):
    """Number of dofs of the joint that a node closes, its first dof, and the kind of its primitive, or SEVERAL."""
    if kind == col.WELD:
        return 0, 0, 0
    single = (
        joints.primitives[joints.groups[g, col.FIRST], col.MOTION]
        if joints.groups[g, col.COUNT] == 1
        else SEVERAL
    )
    return joints.groups[g, col.DOFS], joints.groups[g, col.DOF], single


@_fused
def _add_parent_inertia(x, data, o, d, rows):
    """Add E Phi E^T to d, and put -E Phi into the first columns of r; Phi the symmetric matrix at o."""
    _add_parent_coupling(x, data, o, rows)
    for i in range(6):
        r = rows[col.R_ROWS + i]
        e0, e1, e2, e3, e4, e5 = motion_to_child(x, r[0], r[1], r[2], r[3], r[4], r[5])
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


@_fused
def _add_parent_coupling(x, data, o, rows):
    """Put -E Phi^T into the first columns of r; Phi the matrix at o."""
    for i in range(6):
        e0, e1, e2, e3, e4, e5 = motion_to_child(
            x, data[o], data[o + 1], data[o + 2], data[o + 3], data[o + 4], data[o + 5]
        )
        rows[col.R_ROWS, i], rows[col.R_ROWS + 1, i], rows[col.R_ROWS + 2, i] = -e0, -e1, -e2
        rows[col.R_ROWS + 3, i], rows[col.R_ROWS + 4, i], rows[col.R_ROWS + 5, i] = -e3, -e4, -e5
        o += 6


@_fused
def _merge_handles(data, start, first, second, handles, rows, m):
    """Inverse inertia and bias at the handles (RL05 Eqs. 2, 6, 7): those of the children, and r^T f."""
    vector, last = m[col.VECTOR, 0], 6 * handles
    for i in range(6):
        for n in range(6):
            vector[n] = rows[col.R_ROWS + n, i]
        combine(rows, 0, m, 36 * col.VECTOR, col.F_ROWS, 1.0)
        data[start + col.BIAS + i] = data[first + col.BIAS + i] + rows[0, last]
        for j in range(i, 6):
            x = data[first + col.PHI + 6 * i + j] + rows[0, j]
            data[start + col.PHI + 6 * i + j] = x
            data[start + col.PHI + 6 * j + i] = x
        if handles == 2:
            for j in range(6):
                data[start + col.PHI12 + 6 * i + j] = rows[0, 6 + j]
    if handles == 2:
        for i in range(6):
            for n in range(6):
                vector[n] = rows[col.R_ROWS + n, 6 + i]
            combine(rows, 0, m, 36 * col.VECTOR, col.F_ROWS, 1.0)
            data[start + col.BIAS2 + i] = data[second + col.BIAS + i] + rows[0, 12]
            for j in range(i, 6):
                x = data[second + col.PHI + 6 * i + j] + rows[0, 6 + j]
                data[start + col.PHI2 + 6 * i + j] = x
                data[start + col.PHI2 + 6 * j + i] = x


@_fused
def back_substitute(k, nodes, groups, poses, data, length, qdd, spare):
    """Acceleration of the joint of node k, and the forces on the handles of its children (RL05 Eqs. 3-4).

    `length` is that of closures. Returns the size of the terms that an acceleration is the sum of: round-off is
    relative to it.
    """
    kind, left, right, g = nodes[k, col.KIND], nodes[k, col.LEFT], nodes[k, col.RIGHT], nodes[k, col.GROUP]
    size = 0.0
    if kind == col.SUM:
        return size
    handles, hb = nodes[k, col.HANDLES], nodes[right, col.HANDLES]
    own = nodes[k, col.START] - col.BEFORE  # forces on its handles
    closure, r, f = closure_of(nodes[k, col.START], length, data), spare[0], spare[1]
    for i in range(6):
        r[i] = closure[col.R_AT + i]
    if handles == 2:
        phi = nodes[right, col.START] + (col.PHI12 if hb == 2 else col.PHI)
        for i in range(6):
            total = 0.0
            for j in range(6):
                total += data[phi + 6 * i + j] * data[own + 6 + j]
            r[i] += total
    if handles > 0:
        phi = nodes[left, col.START] + (col.PHI12 if nodes[left, col.HANDLES] == 2 else col.PHI)
        for i in range(6):
            total = 0.0
            for j in range(6):
                total += data[phi + 6 * j + i] * data[own + j]
            f[i] = total
        if kind != col.WELD:
            to_child(poses[g], f, f)
        for i in range(6):
            r[i] -= f[i]
    if kind != col.WELD:
        size = joint_accelerations(closure, r, groups[g, col.DOFS], qdd[groups[g, col.DOF] :])
    for i in range(6):
        total = closure[col.UTQ_AT + i]
        for j in range(6):
            total -= closure[col.W_AT + 6 * i + j] * r[j]
        f[i] = total
    out = nodes[right, col.START] - col.BEFORE
    for i in range(6):
        data[out + i] = f[i]
    if handles == 2:
        at = 6 if hb == 2 else 0
        for i in range(6):
            data[out + at + i] = data[own + 6 + i] + (f[i] if hb == 1 else 0.0)
    if kind != col.ROOT:
        if kind != col.WELD:
            to_parent(poses[g], f, f)
        out = nodes[left, col.START] - col.BEFORE
        at = 6 if nodes[left, col.HANDLES] == 2 else 0
        for i in range(6):
            data[out + i] = data[own + i]
        for i in range(6):
            data[out + at + i] = (0.0 if at == 6 else data[out + i]) - f[i]
    return size


@_fused
def joint_accelerations(closure, r, freedoms, qdd):
    """qdd = s Q + U r of a joint; returns the largest sum of the absolute terms."""
    size = 0.0
    for i in range(freedoms):
        total = closure[col.SQ_AT + col.FREEDOM_STRIDE * i]
        terms = abs(total)
        for j in range(6):
            x = closure[col.U_AT + col.FREEDOM_STRIDE * i + j] * r[j]
            total += x
            terms += abs(x)
        qdd[i] = total
        size = max(size, terms)
    return size


# --- geometry of handles


@_inline
def _span(k, nodes, data):
    """Pose of the bottom handle of a cluster with two handles in its top one."""
    o = nodes[k, col.START] + col.SPAN
    return data[o : o + 12]


@_jit
def update_span(k, nodes, poses, data, extent, spare):
    """Pose of the bottom handle of node k in its top one, and the largest distance of a body from the top handle."""
    kind, left, right = nodes[k, col.KIND], nodes[k, col.LEFT], nodes[k, col.RIGHT]
    if kind in (col.ROOT, col.LOOP):
        extent[k] = extent[right]
        if kind == col.LOOP and nodes[k, col.HANDLES] == 2:
            copy_pose(_span(right, nodes, data), _span(k, nodes, data))
        return
    if kind in (col.SUM, col.WELD):
        extent[k] = max(extent[left], extent[right])
        return
    pose = poses[nodes[k, col.GROUP]]
    if nodes[left, col.HANDLES] == 2:
        compose(_span(left, nodes, data), pose, spare)
        pose = spare
    extent[k] = max(extent[left], distance(pose) + extent[right])
    if nodes[k, col.HANDLES] == 2:
        if nodes[right, col.HANDLES] == 2:
            compose(pose, _span(right, nodes, data), _span(k, nodes, data))
        else:
            copy_pose(pose, _span(k, nodes, data))


@_jit
def pose_in(k, stop, nodes, data, groups, poses, out, spare):
    """Pose of the body of leaf k in the top handle of the node `stop` above it (RL05 section 5.1), a product per level.

    It is a world pose if `stop` is the last node or above a ROOT. In a twig without records (see `_twigs.py`), one
    product per body on the path to its top.
    """
    set_identity(out)
    if nodes[k, col.START] < 0:
        g = nodes[k, col.GROUP]
        while nodes[k, col.START] < 0:
            k = nodes[k, col.ABOVE]
        top = k
        while nodes[top, col.LEFT] >= 0:
            top = nodes[top, col.LEFT]
        while g != nodes[top, col.GROUP]:
            compose(poses[g], out, spare)
            copy_pose(spare, out)
            g = groups[g, col.PARENT]
    while k != stop:
        p = nodes[k, col.ABOVE]
        kind = nodes[p, col.KIND]
        if kind == col.ROOT or (kind == col.MERGE and nodes[p, col.RIGHT] == k):
            compose(poses[nodes[p, col.GROUP]], out, spare)
            left = nodes[p, col.LEFT]
            if kind != col.ROOT and nodes[left, col.HANDLES] == 2:
                compose(_span(left, nodes, data), spare, out)
            else:
                copy_pose(spare, out)
        k = p


# --- total acceleration


@_jit
def rows_start(k, nodes):
    """Start of the rows of a cluster's total acceleration in `data`."""
    h = nodes[k, col.HANDLES]
    return nodes[k, col.START] + (col.METRIC[0] if h == 0 else (col.METRIC[1] if h == 1 else col.METRIC[2]))


@_fused
def _merge_rows(k, kind, freedoms, weights, nodes, data, closure, rows, m, reflector):
    """Rows of the total acceleration of node k, in terms of the forces on its own handles.

    RL05 Eqs. 8-9 as a square root: rows of both children with their forces replaced, rows of the joint; where there
    are more rows than columns, an orthogonal transformation leaves as many as there are columns.
    """
    handles, pose = nodes[k, col.HANDLES], rows[col.POSE_ROW]
    columns = 6 * handles + 1
    n = 0
    if kind != col.ROOT:
        child = nodes[k, col.LEFT]
        ha, at = nodes[child, col.HANDLES], rows_start(child, nodes)
        for _ in range(nodes[child, col.ROWS]):
            # forces on A: g1, and minus f at the joint; l E^T f = (E l) f
            o = at + 6 * ha - 6
            e0, e1, e2, e3, e4, e5 = motion_to_child(
                pose, data[o], data[o + 1], data[o + 2], data[o + 3], data[o + 4], data[o + 5]
            )
            m[col.VECTOR, 0, 0], m[col.VECTOR, 0, 1], m[col.VECTOR, 0, 2] = e0, e1, e2
            m[col.VECTOR, 0, 3], m[col.VECTOR, 0, 4], m[col.VECTOR, 0, 5] = e3, e4, e5
            combine(rows, n, m, 36 * col.VECTOR, col.F_ROWS, -1.0)
            if handles > 0:
                for i in range(6):
                    rows[n, i] += data[at + i]
            rows[n, columns - 1] += data[at + 6 * ha]
            at += 6 * ha + 1
            n += 1
    child = nodes[k, col.RIGHT]
    hb, at = nodes[child, col.HANDLES], rows_start(child, nodes)
    for _ in range(nodes[child, col.ROWS]):
        # forces on B: f at the joint, and g2
        combine(rows, n, data, at, col.F_ROWS, 1.0)
        if handles == 2:
            for i in range(6):
                rows[n, 6 + i] += data[at + 6 * hb - 6 + i]
        rows[n, columns - 1] += data[at + 6 * hb]
        at += 6 * hb + 1
        n += 1
    for q in range(freedoms):
        # qdd = s Q + U r
        combine(rows, n, m, 36 * col.U_MATRIX + 6 * q, col.R_ROWS, weights[q])
        rows[n, columns - 1] += weights[q] * closure[col.SQ_AT + col.FREEDOM_STRIDE * q]
        n += 1
    if n > columns:
        if handles > 0:
            _triangularize(rows, n, columns, reflector)
        else:
            x = 0.0
            for i in range(n):
                x += rows[i, 0] * rows[i, 0]
            rows[0, 0] = math.sqrt(x)
        n = columns
    o = rows_start(k, nodes)
    for i in range(n):
        for j in range(columns):
            data[o + j] = rows[i, j]
        o += columns


@_fused
def _triangularize(a, n, columns, v):
    """Make `a` (n, columns) upper triangular by Householder reflections from the left; `v` is scratch.

    All columns of `a` take part every time, padding and finished ones too: they hold zeros where it matters.
    """
    for k in range(columns):
        for i in range(k, n):
            v[i] = a[i, k]
        beta, alpha = householder(v, k, n)
        if alpha == 0.0:
            continue
        reflect(a, v, k, n, beta)
        for i in range(k + 1, n):
            a[i, k] = 0.0
        a[k, k] = alpha


@_fused
def squared_rows(count, columns, data, at, forces, first):
    """|L [f; 1]|^2, rows L at `at`, f in `forces` from `first` on: total acceleration of a cluster (RL05 Eq. 8)."""
    out = 0.0
    for _ in range(count):
        x = data[at + columns - 1]
        for i in range(columns - 1):
            x += data[at + i] * forces[first + i]
        out += x * x
        at += columns
    return out


# --- elimination


@_fused
def eliminate(freedoms, kind, screws, resist, matrices):
    """W (6, 6), U (freedoms, 6) and s (freedoms, freedoms) of a joint from D; False if its screws are dependent.

    Args:
        freedoms: 0 for a weld.
        kind: of the joint's primitive, or SEVERAL.
        screws, resist: of the joint's dofs, from its first one on.
        matrices: see `arrays.Scratch`; D in, W, U and s out.
    """
    d, s, w, u, spare = (
        matrices[col.D_MATRIX],
        matrices[col.S_MATRIX],
        matrices[col.W_MATRIX],
        matrices[col.U_MATRIX],
        matrices[col.SPARE :],
    )
    n = freedoms
    t = spare[0]
    if kind == SEVERAL:
        basis, r = spare[1], spare[2]
        # Lengths in units that make turning as easy as sliding: the basis then mixes equals.
        linear, angular = d[0, 0] + d[1, 1] + d[2, 2], d[3, 3] + d[4, 4] + d[5, 5]
        unit = math.sqrt(angular / linear)
        if not _screw_basis(screws, n, unit, basis, r, spare[3]):
            return False
        half = spare[3]
        for i in range(6):
            for j in range(6):
                total = 0.0
                for k in range(6):
                    total += d[i, k] * basis[k, j] * (unit if k < 3 else 1.0)
                half[i, j] = total * (unit if i < 3 else 1.0)
        for i in range(6):
            for j in range(6):
                total = 0.0
                for k in range(6):
                    total += basis[k, i] * half[k, j]
                t[i, j] = total
        _schur(t, n, w, u, s, spare[3])
        _turn_back(n, unit, basis, r, w, u, s, spare[3], spare[4])
    else:
        first = 5 if kind == LINK_HINGE else (3 if kind == LINK_BALL else 2)
        if n == 0:
            first = 0
        # F first, the others after it
        for i in range(6):
            a = first + i if i < n else (i - n if i - n < first else i)
            for j in range(6):
                b = first + j if j < n else (j - n if j - n < first else j)
                t[i, j] = d[a, b]
        half = spare[1]
        _schur(t, n, half, spare[2], s, spare[3])
        for i in range(6):
            a = first + i if i < n else (i - n if i - n < first else i)
            for j in range(6):
                b = first + j if j < n else (j - n if j - n < first else j)
                w[a, b] = half[i, j]
                if i < n:
                    u[i, b] = spare[2][i, j]
    _resist(n, resist, w, u, s, spare[0], spare[1])
    return True


@_fused
def _schur(t, n, w, u, s, low):
    """W, U, s in coordinates whose first n are free. `low` takes the inverse Cholesky factor of the others."""
    for i in range(6):
        for j in range(6):
            w[i, j] = 0.0
    for i in range(n, 6):
        for j in range(n, i + 1):
            total = t[i, j]
            for k in range(n, j):
                total -= low[i, k] * low[j, k]
            if i == j:
                low[i, i] = math.sqrt(total)
            else:
                low[i, j] = total / low[j, j]
    invert_lower(low, n, 6)
    for i in range(n, 6):
        for j in range(n, i + 1):
            total = 0.0
            for k in range(i, 6):
                total += low[k, i] * low[k, j]
            w[i, j] = total
            w[j, i] = total
    for i in range(n):
        for j in range(n):
            u[i, j] = 1.0 if i == j else 0.0
        for j in range(n, 6):
            total = 0.0
            for k in range(n, 6):
                total -= t[i, k] * w[k, j]
            u[i, j] = total
        for j in range(n):
            total = t[i, j]
            for k in range(n, 6):
                total += u[i, k] * t[k, j]
            s[i, j] = total


@_fused
def _screw_basis(screws, n, unit, basis, r, a):
    """Orthogonal basis whose first n columns span the screws, lengths times `unit`; screws = basis r.

    `a` is scratch; False if the screws are dependent.
    """
    for i in range(6):
        for j in range(6):
            basis[i, j] = 1.0 if i == j else 0.0
        for j in range(n):
            a[j, i] = screws[j, i] * (unit if i < 3 else 1.0)
    for k in range(n):
        whole, tail = 0.0, 0.0
        for i in range(6):
            whole += a[k, i] * a[k, i]
        for i in range(k, 6):
            tail += a[k, i] * a[k, i]
        if not tail > _SINGULAR * _SINGULAR * whole:
            return False
        beta, alpha = householder(a[k], k, 6)
        reflect_rows(a[k], beta, k, 6, a, k + 1, n)
        reflect_rows(a[k], beta, k, 6, basis, 0, 6)
        r[k, k] = alpha
        for j in range(k + 1, n):
            r[k, j] = a[j, k]
    return True


@_fused
def _turn_back(n, unit, basis, r, w, u, s, half, other):
    """W, U and s from the orthogonal basis to the group's frame and the joint's own coordinates."""
    for i in range(6):
        for j in range(6):
            total = 0.0
            for k in range(n, 6):
                total += w[i, k] * basis[j, k]
            half[i, j] = total
    for i in range(6):
        for j in range(6):
            total = 0.0
            for k in range(n, 6):
                total += basis[i, k] * half[k, j]
            w[i, j] = total * (unit if i < 3 else 1.0) * (unit if j < 3 else 1.0)
    for i in range(n):
        for j in range(6):
            total = 0.0
            for k in range(6):
                total += u[i, k] * basis[j, k]
            other[i, j] = total * (unit if j < 3 else 1.0)
    for j in range(6):
        for i in range(n - 1, -1, -1):
            total = other[i, j]
            for k in range(i + 1, n):
                total -= r[i, k] * u[k, j]
            u[i, j] = total / r[i, i]
    # s = R^-1 s R^-T: rows, then columns
    for j in range(n):
        for i in range(n - 1, -1, -1):
            total = s[i, j]
            for k in range(i + 1, n):
                total -= r[i, k] * s[k, j]
            s[i, j] = total / r[i, i]
    for i in range(n):
        for j in range(n - 1, -1, -1):
            total = s[i, j]
            for k in range(j + 1, n):
                total -= r[j, k] * s[i, k]
            s[i, j] = total / r[j, j]


@_fused
def _resist(n, resist, w, u, s, a, b):
    """Add resistance k to acceleration: s -> (1 + s k)^-1 s, U -> (1 + s k)^-1 U, W -> W + U^T k (1 + s k)^-1 U."""
    any_ = False
    for i in range(n):
        if resist[i] > 0.0:
            any_ = True
    if not any_:
        return
    if n == 1:
        k = resist[0]
        gain = 1.0 / (1.0 + s[0, 0] * k)
        for i in range(6):
            for j in range(6):
                w[i, j] += u[0, i] * u[0, j] * k * gain
        for i in range(6):
            u[0, i] *= gain
        s[0, 0] *= gain
        return
    for i in range(n):
        for j in range(n):
            a[i, j] = s[i, j] * resist[j] + (1.0 if i == j else 0.0)
        for j in range(6):
            b[i, j] = u[i, j]
    # Gaussian elimination with pivots, right sides U and s; `b` keeps the old U
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(a[i, k]) > abs(a[pivot, k]):
                pivot = i
        if pivot != k:
            for j in range(n):
                a[k, j], a[pivot, j] = a[pivot, j], a[k, j]
                s[k, j], s[pivot, j] = s[pivot, j], s[k, j]
            for j in range(6):
                u[k, j], u[pivot, j] = u[pivot, j], u[k, j]
        for i in range(k + 1, n):
            factor = a[i, k] / a[k, k]
            for j in range(k, n):
                a[i, j] -= factor * a[k, j]
            for j in range(n):
                s[i, j] -= factor * s[k, j]
            for j in range(6):
                u[i, j] -= factor * u[k, j]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            for j in range(n):
                s[i, j] -= a[i, k] * s[k, j]
            for j in range(6):
                u[i, j] -= a[i, k] * u[k, j]
        for j in range(n):
            s[i, j] /= a[i, i]
        for j in range(6):
            u[i, j] /= a[i, i]
    for k in range(n):
        for i in range(6):
            for j in range(6):
                w[i, j] += b[k, i] * resist[k] * u[k, j]
    for i in range(6):
        for j in range(i):
            w[i, j] = w[j, i] = 0.5 * (w[i, j] + w[j, i])


@_fused
def store_closure(matrices, freedoms, torque, closure):
    """W, U, U^T Q and s Q into a closure, Q the torques of the joint."""
    s, w, u = matrices[col.S_MATRIX], matrices[col.W_MATRIX], matrices[col.U_MATRIX]
    for i in range(6):
        total = 0.0
        for j in range(freedoms):
            total += u[j, i] * torque[j]
            closure[col.U_AT + col.FREEDOM_STRIDE * j + i] = u[j, i]
        closure[col.UTQ_AT + i] = total
        for j in range(6):
            closure[col.W_AT + 6 * i + j] = w[i, j]
    for i in range(freedoms):
        total = 0.0
        for j in range(freedoms):
            total += s[i, j] * torque[j]
        closure[col.SQ_AT + col.FREEDOM_STRIDE * i] = total
