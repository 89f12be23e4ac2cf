"""Rows that border the tree: loops, couplings and tendons, eliminated with it (`pliant.mechanism.elimination`).

Loops are cut at a body: a copy of it, with its share of the mass, must coincide with it (see `packing`). Rows of loops
come first, six each (position over the size of the loop, then rotation), then couplings, then tendons, whose rows give
way in proportion to their multipliers.
"""

import math

from pliant.compilation import njit
from pliant.engines.constrained import _aba
from pliant.engines.constrained import arrays as col
from pliant.engines.constrained._links import add_vector, axis, between, matrix, symmetric, vector
from pliant.mechanism import elimination_kernels as elimination
from pliant.mechanism.links import LINK_BALL, LINK_FIXED, LINK_HINGE
from pliant.spatial import kernels as se3

_jit = njit(error_model="numpy", nogil=True, fastmath={"contract"})
_sums = njit(
    error_model="numpy", nogil=True, fastmath={"contract", "reassoc"}
)  # reassociated: in vector registers
# Remainder of a redundant row, rad or loop sizes: with closed loops, per gap of open loops, at most.
_REDUNDANT, _OPEN, _COARSEST = 1e-9, 10.0, 1e-3
_CLOSED = 1e-6  # the same of rows that were kept before, at most
LONGEST = 0.5  # step that closes loops, rad or radii, beyond which they are closed by a part only
_ROUNDING = 1e-15  # least pivot, as a fraction of the row's diagonal


@_jit
def loop_gaps(loops, work, small, out):
    """Gaps of loops: position of copies from bodies over the loop's size, rotation vector. Returns the largest."""
    largest, turn, log = 0.0, small[:3], small[3]
    for n in range(loops.shape[0]):
        a, b = int(loops[n, col.LOOP_COPY]), int(loops[n, col.LOOP_BODY])
        x, y, z = vector(loops, n, col.LOOP_POINT)
        unit = loops[n, col.LOOP_UNIT]
        for i in range(3):
            rx, ry, rz = vector(work, b, col.W_ROTATION + 3 * i)
            at = work[b, col.W_POSITION + i] + rx * x + ry * y + rz * z
            out[6 * n + i] = (work[a, col.W_POSITION + i] - at) / unit
        # R_a E R_bᵀ
        e00, e01, e02, e10, e11, e12, e20, e21, e22 = matrix(loops, n, col.LOOP_ROTATION)
        for i in range(3):
            rx, ry, rz = vector(work, a, col.W_ROTATION + 3 * i)
            ex, ey, ez = (
                rx * e00 + ry * e10 + rz * e20,
                rx * e01 + ry * e11 + rz * e21,
                rx * e02 + ry * e12 + rz * e22,
            )
            for j in range(3):
                bx, by, bz = vector(work, b, col.W_ROTATION + 3 * j)
                turn[i, j] = ex * bx + ey * by + ez * bz
        se3.so3_log(turn, log)
        for i in range(3):
            out[6 * n + 3 + i] = log[i]
        for i in range(6):
            largest = max(largest, abs(out[6 * n + i]))
    return largest


@_jit
def loop_tension(loops, multipliers, t, work):
    """Add the forces that close loops to W_FORCE, and their tension."""
    for n in range(loops.shape[0]):
        a, b = int(loops[n, col.LOOP_COPY]), int(loops[n, col.LOOP_BODY])
        unit = loops[n, col.LOOP_UNIT]
        fx, fy, fz = multipliers[6 * n] / unit, multipliers[6 * n + 1] / unit, multipliers[6 * n + 2] / unit
        add_vector(work, a, col.W_FORCE, fx, fy, fz)
        add_vector(work, b, col.W_FORCE, -fx, -fy, -fz)
        x, y, z = between(work, a, b)
        _aba.add_tension(work, b, x, y, z, -fx, -fy, -fz, t)


@_jit
def geometry(links, work, border):
    """Origins of links and unit twists of dofs, from kinematics."""
    position, screw = border.matrix.position, border.matrix.screw
    for k in range(links.shape[0]):
        kind, d = links[k, col.KIND], links[k, col.DOF]
        for i in range(3):
            position[k, i] = work[k, col.W_POSITION + i]
        for j in range(3 if kind == LINK_BALL else 0 if kind == LINK_FIXED else 1):
            x, y, z = axis(work, k, j if kind == LINK_BALL else 2)
            at, other = (3, 0) if kind in (LINK_BALL, LINK_HINGE) else (0, 3)
            screw[d + j, at], screw[d + j, at + 1], screw[d + j, at + 2] = x, y, z
            screw[d + j, other] = screw[d + j, other + 1] = screw[d + j, other + 2] = 0.0


