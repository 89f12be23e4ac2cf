"""What contacts need of a mechanism in motion: a damped step in two parts, and rows between them.

Contacts are decided at the end of the step, so it has to be backward Euler: the midpoint rule would throw off
elastically whatever it stops. Between the parts the factors of the step's matrix are at hand, and answer for impulses.
"""

import math

from pliant.compilation import njit
from pliant.engines.constrained import _border_kernels as border
from pliant.engines.constrained import _energy_kernels as energies
from pliant.engines.constrained import _kernels as kernels
from pliant.engines.constrained import _solver_kernels as solver
from pliant.engines.constrained import _step_kernels as stepping
from pliant.mechanism.links import LINK_BALL, LINK_FIXED, LINK_HINGE

_jit = njit(error_model="numpy", nogil=True, fastmath={"contract"})
FARTHEST = 0.5  # rad or radii: the longest correction of positions in a step
LIFTED = 0.001  # of that, where a correction this long raises the potential energy


@_jit
def begin(h, model, state, scratch):
    """Find the velocity u at the end of the step; nothing moves yet. False if it left the finite numbers."""
    u, backup, info = state.u, scratch.backup, scratch.info
    for d in range(u.shape[0]):
        backup[d] = u[d]
    unsettled = info[stepping.UNSETTLED]
    found = stepping._damped(model, state, h, scratch)
    if found:
        info[stepping.UNSETTLED] = unsettled  # it was asked for
    else:
        for d in range(u.shape[0]):
            u[d] = 0.0
        stepping._improve(model, state, 2.0 * h, h, scratch, True)
        for d in range(u.shape[0]):
            u[d] += scratch.du[d]
        stepping._middle(model, state, 2.0 * h, scratch, False)
    largest = 0.0
    for d in range(u.shape[0]):
        largest = max(largest, abs(u[d]))
        if not math.isfinite(u[d]):
            largest = math.inf
    return largest < 1e100


@_jit
def finish(h, model, state, scratch, own, brought):
    """Take the step with the velocity u and the loads there are; False if it is not finite.

    Those from row `own` on are of contacts, which bring energy of `brought`.
    """
    if not stepping._allowed(model, state, h, scratch, own, brought):
        return False
    stepping._remember(model.dofs, state.u, scratch.backup, state.earlier, state.past, False)
    kernels.move(model.links, state.q, state.u, h)
    state.past[1] = 0.0  # momenta are those of joint velocities: nothing to be cleared of
    scratch.info[stepping.SUBSTEPS] += 1.0
    scratch.info[stepping.LAST] = h
    return True


@_jit
def shift(h, w, model, state, scratch, ahead, moving):
    """Move by h w, velocities as they are.

    Contacts are linear in w. A correction that turns joints of a light cable many times round is none: it is shortened
    to FARTHEST, to a share of that where it raises the potential energy, and velocities are scaled down where
    they would mean more kinetic energy.
    """
    constants, dofs, u, v = model.constants, model.dofs, state.u, state.v
    largest = 0.0
    for d in range(w.shape[0]):
        largest = max(largest, h * abs(w[d]) * dofs[d, kernels.UNIT])
    had = energies.kinetic(constants, state.momentum)
    share = 1.0
    if largest > FARTHEST:
        share = FARTHEST / largest
        for d in range(u.shape[0]):
            scratch.backup[d], u[d] = u[d], share * w[d]
        if stepping._potential(model, state, h, scratch) > stepping._potential(model, state, 0.0, scratch):
            share *= LIFTED
        for d in range(u.shape[0]):
            u[d] = scratch.backup[d]
    kernels.move(model.links, state.q, w, share * h)
    kernels.forward(model.links, constants, state.q, v, 0.0, ahead)
    kernels.momenta(0, model.links.shape[0], constants, ahead, moving)
    kernels.settle(ahead, moving, state.momentum)
    has = energies.kinetic(constants, state.momentum)
    if has > had and largest > FARTHEST:
        scale = math.sqrt(had / has)
        for k in range(state.momentum.shape[0]):
            for i in range(6):
                state.momentum[k, i] *= scale
        for d in range(v.shape[0]):
            v[d] *= scale


@_jit
def prepare(links, rows, give, kept, work, columns, schur):
    """Make columns of what loops, couplings and tendons take from a response y0 = A^-1 j: `columns^T columns j`."""
    border.factor_rows(links, rows, give, kept, work, columns, schur)
    for i in range(kept.shape[0]):
        for d in range(columns.shape[1]):
            total = columns[i, d]
            for k in range(i):
                total -= schur[i, k] * columns[k, d]
            columns[i, d] = total * schur[i, i]


@_jit
def respond(links, work, columns, force, out):
    """Velocity of joints per generalised impulse."""
    solver.load(links, force, work)
    solver.solve(links, work, out)
    for d in range(out.shape[0]):
        out[d] = -out[d]
    for r in range(columns.shape[0]):
        total = 0.0
        for d in range(out.shape[0]):
            total += columns[r, d] * force[d]
        for d in range(out.shape[0]):
            out[d] -= total * columns[r, d]


