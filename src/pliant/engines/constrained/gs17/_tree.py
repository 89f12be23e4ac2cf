"""Linear-time solve of a step over the spanning tree, bordered by the rows of loops, couplings and tendons."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pliant.compilation import njit

_jit = njit(counts_references=True, error_model="numpy")

# columns of joints: body i, body j (the world is body n), the joint's first row and the one after its last
PARENT, CHILD, FIRST, END = 0, 1, 2, 3
_DROP = 1e-11  # share of a row's free mobility below which it is redundant


class Tree(NamedTuple):
    """System of the tree, (n bodies, r rows), and its factors: `[A -Jᵀ; J Σ]` (GS17 Eqs. 3 and 15).

    Attributes:
        order: joints of the spanning tree, parents first.
        joints: PARENT, CHILD, FIRST, END of every joint, (joints, 4).
        J: Jacobian of rows: linear and angular of body i, then of body j, (r, 12).
        sigma: compliance Σ of rows, (r,).
        A: effective mass M̃ of bodies, world axes about the centre of mass, (n, 6, 6); its Cholesky factor.
        W: `J_c L⁻ᵀ` of every joint, (joints, 9, 6).
        D: Cholesky factor of `Σ + J_c A⁻¹ J_cᵀ`, (joints, 9, 9).
        U: `D⁻¹ J_p`, (joints, 9, 6).
    """

    order: NDArray[np.int64]
    joints: NDArray[np.int64]
    J: NDArray[np.float64]
    sigma: NDArray[np.float64]
    A: NDArray[np.float64]
    W: NDArray[np.float64]
    D: NDArray[np.float64]
    U: NDArray[np.float64]


class Border(NamedTuple):
    """Rows outside the tree: of joints that close loops, of couplings and of tendons (b rows, p pieces).

    Attributes:
        ends: bodies i and j that a piece acts on, (p, 2).
        row: row of a piece, ascending, (p,).
        pieces: Jacobian of a piece, (p, 12); a row is the sum of its pieces.
        sigma, g: compliance and right-hand side of rows, (b,).
        schur: complement over these rows, (b, b).
        impulse: their multipliers times h, (b,).
        size: diagonal of the complement if bodies were free, (b,).
        bodies, rows: scratch, right-hand sides of the tree, (n + 1, 6) and (r,).
    """

    ends: NDArray[np.int64]
    row: NDArray[np.int64]
    pieces: NDArray[np.float64]
    sigma: NDArray[np.float64]
    g: NDArray[np.float64]
    schur: NDArray[np.float64]
    impulse: NDArray[np.float64]
    size: NDArray[np.float64]
    bodies: NDArray[np.float64]
    rows: NDArray[np.float64]


@_jit
def cholesky(A, n):
    """Lower factor of the leading n x n, in place."""
    for j in range(n):
        for k in range(j):
            l = A[j, k]
            for i in range(j, n):
                A[i, j] -= A[i, k] * l
        pivot = 1.0 / np.sqrt(A[j, j])
        for i in range(j, n):
            A[i, j] *= pivot


@_jit
def forward(L, n, b):
    """`b = L⁻¹ b`."""
    for i in range(n):
        total = b[i]
        for k in range(i):
            total -= L[i, k] * b[k]
        b[i] = total / L[i, i]


@_jit
def backward(L, n, b):
    """`b = L⁻ᵀ b`."""
    for i in range(n - 1, -1, -1):
        total = b[i]
        for k in range(i + 1, n):
            total -= L[k, i] * b[k]
        b[i] = total / L[i, i]


@_jit
def tree_factor(tree):
    """Factor the tree from the tips: A, W, D, U become factors. Positive definite throughout, so without pivots.

    A tip is `v = A⁻¹ (b + J_cᵀ l)`; its joint `D l = g - J_c A⁻¹ b - J_p v_p`, `D = Σ + J_c A⁻¹ J_cᵀ`; the parent
    gets `J_pᵀ D⁻¹ J_p`.
    """
    order, joints, J, A = tree.order, tree.joints, tree.J, tree.A
    n = A.shape[0]
    for o in range(order.shape[0] - 1, -1, -1):
        joint = order[o]
        p, c, first = joints[joint, PARENT], joints[joint, CHILD], joints[joint, FIRST]
        m = joints[joint, END] - first
        body, w, d, u = A[c], tree.W[joint], tree.D[joint], tree.U[joint]
        cholesky(body, 6)
        for a in range(m):
            for k in range(6):
                w[a, k] = J[first + a, 6 + k]
            forward(body, 6, w[a])
            for b in range(a + 1):
                total = 0.0
                for k in range(6):
                    total += w[a, k] * w[b, k]
                d[a, b] = total
            d[a, a] += tree.sigma[first + a]
        cholesky(d, m)
        if p == n:
            continue
        for a in range(m):
            for k in range(6):
                u[a, k] = J[first + a, k]
            for b in range(a):
                l = d[a, b]
                for k in range(6):
                    u[a, k] -= l * u[b, k]
            l = 1.0 / d[a, a]
            for k in range(6):
                u[a, k] *= l
        above = A[p]
        for a in range(m):
            for i in range(6):
                for k in range(i + 1):
                    above[i, k] += u[a, i] * u[a, k]


@_jit
def tree_solve(tree, b, g, v, lam):
    """Velocities v and row impulses of the factored tree; right-hand sides b (n + 1, 6) and g are overwritten."""
    order, joints, A, W, D, U = tree.order, tree.joints, tree.A, tree.W, tree.D, tree.U
    n = A.shape[0]
    for o in range(order.shape[0] - 1, -1, -1):
        joint = order[o]
        p, c, first = joints[joint, PARENT], joints[joint, CHILD], joints[joint, FIRST]
        m = joints[joint, END] - first
        forward(A[c], 6, b[c])
        t = g[first : first + m]
        for a in range(m):
            for k in range(6):
                t[a] -= W[joint, a, k] * b[c, k]
        forward(D[joint], m, t)
        if p < n:
            for a in range(m):
                for k in range(6):
                    b[p, k] += U[joint, a, k] * t[a]
    v[n] = 0.0
    for o in range(order.shape[0]):
        joint = order[o]
        p, c, first = joints[joint, PARENT], joints[joint, CHILD], joints[joint, FIRST]
        m = joints[joint, END] - first
        for a in range(m):
            lam[first + a] = g[first + a]
            if p < n:
                for k in range(6):
                    lam[first + a] -= U[joint, a, k] * v[p, k]
        backward(D[joint], m, lam[first : first + m])
        for k in range(6):
            total = b[c, k]
            for a in range(m):
                total += W[joint, a, k] * lam[first + a]
            v[c, k] = total
        backward(A[c], 6, v[c])


@_jit
def tree_step(tree, border, b, g, v, lam):
    """Velocities and row impulses of the whole system: the tree, and a Schur complement over the border's rows."""
    ends, row, pieces, schur = border.ends, border.row, border.pieces, border.schur
    impulse, size, bodies, rows = border.impulse, border.size, border.bodies, border.rows
    count, n = border.g.shape[0], tree.A.shape[0]
    for r in range(count):
        size[r] = border.sigma[r]
    for t in range(pieces.shape[0]):
        for side in range(2):
            if ends[t, side] < n:
                for k in range(6):
                    size[row[t]] += pieces[t, 6 * side + k] ** 2 / tree.A[ends[t, side], k, k]
    tree_factor(tree)
    if count > 0:
        first = 0
        for r in range(count):
            bodies[:] = 0.0
            rows[:] = 0.0
            while first < pieces.shape[0] and row[first] == r:
                for k in range(6):
                    bodies[ends[first, 0], k] += pieces[first, k]
                    bodies[ends[first, 1], k] += pieces[first, 6 + k]
                first += 1
            tree_solve(tree, bodies, rows, v, lam)
            for s in range(count):
                schur[s, r] = 0.0
            _add_rates(ends, row, pieces, v, schur[:, r], 1.0)
            schur[r, r] += border.sigma[r]
        for k in range(b.shape[0]):
            for c in range(6):
                bodies[k, c] = b[k, c]
        for k in range(g.shape[0]):
            rows[k] = g[k]
        tree_solve(tree, bodies, rows, v, lam)
        for r in range(count):
            impulse[r] = border.g[r]
        _add_rates(ends, row, pieces, v, impulse, -1.0)
        semidefinite_solve(schur, impulse, size, _DROP)
        for t in range(pieces.shape[0]):
            for k in range(6):
                b[ends[t, 0], k] += pieces[t, k] * impulse[row[t]]
                b[ends[t, 1], k] += pieces[t, 6 + k] * impulse[row[t]]
    tree_solve(tree, b, g, v, lam)