@_jit
def choose_rows(links, poses, border, gap, hard, soft, flags):
    """Choose independent rows among the `hard` ones at these poses of links, and the tendons that `soft` marks.

    A row is redundant if its remainder, in radians and loop sizes, is less than 1e-9; or than ten times the gap, where
    loops are open: rows that are redundant in closed loops are then known no better. A row that was kept while loops
    were closed, as `flags` (m,) tell, stays while they are open. Returns the smallest remainder of the rows kept.
    """
    geometry(links, poses, border)
    fronts, matrix = border.fronts, border.matrix
    tolerance = min(max(_OPEN * gap, _REDUNDANT), _COARSEST)
    for r in range(flags.shape[0]):
        fronts.kept[r] = int(flags[r])
    smallest = elimination.choose_rows(
        border.tree,
        fronts,
        matrix.position,
        matrix.screw,
        border.unit,
        tolerance,
        min(tolerance, _CLOSED),
        hard,
        soft,
    )
    for r in range(hard):
        flags[r] = fronts.kept[r]
    return smallest


@_jit
def set_rows(border, hard, soft, flags):
    """Rows as they were chosen before."""
    kept, same = border.fronts.kept, True
    for r in range(kept.shape[0]):
        wanted = int(flags[r]) if r < hard else soft[r]
        if kept[r] != wanted:
            kept[r], same = wanted, False
    if not same:
        elimination.set_rows(border.tree, border.fronts)


@_jit
def count_kept(border, hard):
    """Number of the `hard` rows that are kept."""
    count = 0
    for r in range(hard):
        count += border.fronts.kept[r]
    return count


@_jit
def moved(links, dofs, q, before):
    """Largest change of a coordinate, rad or radii."""
    largest = 0.0
    for k in range(links.shape[0]):
        kind, c = links[k, col.KIND], links[k, col.COORDINATE]
        if kind == LINK_BALL:
            for i in range(c, c + 4):
                largest = max(largest, 2.0 * abs(q[i] - before[i]))
        elif kind != LINK_FIXED:
            largest = max(largest, abs(q[c] - before[c]) * dofs[links[k, col.DOF], col.UNIT])
    return largest


@_jit
def tree_matrix(links, t, work, border, force):
    """Matrix of the tree, forces on links and generalised forces `force`, after `residual` and `springs`.

    The same terms as in `_aba.factor`; `t` is half the step.
    """
    geometry(links, work, border)
    tangent, stiffness = border.matrix.tangent, border.matrix.stiffness
    column, row, given = border.matrix.column, border.matrix.row, border.motion.force
    for k in range(links.shape[0] - 1, -1, -1):
        p, kind, d = links[k, col.PARENT], links[k, col.KIND], links[k, col.DOF]
        for i in range(3):
            given[k, i] = -work[k, col.W_RIGHT_FORCE + i]
            given[k, 3 + i] = -work[k, col.W_RIGHT_TORQUE + i]
        if kind == LINK_BALL:
            sxx, sxy, sxz, syy, syz, szz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            tx, ty, tz = 0.0, 0.0, 0.0
            if links[k, col.SPRUNG]:
                sxx, sxy, sxz, syy, syz, szz = symmetric(work, k, col.W_SPRING)
                tx, ty, tz = vector(work, k, col.W_SPRING_TORQUE)
            for i in range(3):
                x, y, z = axis(work, k, i)
                force[d + i] = -(x * tx + y * ty + z * tz)
                ux, uy, uz = (
                    sxx * x + sxy * y + sxz * z,
                    sxy * x + syy * y + syz * z,
                    sxz * x + syz * y + szz * z,
                )
                for j in range(3):
                    x, y, z = axis(work, k, j)
                    stiffness[d + i, j] = x * ux + y * uy + z * uz
        elif kind != LINK_FIXED:
            stiffness[d, 0] = work[k, col.W_SPRING]
            force[d] = -work[k, col.W_SPRING_TORQUE]
            if kind == LINK_HINGE:
                # A torque across the hinge couples its turn with its parent's, by half (a x T); with as much
                # inertia in both as keeps the matrix positive.
                x, y, z = axis(work, k, 2)
                mx, my, mz = vector(work, k, col.W_TORQUE)
                nx, ny, nz = y * mz - z * my, z * mx - x * mz, x * my - y * mx
                size, half = math.sqrt(nx * nx + ny * ny + nz * nz), 0.5 * t
                column[d, 3], column[d, 4], column[d, 5] = -half * nx, -half * ny, -half * nz
                row[d, 3], row[d, 4], row[d, 5] = -half * nx, -half * ny, -half * nz
                stiffness[d, 0] += half * size
                if size > 0.0 and p >= 0:
                    half /= size
                    add_vector(work, p, col.W_ANGULAR, half * nx * nx, half * nx * ny, half * nx * nz)
                    add_vector(work, p, col.W_ANGULAR + 3, half * ny * ny, half * ny * nz, half * nz * nz)
        _put_inertia(work, k, tangent)
        if p >= 0:
            sx, sy, sz = vector(work, k, col.W_ARM)
            fx, fy, fz = vector(work, k, col.W_FORCE)
            tx, ty, tz = vector(work, k, col.W_TORQUE)
            add_vector(work, p, col.W_FORCE, fx, fy, fz)
            tx, ty, tz = tx + sy * fz - sz * fy, ty + sz * fx - sx * fz, tz + sx * fy - sy * fx
            add_vector(work, p, col.W_TORQUE, tx, ty, tz)
            g = links[p, col.TURNING]
            if g >= 0 and links[k, col.TURNING] == k:
                sx, sy, sz = between(work, k, g)
                _aba.add_tension(work, g, sx, sy, sz, fx, fy, fz, t)


