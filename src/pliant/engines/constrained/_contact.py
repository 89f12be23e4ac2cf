"""Contact step of a mechanism: backward Euler in two halves, with Jacobian and response of contacts in between.

Contact constraints hold at the end of the step, hence backward Euler: the midpoint rule would reflect velocities
elastically. Between the halves the factors of the step's matrix give the response to impulses.
"""

import math

from pliant.compilation import njit
from pliant.engines.actor import IMPULSE, LENGTH, NORMAL, START
from pliant.engines.constrained import _aba, _border, _links, _step
from pliant.engines.constrained import arrays as col
from pliant.engines.constrained._links import axis, matrix, put_vector, rotate, vector
from pliant.mechanism.links import LINK_BALL, LINK_FIXED, LINK_HINGE

_jit = njit(error_model="numpy", nogil=True, fastmath={"contract"})
OPENED = 1e-3  # gap, rad or loop sizes, up to which a correction of positions may open loops
HALVINGS = 12  # of a correction of positions that raises the energy too far


@_jit
def begin(h, model, state, scratch):
    """First half: joint velocities u at the end of the step; nothing moves yet. False if they are not finite."""
    u, backup, info = state.u, scratch.backup, scratch.info
    for d in range(u.shape[0]):
        backup[d] = u[d]
    unsettled = info[col.INFO_UNSETTLED]
    found = _step.solve_damped(model, state, h, scratch)
    if found:
        info[col.INFO_UNSETTLED] = unsettled  # backward Euler is not a fallback here
    else:
        for d in range(u.shape[0]):
            u[d] = 0.0
        _step.newton_step(model, state, 2.0 * h, h, scratch, True)
        for d in range(u.shape[0]):
            u[d] += scratch.du[d]
        _step.evaluate_midpoint(model, state, 2.0 * h, scratch, False)
    largest = 0.0
    for d in range(u.shape[0]):
        largest = max(largest, abs(u[d]))
        if not math.isfinite(u[d]):
            largest = math.inf
    return largest < 1e100


@_jit
def finish(h, model, state, scratch, own, brought):
    """Second half: take the step with the velocities u and the present loads; False if it is not finite.

    Loads from row `own` on are of contacts, whose work is `brought`, J.
    """
    if not _step.accept_damped(model, state, h, scratch, own, brought):
        return False
    _step.update_guess(model.dofs, state.u, scratch.backup, state.earlier, state.past, False)
    _links.integrate(model.links, state.q, state.u, h)
    state.past[col.SINCE_CHECK] = 0.0  # momenta are those of joint velocities
    scratch.info[col.INFO_SUBSTEPS] += 1.0
    scratch.info[col.INFO_LAST] = h
    return True


@_jit
def shift(h, w, lift, model, state, scratch, ahead, moving):
    """Correct positions by h w, with the joint velocities as they are.

    Contacts are linear in w, but the mechanism is not: a correction can turn joints of a light cable many times over.
    It is halved until it raises the energy by no more than the kinetic energy and `lift`, the work of contact forces
    along it, and opens no loop. The rise is taken from the kinetic energy, as far as that goes.
    """
    constants, u, v = model.constants, state.u, state.v
    kinetic = _links.kinetic(constants, state.momentum) + _step.rotor_energy(model.dofs, v)
    for d in range(u.shape[0]):
        scratch.backup[d], u[d] = u[d], w[d]
    before = _step.potential_energy(model, state, 0.0, scratch)
    allowed = max(_step.open_loops(model, scratch), OPENED)
    rise, share = 0.0, 1.0
    for _ in range(HALVINGS):
        rise = _step.potential_energy(model, state, share * h, scratch) - before
        if rise <= kinetic + share * lift and not _step.open_loops(model, scratch) > allowed:
            break
        share *= 0.5
    else:
        share = rise = 0.0
    for d in range(u.shape[0]):
        u[d] = scratch.backup[d]
    _links.integrate(model.links, state.q, w, share * h)
    _links.forward(model.links, constants, state.q, v, 0.0, ahead)
    _links.momenta(0, model.links.shape[0], constants, ahead, moving)
    _links.set_momentum(ahead, moving, state.momentum)
    has = _links.kinetic(constants, state.momentum) + _step.rotor_energy(model.dofs, v)
    left = max(kinetic - rise, 0.0)
    if has > left:
        scale = math.sqrt(left / has)
        for k in range(state.momentum.shape[0]):
            for i in range(6):
                state.momentum[k, i] *= scale
        for d in range(v.shape[0]):
            v[d] *= scale


@_jit
def correction_work(count, body, side, J, impulse, correction, first, last, w):
    """Work of contact forces, and of the impulses that correct positions, along the correction w; at least zero.

    The force that holds a body up does as much work as its weight takes; springs that the correction stretches take
    at most half of the correction times the velocity, since w is the response of inertia and springs to it.
    """
    nv, total = w.shape[0], 0.0
    for b in range(count):
        for s in range(2):
            if first <= body[b, s] < last:
                at, along = side[b, s, START], 0.0
                for d in range(nv):
                    along += J[at + d] * w[d]
                total += (impulse[b, NORMAL] + correction[b, IMPULSE]) * along
    return max(total, 0.0)


@_jit
def respond(links, scratch, force, out):
    """Joint velocities per generalised impulse `force`."""
    if scratch.wanted.shape[0]:
        _border.respond(scratch, force, out)
        return
    _aba.load(links, force, scratch.work)
    _aba.solve(links, scratch.work, out)
    for d in range(out.shape[0]):
        out[d] = -out[d]