@_jit
def _add_rates(ends, row, pieces, v, out, sign):
    """`out += sign J v` of the border's rows."""
    for t in range(pieces.shape[0]):
        total = 0.0
        for k in range(6):
            total += pieces[t, k] * v[ends[t, 0], k] + pieces[t, 6 + k] * v[ends[t, 1], k]
        out[row[t]] += sign * total


@_jit
def semidefinite_solve(S, b, size, drop):
    """`b = S⁻¹ b` for a symmetric, perhaps singular S: pivoted Cholesky, multipliers of redundant rows are zero.

    A row is redundant if its pivot is below `drop` times `size`, the diagonal with all bodies free. A closed planar
    loop of hinges has three of them.
    """
    n = S.shape[0]
    scale = np.empty(n)
    place = np.arange(n)
    for i in range(n):
        scale[i] = 1.0 / np.sqrt(size[i]) if size[i] > 0.0 else 0.0
        b[i] *= scale[i]
    for i in range(n):
        for j in range(n):
            S[i, j] *= scale[i] * scale[j]
    rank = n
    for k in range(n):
        best = k
        for i in range(k + 1, n):
            if S[i, i] > S[best, best]:
                best = i
        if not S[best, best] > drop:
            rank = k
            break
        if best != k:
            for i in range(n):
                S[k, i], S[best, i] = S[best, i], S[k, i]
            for i in range(n):
                S[i, k], S[i, best] = S[i, best], S[i, k]
            b[k], b[best] = b[best], b[k]
            place[k], place[best] = place[best], place[k]
        pivot = np.sqrt(S[k, k])
        S[k, k] = pivot
        for i in range(k + 1, n):
            S[i, k] /= pivot
        for j in range(k + 1, n):
            l = S[j, k]
            for i in range(j, n):
                S[i, j] -= S[i, k] * l
                S[j, i] = S[i, j]
    forward(S, rank, b)
    backward(S, rank, b)
    out = np.zeros(n)
    for k in range(rank):
        out[place[k]] = b[k]
    for i in range(n):
        b[i] = out[i] * scale[i]