@_jit
def _put_inertia(work, k, tangent):
    """Minus the inertia of link k, 6 x 6."""
    lxx, lxy, lxz, lyy, lyz, lzz = symmetric(work, k, col.W_LINEAR)
    hxx, hxy, hxz, hyy, hyz, hzz = symmetric(work, k, col.W_ANGULAR)
    P = tangent[k]
    P[0, 0], P[0, 1], P[0, 2] = -lxx, -lxy, -lxz
    P[1, 0], P[1, 1], P[1, 2] = -lxy, -lyy, -lyz
    P[2, 0], P[2, 1], P[2, 2] = -lxz, -lyz, -lzz
    P[3, 3], P[3, 4], P[3, 5] = -hxx, -hxy, -hxz
    P[4, 3], P[4, 4], P[4, 5] = -hxy, -hyy, -hyz
    P[5, 3], P[5, 4], P[5, 5] = -hxz, -hyz, -hzz
    for i in range(3):
        for j in range(3):
            P[i, 3 + j] = P[3 + j, i] = -work[k, col.W_COUPLING + 3 * i + j]


@_jit
def solve(links, t, scratch, multipliers):
    """Newton step `du` and multipliers, so that `rows du - give multipliers = wanted`, after `residual` and `springs`.

    Returns False if some joint meets no inertia.
    """
    border, wanted, change, du = scratch.border, scratch.wanted, scratch.change, scratch.du
    tree, fronts, system, motion = border.tree, border.fronts, border.matrix, border.motion
    force = scratch.force
    tree_matrix(links, t, scratch.work, border, force[0])
    if elimination.factor(tree, fronts, system, elimination.DEFINITE) != 0:
        return False
    elimination.solve_and_close(tree, fronts, system, force, wanted, motion, change, du, multipliers)
    return True


@_jit
def shorten(dofs, length, hard, scratch, multipliers):
    """Close gaps of `hard` rows by a part only, if the step of `solve` is longer than LONGEST.

    Where loops are far open and nearly singular, all at once would be many turns.
    """
    border, wanted, change, du, force = (
        scratch.border,
        scratch.wanted,
        scratch.change,
        scratch.du,
        scratch.force,
    )
    longest = 0.0
    for d in range(du.shape[0]):
        longest = max(longest, length * abs(du[d]) * dofs[d, col.UNIT])
        force[0, d] = 0.0
    if not longest > LONGEST:
        return
    for r in range(wanted.shape[0]):
        change[1, r] = (LONGEST / longest - 1.0) * wanted[r] if r < hard else 0.0
    elimination.clear(border.motion)
    elimination.solve(
        border.tree, border.fronts, border.matrix, force[0], change[1], border.motion, force[1], change[2]
    )
    for d in range(du.shape[0]):
        du[d] += force[1, d]
    for r in range(wanted.shape[0]):
        multipliers[r] += change[2, r]


@_jit
def respond(scratch, force, out):
    """Joint velocities per generalised impulse `force`, rows held, by the factors of the last `solve`."""
    border, change = scratch.border, scratch.change
    for r in range(change.shape[1]):
        change[0, r] = 0.0
    elimination.clear(border.motion)
    elimination.solve(
        border.tree, border.fronts, border.matrix, force, change[0], border.motion, out, change[1]
    )


@_sums
def cholesky(a):
    """Cholesky factor of a positive definite matrix, in place, lower half; the diagonal holds reciprocals.

    Pivots below rounding are raised to it, so that no sign depends on the last bit. A row of zeros stays one.
    """
    for i in range(a.shape[0]):
        pivot = own = a[i, i]
        for j in range(i):
            total = a[i, j]
            for k in range(j):
                total -= a[i, k] * a[j, k]
            a[i, j] = total * a[j, j]
            pivot -= a[i, j] ** 2
        if pivot < _ROUNDING * own:
            pivot = _ROUNDING * own
        a[i, i] = 1.0 / math.sqrt(pivot) if pivot != 0.0 else 0.0


@_sums
def substitute(a, x):
    """Solve with the factors of `cholesky`, in place."""
    n = a.shape[0]
    for i in range(n):
        total = x[i]
        for k in range(i):
            total -= a[i, k] * x[k]
        x[i] = total * a[i, i]
    for i in range(n - 1, -1, -1):
        total = x[i]
        for k in range(i + 1, n):
            total -= a[k, i] * x[k]
        x[i] = total * a[i, i]