@_jit
def jacobian(links, work, link, x, y, z, turning, sign, axes, out):
    """Velocity of a point of a link, or its angular velocity if `turning`, along three axes: `out`, 3 rows of nv."""
    nv = out.shape[0] // 3
    for i in range(3 * nv):
        out[i] = 0.0
    k = link
    while k >= 0:
        kind, d = links[k, 1], links[k, 2]
        if kind != LINK_FIXED:
            rx, ry, rz = x - work[k, 9], y - work[k, 10], z - work[k, 11]
            for j in range(3 if kind == LINK_BALL else 1):
                column = j if kind == LINK_BALL else 2
                ax, ay, az = work[k, column], work[k, 3 + column], work[k, 6 + column]
                if kind in (LINK_BALL, LINK_HINGE):
                    if not turning:
                        ax, ay, az = ay * rz - az * ry, az * rx - ax * rz, ax * ry - ay * rx
                elif turning:
                    continue
                for i in range(3):
                    out[i * nv + d + j] = sign * (axes[i, 0] * ax + axes[i, 1] * ay + axes[i, 2] * az)
        k = links[k, 0]


@_jit
def contact_rows(
    count, turning, body, point, axes, side, J, Y, first, body_link, model, scratch, start, force, impulse, u
):
    """Rows of all sides on this mechanism, whose bodies are numbered from `first` on; takes given impulses out of u.

    `start` holds links where the step starts, as the points do; they go along with their links.
    """
    links, work = model.links, scratch.work
    kept = scratch.kept[: int(scratch.info[stepping.KEPT])]
    columns = scratch.columns[: kept.shape[0]]
    last, nv = first + body_link.shape[0], u.shape[0]
    prepare(links, scratch.rows, scratch.give, kept, work, columns, scratch.schur)
    for b in range(count):
        for s in range(2):
            if not first <= body[b, s] < last:
                continue
            k = body_link[body[b, s] - first]
            x, y, z = carried(start, work, k, point[b, 0], point[b, 1], point[b, 2])
            at, sign = side[b, s, 0], -1.0 if s == 0 else 1.0
            jacobian(links, work, k, x, y, z, turning[b], sign, axes[b], J[at : at + 3 * nv])
            for i in range(3):
                for d in range(nv):
                    force[d] = J[at + i * nv + d]
                out = Y[at + i * nv : at + (i + 1) * nv]
                respond(links, work, columns, force, out)
                for d in range(nv):
                    u[d] -= impulse[b, i] * out[d]


@_jit
def energy_brought(count, spring, body, side, J, impulse, first, last, u):
    """Energy that impulses bring at the velocities u, on bodies from `first` up to `last`.

    Springs bring what they do. Contacts with what never moves bring none, though impulses that were not found to the
    end may look as if they did.
    """
    nv, total, fixed = u.shape[0], 0.0, 0.0
    for b in range(count):
        for s in range(2):
            if first <= body[b, s] < last:
                at, own = side[b, s, 0], 0.0
                for i in range(3):
                    for d in range(nv):
                        own += impulse[b, i] * J[at + i * nv + d] * u[d]
                if side[b, 1 - s, 1] == 0 and not spring[b]:
                    fixed += own
                else:
                    total += own
    return total + min(fixed, 0.0)


@_jit
def carried(start, now, k, x, y, z):
    """Where a point of contact with link k has got to: along with the link, but not round with it, as if rolling."""
    return x - start[k, 9] + now[k, 9], y - start[k, 10] + now[k, 10], z - start[k, 11] + now[k, 11]


@_jit
def contact_loads(
    count, turning, body, point, axes, impulse, first, body_link, constants, start, h, row, loads
):
    """Impulses of all sides on this mechanism as loads (`_kernels.impulses`) from row `row` on; returns the next."""
    last = first + body_link.shape[0]
    for b in range(count):
        for s in range(2):
            if not first <= body[b, s] < last:
                continue
            k = body_link[body[b, s] - first]
            scale = (-1.0 if s == 0 else 1.0) / h
            for i in range(16):
                loads[row, i] = 0.0
            loads[row, 0] = k
            for i in range(3):
                total = 0.0
                for j in range(3):
                    total += impulse[b, j] * axes[b, j, i]
                loads[row, (4 if turning[b] else 1) + i] = scale * total
            if not turning[b]:
                # About the centre of mass, in world axes: where surfaces touch does not turn with the link.
                cx, cy, cz = (
                    constants[k, kernels.COM],
                    constants[k, kernels.COM + 1],
                    constants[k, kernels.COM + 2],
                )
                rx = point[b, 0] - start[k, 9] - (start[k, 0] * cx + start[k, 1] * cy + start[k, 2] * cz)
                ry = point[b, 1] - start[k, 10] - (start[k, 3] * cx + start[k, 4] * cy + start[k, 5] * cz)
                rz = point[b, 2] - start[k, 11] - (start[k, 6] * cx + start[k, 7] * cy + start[k, 8] * cz)
                fx, fy, fz = loads[row, 1], loads[row, 2], loads[row, 3]
                loads[row, 4] = ry * fz - rz * fy
                loads[row, 5] = rz * fx - rx * fz
                loads[row, 6] = rx * fy - ry * fx
            row += 1
    return row
