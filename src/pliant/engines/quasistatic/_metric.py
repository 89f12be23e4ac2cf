"""Total acceleration of clusters (RL05 section 4.1), as the square root it is the square of.

The total acceleration of a cluster is the sum of `(weight qdd)^2` over the joints inside, a quadratic function of the
forces on its handles. RL05 Eqs. 8-9 keep its coefficients. They lose half the digits, and near an equilibrium, where
accelerations are small differences of large terms, all of them; the sum may even come out negative. Kept here are rows
L with `|L [f; 1]|^2` the same: one per joint as long as these are few, then as many as there are columns, by an
orthogonal transformation.
"""

import math

from pliant.compilation import njit
from pliant.engines.quasistatic._joint_kernels import seen
from pliant.engines.quasistatic._vectors import combine, reflect
from pliant.engines.quasistatic.assembly import ROOT

_jit = njit(error_model="numpy", nogil=True, fastmath={"contract"})

# scratch for rows: those of both children and of the joint, then r and f (see `_kernels.py`), then a pose
R, F, ROW_SPACE = 34, 40, 47


@_jit
def total_rows(k, kind, nodes, data, joint, freedoms, weights, dof, pose, rows, m, spare):
    """Rows of the total acceleration of node k, in terms of the forces on its own handles.

    RL05 Eqs. 8-9 as a square root: rows of both children with their forces replaced, rows of the joint; where there
    are more rows than columns, an orthogonal transformation leaves as many as there are columns.
    """
    handles = nodes[k, 5]
    columns = 6 * handles + 1
    n = 0
    if kind != ROOT:
        child = nodes[k, 1]
        ha, count = nodes[child, 5], nodes[child, 7]
        at = nodes[child, 6] + (42 if ha == 1 else 132)
        for _ in range(count):
            # forces on A: g1, and minus f at the joint; l E^T f = (E l) f
            o = at + 6 * ha - 6
            e0, e1, e2, e3, e4, e5 = seen(
                pose, data[o], data[o + 1], data[o + 2], data[o + 3], data[o + 4], data[o + 5]
            )
            m[4, 0, 0], m[4, 0, 1], m[4, 0, 2], m[4, 0, 3], m[4, 0, 4], m[4, 0, 5] = e0, e1, e2, e3, e4, e5
            combine(rows, n, m, 144, F, -1.0)
            if handles > 0:
                for i in range(6):
                    rows[n, i] += data[at + i]
            rows[n, columns - 1] += data[at + 6 * ha]
            at += 6 * ha + 1
            n += 1
    child = nodes[k, 2]
    hb, count = nodes[child, 5], nodes[child, 7]
    at = nodes[child, 6] + (42 if hb == 1 else 132)
    for _ in range(count):
        # forces on B: f at the joint, and g2
        combine(rows, n, data, at, F, 1.0)
        if handles == 2:
            for i in range(6):
                rows[n, 6 + i] += data[at + 6 * hb - 6 + i]
        rows[n, columns - 1] += data[at + 6 * hb]
        at += 6 * hb + 1
        n += 1
    for q in range(freedoms):
        # qdd = s Q + U r
        weight = weights[dof + q]
        combine(rows, n, m, 108 + 6 * q, R, weight)
        rows[n, columns - 1] += weight * joint[78 + q]
        n += 1
    if n > columns:
        if handles > 0:
            _triangle(rows, n, columns, spare)
        else:
            x = 0.0
            for i in range(n):
                x += rows[i, 0] * rows[i, 0]
            rows[0, 0] = math.sqrt(x)
        n = columns
    o = nodes[k, 6] + (0 if handles == 0 else (42 if handles == 1 else 132))
    for i in range(n):
        for j in range(columns):
            data[o + j] = rows[i, j]
        o += columns


@_jit
def _triangle(a, n, columns, v):
    """Householder: `a` (n, columns) upper triangular, up to an orthogonal factor from the left.

    All columns take part every time, padding and finished ones too: they hold zeros where it matters. `v` is
    scratch.
    """
    for k in range(columns):
        size = 0.0
        for i in range(k, n):
            x = a[i, k]
            v[i] = x
            size += x * x
        if size == 0.0:
            continue
        size = math.sqrt(size)
        alpha = -size if v[k] > 0.0 else size
        v[k] -= alpha
        reflect(a, v, k, n, 1.0 / (alpha * v[k]))
        for i in range(k + 1, n):
            a[i, k] = 0.0
        a[k, k] = alpha


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
