"""Kernels for clusters with any number of handles, and for loops: plain dense algebra.

With x the wrenches on all handles of both children and J the relative motion at the joint as a function of their
motions:

    r = J (Phi x + b) + given,   D = J Phi J^T,   f = U^T Q - W r,   x = x of the handles left + J^T f

as in `_merge.py`, of which this is the general case. A LOOP has one child: J compares two of its handles, and D, which
may be singular (a planar loop holds itself in its plane), is inverted on as many rows as geometry says are independent
(`loop_ranks.py`). The given motion of a loop closes its gap in one step.

A wide record holds Phi, row by row, then b. A closure holds J Phi at the handles left, then the motion transforms of
both sides.
"""

import math

from pliant.compilation import njit
from pliant.engines.quasistatic import arrays as col
from pliant.engines.quasistatic._composite import merge_composite
from pliant.engines.quasistatic._linalg import householder, invert_lower, reflect_rows
from pliant.engines.quasistatic._merge import (
    closure_of,
    eliminate,
    joint_accelerations,
    joint_freedoms,
    pose_in,
    rows_start,
    squared_rows,
    store_closure,
)
from pliant.engines.quasistatic.joints import (
    compose,
    copy_pose,
    motion_transform,
    relative_pose,
    set_identity,
    to_child,
)
from pliant.spatial import kernels as se3

_jit = njit(error_model="numpy", nogil=True, fastmath=False)
_fused = njit(error_model="numpy", nogil=True, fastmath={"contract"})
_CHANGED = 100.0  # factor by which pivots may change before ranks are computed again
_REDUNDANT = 1e-7  # norm below which a row depends on others, in radians or mean levers per unit motion


@_fused
def wide_row(k, nodes, table):
    """Number of handles of a node, and its row in the table if its record is wide, else -1."""
    w = nodes[k, col.WIDE]
    if w >= 0 and table[w, col.IS_WIDE] == 1:
        return table[w, col.ALL_HANDLES], w
    return nodes[k, col.HANDLES], -1


@_fused
def _fetch_record(k, at, nodes, data, wide):
    """Copy inverse inertia and bias of a cluster to handle `at` of the scratch; returns its number of handles."""
    phi, b = wide.phi, wide.bias
    h, w = wide_row(k, nodes, wide.table)
    n, first = 6 * h, 6 * at
    if w >= 0:
        o = wide.table[w, col.RECORD]
        for i in range(n):
            for j in range(n):
                phi[first + i, first + j] = wide.data[o + n * i + j]
            b[first + i] = wide.data[o + n * n + i]
        return h
    o = nodes[k, col.START]
    for part in range(h):
        for i in range(6):
            for j in range(6):
                phi[first + 6 * part + i, first + 6 * part + j] = data[
                    o + col.HANDLE_STRIDE * part + col.PHI + 6 * i + j
                ]
            b[first + 6 * part + i] = data[o + col.HANDLE_STRIDE * part + col.BIAS + i]
    if h == 2:
        for i in range(6):
            for j in range(6):
                x = data[o + col.PHI12 + 6 * i + j]
                phi[first + i, first + 6 + j] = x
                phi[first + 6 + j, first + i] = x
    return h


