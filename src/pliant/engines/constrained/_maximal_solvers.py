"""Linear systems of maximal coordinates, compiled: small Cholesky factors, elimination along a tree, repeated rows.

The system of a step is `[M̃ -Jᵀ; J Σ][v₊; hλ] = [b; g]` (GS17 Eqs. 2 and 15). Rows and bodies are laid out as in
`maximal.Maximal`; arrays over bodies have the world at the end, whose velocity is zero.
"""

import numpy as np

from pliant.compilation import njit

_jit = njit(error_model="numpy")


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
def tree_factor(order, joints, J, sigma, A, W, D, U):
    """Eliminate bodies and tree joints from the tips: A, W, D, U become factors. Positive definite throughout.

    A tip is `v = A⁻¹ (b + J_cᵀ l)`; its joint `D l = g - J_c A⁻¹ b - J_p v_p`, `D = Σ + J_c A⁻¹ J_cᵀ`; the parent
    gets `J_pᵀ D⁻¹ J_p`.
    """
    n = A.shape[0]
    for o in range(order.shape[0] - 1, -1, -1):
        joint = order[o]
        p, c, first = joints[joint, 0], joints[joint, 1], joints[joint, 2]
        m = joints[joint, 3] - first
        body, w, d, u = A[c], W[joint], D[joint], U[joint]
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
            d[a, a] += sigma[first + a]
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
def tree_solve(order, joints, A, W, D, U, b, g, v, lam):
    """Velocities and row impulses of the tree for right-hand sides b (n + 1, 6) and g, which are spoilt."""
    n = A.shape[0]
    for o in range(order.shape[0] - 1, -1, -1):
        joint = order[o]
        p, c, first = joints[joint, 0], joints[joint, 1], joints[joint, 2]
        m = joints[joint, 3] - first
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
        p, c, first = joints[joint, 0], joints[joint, 1], joints[joint, 2]
        m = joints[joint, 3] - first
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
def tree_step(
    order,
    joints,
    J,
    sigma,
    A,
    W,
    D,
    U,
    b,
    g,
    ends,
    piece_row,
    pieces,
    tie_sigma,
    tie_g,
    S,
    l,
    size,
    work,
    gwork,
    v,
    lam,
):
    """The whole system: the tree, and a small Schur complement over rows that close loops and tie joints.

    `pieces` (count, 12) are the Jacobians of these rows, row by row (`piece_row`, ascending), on the bodies `ends`.
    """
    count = tie_g.shape[0]
    for r in range(count):
        size[r] = tie_sigma[r]
    for t in range(pieces.shape[0]):
        for side in range(2):
            if ends[t, side] < A.shape[0]:
                for k in range(6):
                    size[piece_row[t]] += pieces[t, 6 * side + k] ** 2 / A[ends[t, side], k, k]
    tree_factor(order, joints, J, sigma, A, W, D, U)
    if count > 0:
        first = 0
        for r in range(count):
            work[:] = 0.0
            gwork[:] = 0.0
            while first < pieces.shape[0] and piece_row[first] == r:
                for k in range(6):
                    work[ends[first, 0], k] += pieces[first, k]
                    work[ends[first, 1], k] += pieces[first, 6 + k]
                first += 1
            tree_solve(order, joints, A, W, D, U, work, gwork, v, lam)
            for s in range(count):
                S[s, r] = 0.0
            _gather(ends, piece_row, pieces, v, S[:, r], 1.0)
            S[r, r] += tie_sigma[r]
        for k in range(b.shape[0]):
            for c in range(6):
                work[k, c] = b[k, c]
        for k in range(g.shape[0]):
            gwork[k] = g[k]
        tree_solve(order, joints, A, W, D, U, work, gwork, v, lam)
        for r in range(count):
            l[r] = tie_g[r]
        _gather(ends, piece_row, pieces, v, l, -1.0)
        semidefinite_solve(S, l, size, 1e-11)
        for t in range(pieces.shape[0]):
            for k in range(6):
                b[ends[t, 0], k] += pieces[t, k] * l[piece_row[t]]
                b[ends[t, 1], k] += pieces[t, 6 + k] * l[piece_row[t]]
    tree_solve(order, joints, A, W, D, U, b, g, v, lam)


@_jit
def _gather(ends, piece_row, pieces, v, out, sign):
    for t in range(pieces.shape[0]):
        total = 0.0
        for k in range(6):
            total += pieces[t, k] * v[ends[t, 0], k] + pieces[t, 6 + k] * v[ends[t, 1], k]
        out[piece_row[t]] += sign * total


@_jit
def semidefinite_solve(S, b, size, drop):
    """`b = S⁻¹ b` for a symmetric S that may be singular: Cholesky with pivots, rows below `drop` get nothing.

    `size` is what the diagonal would be if the bodies were free; `drop` is a share of it. A closed planar loop of
    hinges says some things twice: some of its rows then carry no force.
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