@_jit
def jacobian(links, work, link, x, y, z, angular, sign, axes, out):
    """Velocity of a point of a link, or its angular velocity if `angular`, along three axes: `out`, 3 rows of nv."""
    nv = out.shape[0] // 3
    for i in range(3 * nv):
        out[i] = 0.0
    k = link
    while k >= 0:
        kind, d = links[k, col.KIND], links[k, col.DOF]
        if kind != LINK_FIXED:
            px, py, pz = vector(work, k, col.W_POSITION)
            rx, ry, rz = x - px, y - py, z - pz
            for j in range(3 if kind == LINK_BALL else 1):
                ax, ay, az = axis(work, k, j if kind == LINK_BALL else 2)
                if kind in (LINK_BALL, LINK_HINGE):
                    if not angular:
                        ax, ay, az = ay * rz - az * ry, az * rx - ax * rz, ax * ry - ay * rx
                elif angular:
                    continue
                for i in range(3):
                    out[i * nv + d + j] = sign * (axes[i, 0] * ax + axes[i, 1] * ay + axes[i, 2] * az)
        k = links[k, col.PARENT]


@_jit
def contact_rows(
    count,
    angular,
    body,
    point,
    axes,
    side,
    J,
    Y,
    first,
    body_link,
    at_link,
    model,
    scratch,
    start,
    force,
    impulse,
    u,
):
    """Jacobian J and response Y of contacts' sides on this mechanism; takes the given impulses out of u.

    Its bodies are numbered from `first` on; links hold them, or the world, see `ContactStep`. `start` holds kinematics
    where the step starts, as the points do.
    """
    links, work = model.links, scratch.work
    last, nv = first + body_link.shape[0], u.shape[0]
    for b in range(count):
        for s in range(2):
            if not first <= body[b, s] < last:
                continue
            k, at, sign = body_link[body[b, s] - first], side[b, s, START], -1.0 if s == 0 else 1.0
            if k < 0:
                for i in range(at, at + 3 * nv):
                    J[i] = Y[i] = 0.0
                continue
            x, y, z = carry_point(
                start, work, k, at_link[body[b, s] - first], point[b, 0], point[b, 1], point[b, 2]
            )
            jacobian(links, work, k, x, y, z, angular[b], sign, axes[b], J[at : at + 3 * nv])
            for i in range(3):
                for d in range(nv):
                    force[d] = J[at + i * nv + d]
                out = Y[at + i * nv : at + (i + 1) * nv]
                respond(links, scratch, force, out)
                for d in range(nv):
                    u[d] -= impulse[b, i] * out[d]


@_jit
def energy_brought(count, spring, body, side, J, impulse, first, last, u):
    """Work of impulses at the velocities u on bodies from `first` up to `last`, J.

    Springs may do any work. Contacts with fixed bodies do none, though impulses that have not converged may seem to.
    """
    nv, total, fixed = u.shape[0], 0.0, 0.0
    for b in range(count):
        for s in range(2):
            if first <= body[b, s] < last:
                at, own = side[b, s, START], 0.0
                for i in range(3):
                    for d in range(nv):
                        own += impulse[b, i] * J[at + i * nv + d] * u[d]
                if side[b, 1 - s, LENGTH] == 0 and not spring[b]:
                    fixed += own
                else:
                    total += own
    return total + min(fixed, 0.0)


@_jit
def carry_point(start, now, k, own, x, y, z):
    """Contact point of a body of link k after the step: translated with the body's origin, its rotation ignored."""
    px, py, pz = _place(start, k, own[0], own[1], own[2])
    nx, ny, nz = _place(now, k, own[0], own[1], own[2])
    return x - px + nx, y - py + ny, z - pz + nz


@_jit
def _place(work, k, x, y, z):
    """World position of a point of link k, given in its joint frame."""
    px, py, pz = vector(work, k, col.W_POSITION)
    if x == 0.0 and y == 0.0 and z == 0.0:
        return px, py, pz
    r00, r01, r02, r10, r11, r12, r20, r21, r22 = matrix(work, k, col.W_ROTATION)
    x, y, z = rotate(r00, r01, r02, r10, r11, r12, r20, r21, r22, x, y, z)
    return px + x, py + y, pz + z


@_jit
def contact_loads(
    count, angular, body, point, axes, impulse, first, body_link, at_link, constants, start, h, row, loads
):
    """Impulses of contacts' sides on this mechanism as loads from row `row` on; returns the next row.

    The force on a body acts at its centre of mass, which turns with the link; its moment keeps its direction: the
    contact point does not turn with the body.
    """
    last = first + body_link.shape[0]
    for b in range(count):
        for s in range(2):
            if not first <= body[b, s] < last:
                continue
            k = body_link[body[b, s] - first]
            if k < 0:
                continue
            scale = (-1.0 if s == 0 else 1.0) / h
            for i in range(col.LOAD_COLUMNS):
                loads[row, i] = 0.0
            loads[row, col.LOAD_LINK] = k
            for i in range(3):
                total = 0.0
                for j in range(3):
                    total += impulse[b, j] * axes[b, j, i]
                loads[row, (col.LOAD_TORQUE if angular[b] else col.LOAD_FORCE) + i] = scale * total
            if not angular[b]:
                own = at_link[body[b, s] - first]
                cx, cy, cz = _place(start, k, own[3], own[4], own[5])
                rx, ry, rz = point[b, 0] - cx, point[b, 1] - cy, point[b, 2] - cz
                fx, fy, fz = vector(loads, row, col.LOAD_FORCE)
                put_vector(
                    loads, row, col.LOAD_TORQUE, ry * fz - rz * fy, rz * fx - rx * fz, rx * fy - ry * fx
                )
                for i in range(3):
                    loads[row, col.LOAD_POINT + i] = own[3 + i] - constants[k, col.C_COM + i]
            row += 1
    return row