@_fused
def merge_wide(k, joints, clusters, scratch, wide, spans):
    """Record and closure of node k from its children's records, whatever their handles; see `_merge.merge`.

    `spans` are the records with the poses of handles: `Clusters.data`, or the same of other accelerations.
    """
    nodes, data, m = clusters.nodes, clusters.data, scratch.matrices
    kind, left, right, g = nodes[k, col.KIND], nodes[k, col.LEFT], nodes[k, col.RIGHT], nodes[k, col.GROUP]
    row = wide.table[nodes[k, col.WIDE]]
    closure = closure_of(nodes[k, col.START], clusters.closure, data)
    phi = wide.phi
    n = 0
    for i in range(phi.shape[0]):
        for j in range(phi.shape[0]):
            phi[i, j] = 0.0
    if left >= 0:
        n = _fetch_record(left, 0, nodes, data, wide)
    middle = n
    n = 6 * (n + _fetch_record(right, n, nodes, data, wide))
    # the handles at the joint, as numbers among those of both children
    first, second = (
        row[col.AT_LEFT],
        row[col.AT_RIGHT] if row[col.AT_RIGHT] < 0 else row[col.AT_RIGHT] + middle,
    )
    if kind == col.LOOP:
        _compare_ends(k, joints, clusters, wide, spans)
    elif kind != col.SUM:
        _compare_joint(kind, joints.poses[g], clusters.world, wide)
    freedoms, dof = 0, 0
    if kind != col.SUM:
        _relative_inertia(n, first, second, wide, m[col.D_MATRIX], closure)
        if kind == col.LOOP:
            loop = row[col.LOOP_NUMBER]
            if not _invert_loop(wide.unit, wide.rank[loop], m, wide.order, wide.limits[loop]):
                wide.stale[0] = 1
        else:
            freedoms, dof, single = joint_freedoms(kind, g, joints)
            if not eliminate(freedoms, single, joints.screws[dof:], joints.resist[dof:], m):
                return False
        store_closure(m, freedoms, joints.torque[dof:], closure)
    _merge_handles(k, kind, middle, nodes, data, closure, wide)
    if clusters.bounds:
        if nodes[k, col.HANDLES] > 0:
            _merge_composites(k, kind, joints, nodes, data, wide)
        weights = joints.weights[dof:]
        _merge_rows(k, kind, middle, first, second, freedoms, weights, nodes, data, closure, wide)
    return True


@_fused
def _merge_composites(k, kind, joints, nodes, data, wide):
    """Inertia and wrench of node k as a rigid body; a loop does not change them."""
    if kind == col.LOOP:
        at, right = nodes[k, col.START] - col.BEFORE, nodes[nodes[k, col.RIGHT], col.START] - col.BEFORE
        for i in range(col.RIGID_INERTIA, col.ENERGY):
            data[at + i] = data[right + i]
        return
    pose = wide.frames[0]
    if kind == col.WELD:
        set_identity(pose)
    else:
        copy_pose(joints.poses[nodes[k, col.GROUP]], pose)
    merge_composite(k, kind, pose, nodes, data, wide.frames[1])


@_fused
def _compare_joint(kind, joint_pose, world, wide):
    """Motion transforms of both sides of a joint or weld: -E and 1; given motion: that of the world, at a ROOT."""
    pose, transforms, vector, given = wide.frames[0], wide.transforms, wide.vector, wide.given
    if kind == col.WELD:
        set_identity(pose)
    else:
        copy_pose(joint_pose, pose)
    motion_transform(pose, -1.0, transforms[0])
    for i in range(6):
        given[i] = 0.0
        for j in range(6):
            transforms[1, i, j] = 1.0 if i == j else 0.0
    if kind == col.ROOT:
        to_child(pose, world, vector)
        for i in range(6):
            given[i] = -vector[i]


@_fused
def _compare_ends(k, joints, clusters, wide, spans):
    """Motion transforms of both ends of a loop to the copy's end frame, and the given motion that closes its gap."""
    nodes = clusters.nodes
    row = wide.table[nodes[k, col.WIDE]]
    loop = row[col.LOOP_NUMBER]
    a, b, end, other, between = wide.frames[0], wide.frames[1], wide.frames[2], wide.frames[3], wide.frames[4]
    copy, body = wide.ends[2 * loop], wide.ends[2 * loop + 1]
    pose_in(wide.leaves[2 * loop], k, nodes, spans, joints.groups, joints.poses, a, other)
    compose(a, copy, end)
    # the copy's end in the body's frame
    if row[col.AT_RIGHT] >= 0:
        pose_in(wide.leaves[2 * loop + 1], k, nodes, spans, joints.groups, joints.poses, b, other)
        relative_pose(b, end, other)
    else:
        copy_pose(end, other)
    relative_pose(body, other, between)  # the identity if the loop is closed
    motion_transform(copy, 1.0, wide.transforms[0])
    motion_transform(other, -1.0, wide.transforms[1])
    gap, vector, given = wide.gap, wide.vector, wide.given
    for i in range(3):
        for j in range(3):
            gap[i, j] = between[3 * i + j]
    gap[0, 3], gap[1, 3], gap[2, 3] = between[9], between[10], between[11]
    se3.se3_log(gap, vector)
    for i in range(6):
        given[i] = vector[i] * wide.rate
    if row[col.AT_RIGHT] < 0:
        to_child(other, clusters.world, vector)
        for i in range(6):
            given[i] -= vector[i]


@_fused
def _relative_inertia(n, first, second, wide, d, closure):
    """J Phi, D = J Phi J^T, and r without forces, from the motion transforms of the handles `first` and `second`."""
    phi, b, transforms, given, relative = wide.phi, wide.bias, wide.transforms, wide.given, wide.relative
    for i in range(6):
        r = given[i]
        for j in range(n):
            relative[i, j] = 0.0
        for side in range(2):
            at = first if side == 0 else second
            if at >= 0:
                for e in range(6):
                    t = transforms[side, i, e]
                    if t != 0.0:
                        r += t * b[6 * at + e]
                        for j in range(n):
                            relative[i, j] += t * phi[6 * at + e, j]
        closure[col.R_AT + i] = r
    for i in range(6):
        for j in range(6):
            total = 0.0
            for side in range(2):
                at = first if side == 0 else second
                if at >= 0:
                    for e in range(6):
                        total += relative[i, 6 * at + e] * transforms[side, j, e]
            d[i, j] = total
    for i in range(6):
        for j in range(i):
            d[i, j] = d[j, i] = 0.5 * (d[i, j] + d[j, i])


@_fused
def _invert_loop(unit, rank, m, order, limits):
    """W = D^-1 on `rank` rows, by pivoted Cholesky; False if pivots have changed so much that the rank may have, too.

    Args:
        unit: one over the length that counts as much as a radian, 1/m.
        rank: of D, see `loop_ranks.py`.
        m: see `arrays.Scratch`; D in (overwritten), W out.
        order: scratch.
        limits: see the columns in `arrays.py`; noted here after a rank was found.
    """
    d, w, low = m[col.D_MATRIX], m[col.W_MATRIX], m[col.SPARE]
    for i in range(6):
        order[i] = i
        for j in range(6):
            d[i, j] *= (unit if i < 3 else 1.0) * (unit if j < 3 else 1.0)
            w[i, j] = 0.0
    least, left = math.inf, 0.0
    for k in range(6):
        best = k
        for i in range(k + 1, 6):
            if d[order[i], order[i]] > d[order[best], order[best]]:
                best = i
        order[k], order[best] = order[best], order[k]
        if best != k:
            for j in range(k):
                low[k, j], low[best, j] = low[best, j], low[k, j]
        p = order[k]
        if k == rank:
            left = d[p, p]
            break
        least = d[p, p]
        if not least > limits[col.ROUND_OFF]:  # all its digits are lost
            rank = k
            break
        low[k, k] = math.sqrt(least)
        for i in range(k + 1, 6):
            low[i, k] = d[order[i], p] / low[k, k]
        for i in range(k + 1, 6):
            for j in range(k + 1, 6):
                d[order[i], order[j]] -= low[i, k] * low[j, k]
    invert_lower(low, 0, rank)
    for i in range(rank):
        for j in range(rank):
            total = 0.0
            for k in range(max(i, j), rank):
                total += low[k, i] * low[k, j]
            a, b = order[i], order[j]
            w[a, b] = total * (unit if a < 3 else 1.0) * (unit if b < 3 else 1.0)
    least = max(least, limits[col.ROUND_OFF])
    if limits[col.PIVOT] < 0.0:
        limits[col.PIVOT], limits[col.REMAINDER] = least, max(left, limits[col.REMAINDER])
    return _CHANGED * least >= limits[col.PIVOT] and left <= _CHANGED * limits[col.REMAINDER]


@_fused
def _merge_handles(k, kind, middle, nodes, data, closure, wide):
    """Inverse inertia and bias at the handles left, and f and r as functions of the forces on them."""
    row = wide.table[nodes[k, col.WIDE]]
    phi, b, relative, force, result, position = (
        wide.phi,
        wide.bias,
        wide.relative,
        wide.force,
        wide.result,
        wide.position,
    )
    h = row[col.ALL_HANDLES]
    columns = 6 * h
    for i in range(h):
        at = wide.source[row[col.SOURCE] + i]
        position[i] = 6 * (at if at < col.OF_RIGHT else at - col.OF_RIGHT + middle)
    o = row[col.CLOSURE]
    for i in range(6):
        for c in range(columns):
            wide.data[o + columns * i + c] = 0.0 if kind == col.SUM else relative[i, position[c // 6] + c % 6]
    for i in range(36):
        wide.data[o + 6 * columns + i] = wide.transforms[0, i // 6, i % 6]
        wide.data[o + 6 * columns + 36 + i] = wide.transforms[1, i // 6, i % 6]
    # f = force [g; 1]
    for i in range(6):
        for c in range(columns + 1):
            total = 0.0
            if kind != col.SUM:
                if c == columns:
                    total = closure[col.UTQ_AT + i]
                for j in range(6):
                    r = closure[col.R_AT + j] if c == columns else wide.data[o + columns * j + c]
                    total -= closure[col.W_AT + 6 * i + j] * r
            force[i, c] = total
    for i in range(columns):
        at = position[i // 6] + i % 6
        for c in range(columns + 1):
            total = b[at] if c == columns else phi[at, position[c // 6] + c % 6]
            if kind != col.SUM:
                for j in range(6):
                    total += relative[j, at] * force[j, c]
            result[i, c] = total
    if row[col.IS_WIDE] == 1:
        o = row[col.RECORD]
        for i in range(columns):
            for c in range(columns):
                wide.data[o + columns * i + c] = 0.5 * (result[i, c] + result[c, i])
            wide.data[o + columns * columns + i] = result[i, columns]
        return
    o = nodes[k, col.START]
    for part in range(h):
        for i in range(6):
            for j in range(6):
                mean = 0.5 * (result[6 * part + i, 6 * part + j] + result[6 * part + j, 6 * part + i])
                data[o + col.HANDLE_STRIDE * part + col.PHI + 6 * i + j] = mean
            data[o + col.HANDLE_STRIDE * part + col.BIAS + i] = result[6 * part + i, columns]
    if h == 2:
        for i in range(6):
            for j in range(6):
                data[o + col.PHI12 + 6 * i + j] = result[i, 6 + j]


@_fused
def _merge_rows(k, kind, middle, first, second, freedoms, weights, nodes, data, closure, wide):
    """Rows of the total acceleration in terms of the forces on the handles left (see `_merge.py`)."""
    row = wide.table[nodes[k, col.WIDE]]
    rows, force, position = wide.rows, wide.force, wide.position
    columns = 6 * row[col.ALL_HANDLES] + 1
    n = 0
    for side in range(2):
        child = nodes[k, col.LEFT + side]
        if child < 0 or nodes[child, col.KIND] == col.LEAF:
            continue
        hc, w = wide_row(child, nodes, wide.table)
        source, at = data, rows_start(child, nodes)
        if w >= 0:
            source, at = wide.data, wide.table[w, col.METRIC_AT]
        begin = 0 if side == 0 else 6 * middle
        for _ in range(nodes[child, col.ROWS]):
            for c in range(columns - 1):
                p = position[c // 6] - begin
                rows[n, c] = source[at + p + c % 6] if 0 <= p < 6 * hc else 0.0
            rows[n, columns - 1] = source[at + 6 * hc]
            if kind != col.SUM:
                for end in range(2):
                    p = 6 * (first if end == 0 else second) - begin
                    if 0 <= p < 6 * hc and (first if end == 0 else second) >= 0:
                        for i in range(6):
                            total = 0.0
                            for j in range(6):
                                total += wide.transforms[end, i, j] * source[at + p + j]
                            for c in range(columns):
                                rows[n, c] += total * force[i, c]
            at += 6 * hc + 1
            n += 1
    o = row[col.CLOSURE]
    for q in range(freedoms):
        for c in range(columns):
            total = closure[col.SQ_AT + col.FREEDOM_STRIDE * q] if c == columns - 1 else 0.0
            for i in range(6):
                r = closure[col.R_AT + i] if c == columns - 1 else wide.data[o + (columns - 1) * i + c]
                total += closure[col.U_AT + col.FREEDOM_STRIDE * q + i] * r
            rows[n, c] = weights[q] * total
        n += 1
    if n > columns:
        _triangularize(rows.T, n, columns)
        n = columns
    target, o = data, rows_start(k, nodes)
    if row[col.IS_WIDE] == 1:
        target, o = wide.data, row[col.METRIC_AT]
    for i in range(n):
        for c in range(columns):
            target[o + columns * i + c] = rows[i, c]


@_fused
def _triangularize(a, n, columns):
    """Make the transpose of `a` (columns, n) upper triangular by Householder reflections from the left."""
    for k in range(columns):
        beta, alpha = householder(a[k], k, n)
        if alpha == 0.0:
            continue
        reflect_rows(a[k], beta, k, n, a, k + 1, columns)
        for i in range(k + 1, n):
            a[k, i] = 0.0
        a[k, k] = alpha


@_fused
def back_substitute_wide(k, nodes, groups, data, length, qdd, wide):
    """Acceleration of the joint of node k and the forces on its children's handles; see `_merge.back_substitute`."""
    kind, left, right, g = nodes[k, col.KIND], nodes[k, col.LEFT], nodes[k, col.RIGHT], nodes[k, col.GROUP]
    row = wide.table[nodes[k, col.WIDE]]
    start = nodes[k, col.START]
    closure = closure_of(start, length, data)
    r, f = wide.given, wide.vector
    h, o = row[col.ALL_HANDLES], row[col.CLOSURE]
    size, columns = 0.0, 6 * h
    own = wide.forces[row[col.FORCES] : row[col.FORCES] + columns]
    if row[col.IS_WIDE] == 0:
        for i in range(columns):
            own[i] = data[start - col.BEFORE + i]
    if kind != col.SUM:
        for i in range(6):
            total = closure[col.R_AT + i]
            for c in range(columns):
                total += wide.data[o + columns * i + c] * own[c]
            r[i] = total
        if g >= 0:
            size = joint_accelerations(closure, r, groups[g, col.DOFS], qdd[groups[g, col.DOF] :])
        for i in range(6):
            total = closure[col.UTQ_AT + i]
            for j in range(6):
                total -= closure[col.W_AT + 6 * i + j] * r[j]
            f[i] = total
    for side in range(2):
        child = left if side == 0 else right
        if child < 0:
            continue
        hc, w = wide_row(child, nodes, wide.table)
        out = data[nodes[child, col.START] - col.BEFORE : nodes[child, col.START]]
        if w >= 0:
            out = wide.forces[wide.table[w, col.FORCES] : wide.table[w, col.FORCES] + 6 * hc]
        for i in range(6 * hc):
            out[i] = 0.0
        for i in range(h):
            at = wide.source[row[col.SOURCE] + i] - col.OF_RIGHT * side
            if 0 <= at < col.OF_RIGHT:
                for j in range(6):
                    out[6 * at + j] += own[6 * i + j]
        for end in range(2):
            at = row[col.AT_LEFT + end]
            if at < 0 or kind == col.SUM or (kind != col.LOOP and end != side):
                continue
            for j in range(6):
                total = 0.0
                for i in range(6):
                    total += wide.data[o + 6 * columns + 36 * end + 6 * i + j] * f[i]
                out[6 * at + j] += total
    return size


@_fused
def total_acceleration_wide(k, nodes, wide):
    """Total acceleration of a cluster whose record is wide, under the forces on its handles."""
    row = wide.table[nodes[k, col.WIDE]]
    return squared_rows(
        nodes[k, col.ROWS],
        6 * row[col.ALL_HANDLES] + 1,
        wide.data,
        row[col.METRIC_AT],
        wide.forces,
        row[col.FORCES],
    )


# --- ranks of loops


@_jit
def find_ranks(plan, operators, out):
    """Rank of the rows that every node holds: independent of each other and of those held in its children.

    Args:
        plan: see `arrays.RankPlan`.
        operators: rows that a node holds of the motions of the two handles compared, (nodes, 2, 6, 6).
        out: ranks, (nodes,).
    """
    nodes, factors, columns, f, g, c = (
        plan.nodes,
        plan.factors,
        plan.columns,
        plan.both,
        plan.left,
        plan.held,
    )
    for k in range(nodes.shape[0]):
        node = nodes[k]
        rows, held, r = 6 * (node[col.CHILD_HANDLES] + node[col.CHILD_HANDLES + 1]), node[col.HELD], 0
        for i in range(rows):
            for j in range(rows):
                f[i, j] = 0.0
        for side in range(2):
            child, first = node[col.CHILDREN + side], 6 * node[col.CHILD_HANDLES] * side
            m = 6
            if child != col.FREE:
                m = columns[child]
            if node[col.CHILD_HANDLES + side] == 0:
                m = 0
            for i in range(6 * node[col.CHILD_HANDLES + side]):
                for j in range(m):
                    x = 1.0 if i == j else 0.0
                    if child != col.FREE:
                        x = factors[nodes[child, col.FACTOR_AT] + m * i + j]
                    f[first + i, r + j] = x
            r += m
        for i in range(held):
            for j in range(r):
                c[i, j] = 0.0
            for side in range(2):
                at = 6 * node[col.COMPARED + side]
                if at >= 0:
                    for e in range(6):
                        for j in range(r):
                            c[i, j] += operators[k, side, i, e] * f[at + e, j]
        rank = 0
        while rank < held:
            best, most = rank, -1.0
            for i in range(rank, held):
                size = 0.0
                for j in range(rank, r):
                    size += c[i, j] * c[i, j]
                if size > most:
                    best, most = i, size
            if not most > _REDUNDANT * _REDUNDANT:
                break
            for j in range(r):
                c[rank, j], c[best, j] = c[best, j], c[rank, j]
            beta, _ = householder(c[rank], rank, r)
            reflect_rows(c[rank], beta, rank, r, c, rank + 1, held)
            reflect_rows(c[rank], beta, rank, r, f, 0, rows)
            rank += 1
        out[k] = rank
        # F at the handles left, without the columns held, made no wider than high by reflections
        n, m = 6 * node[col.KEPT], r - rank
        for i in range(n):
            at = 6 * plan.kept[node[col.KEPT_AT] + i // 6] + i % 6
            for j in range(m):
                g[i, j] = f[at, rank + j]
        if m > n:
            _triangularize(g, m, n)
            m = n
        for i in range(n):
            for j in range(m):
                factors[node[col.FACTOR_AT] + m * i + j] = g[i, j]
        columns[k] = m
