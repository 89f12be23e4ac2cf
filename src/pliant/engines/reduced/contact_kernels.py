"""Contact step of a reduced model in two halves, with the rows of the contact solver in between.

The step is linear in impulses (TVCG Eq. 23): it is taken without contacts, and `finish` adds their effect. Generalised
velocities are the rates of the coordinates, then, of a floating base, the velocity of its centre of mass and its
angular velocity, world axes.
"""

from typing import Any, NamedTuple

from pliant.compilation import njit
from pliant.engines.actor import START
from pliant.engines.reduced import kernels
from pliant.engines.reduced._intrinsics import matrix
from pliant.mechanism.links import LINK_BALL, LINK_FIXED
from pliant.spatial import kernels as se3

_jit = njit(error_model="numpy", nogil=True)
_inline = njit(error_model="numpy", nogil=True, inline="always")  # called once: not compiled by itself

PARENT, KIND, DOF, POSE, TREE = range(5)  # columns of `ContactModel.tree`
POSITION, QUATERNION, VELOCITY, ANGULAR = 0, 3, 7, 10  # state of a floating base
MASS, INVERSE_INERTIA, GRAVITY = 0, 4, 29  # its constants
WORK = 32  # length of `ContactModel.work`


class ContactModel(NamedTuple):
    """Arrays of a reduced model in contact.

    Attributes:
        sizes, links, constants, state, poses: those of the simulation, see `kernels`.
        body_link: link of each body.
        tree: PARENT, KIND, DOF and place of the POSE of each link.
        screw: twist of a link per dof, in its frame, (nv, 6).
        basis: joint velocities per rate of the coordinates.
        inverse: rates at the end of the step per impulse on the coordinates, symmetric.
        start: position and quaternion of a floating base at the start of the step.
        inverse_inertia: of a floating base about its centre of mass at the start of the step, world axes, (3, 3).
        work: scratch.
    """

    sizes: Any
    links: Any
    constants: Any
    state: Any
    poses: Any
    body_link: Any
    tree: Any
    screw: Any
    basis: Any
    inverse: Any
    start: Any
    inverse_inertia: Any
    work: Any


@_jit
def begin(count, rows, first, model, before):
    """First half of a step, before the simulation's own: rows of `count` blocks and the velocities `before` it.

    The model's bodies are numbered from `first` on.
    """
    sizes, state, start = model.sizes, model.state, model.start
    _rotate_inertia(model)
    _contact_rows(count, rows, first, model)
    velocities(model, before)
    if sizes[kernels.FREE] == 1:
        for i in range(VELOCITY):
            start[i] = state[sizes[kernels.BASE_STATE] + i]


@_inline
def _rotate_inertia(model):
    """Inverse inertia of a floating base in world axes."""
    sizes, out = model.sizes, model.inverse_inertia
    if sizes[kernels.FREE] == 0:
        return
    inverse = model.constants[sizes[kernels.BASE] + INVERSE_INERTIA :]
    base = model.state[sizes[kernels.BASE_STATE] :]
    rotation = matrix(model.work, 0, 3, 3)
    se3.quat_to_matrix(base[QUATERNION:VELOCITY], rotation)
    for i in range(3):
        x, y, z = rotation[i, 0], rotation[i, 1], rotation[i, 2]
        a = x * inverse[0] + y * inverse[3] + z * inverse[6]
        b = x * inverse[1] + y * inverse[4] + z * inverse[7]
        c = x * inverse[2] + y * inverse[5] + z * inverse[8]
        for j in range(3):
            out[i, j] = a * rotation[j, 0] + b * rotation[j, 1] + c * rotation[j, 2]


@_jit
def velocities(model, out):
    """Generalised velocities of the present state."""
    sizes, state, inverse = model.sizes, model.state, model.inverse_inertia
    n = sizes[kernels.COORDINATES]
    for i in range(n):
        out[i] = state[1 + n + i]
    if sizes[kernels.FREE] == 1:
        base = state[sizes[kernels.BASE_STATE] :]
        x, y, z = base[ANGULAR], base[ANGULAR + 1], base[ANGULAR + 2]
        for i in range(3):
            out[n + i] = base[VELOCITY + i]
            out[n + 3 + i] = inverse[i, 0] * x + inverse[i, 1] * y + inverse[i, 2] * z


@_jit
def finish(model, u, w):
    """Second half, after the simulation's own step: set the velocities `u`; positions move by h (u + w).

    The caller reconstructs the poses.
    """
    sizes, constants, state, work = model.sizes, model.constants, model.state, model.work
    n, h = sizes[kernels.COORDINATES], constants[0]
    for i in range(n):
        state[1 + i] += h * (u[i] - state[1 + n + i] + w[i])
        state[1 + n + i] = u[i]
    if sizes[kernels.FREE] == 0:
        return
    base, fixed = state[sizes[kernels.BASE_STATE] :], constants[sizes[kernels.BASE] :]
    rotation, net = work[20:26], work[26:32]
    for i in range(VELOCITY):
        base[i] = model.start[i]
    for i in range(3):
        base[VELOCITY + i] = u[n + i] - h * fixed[GRAVITY + i]  # `move_base` adds gravity, which u includes
        base[POSITION + i] += h * w[n + i]
    _set_angular_momentum(model.inverse_inertia, u[n + 3], u[n + 4], u[n + 5], base)
    if w[n + 3] != 0.0 or w[n + 4] != 0.0 or w[n + 5] != 0.0:
        for i in range(3):
            rotation[i] = h * w[n + 3 + i]
        se3.quat_exp(rotation, net)
        se3.quat_multiply(net, base[QUATERNION:VELOCITY], base[QUATERNION:VELOCITY])
    for i in range(6):
        net[i] = 0.0
    kernels.move_base(fixed, base, h, net, work)


@_inline
def _set_angular_momentum(a, x, y, z, base):
    """Angular momentum of an angular velocity: solve with the inverse inertia `a`, by Cramer's rule."""
    c00 = a[1, 1] * a[2, 2] - a[1, 2] * a[2, 1]
    c01 = a[1, 2] * a[2, 0] - a[1, 0] * a[2, 2]
    c02 = a[1, 0] * a[2, 1] - a[1, 1] * a[2, 0]
    d = 1.0 / (a[0, 0] * c00 + a[0, 1] * c01 + a[0, 2] * c02)
    base[ANGULAR] = d * (
        c00 * x + (a[0, 2] * a[2, 1] - a[0, 1] * a[2, 2]) * y + (a[0, 1] * a[1, 2] - a[0, 2] * a[1, 1]) * z
    )
    base[ANGULAR + 1] = d * (
        c01 * x + (a[0, 0] * a[2, 2] - a[0, 2] * a[2, 0]) * y + (a[0, 2] * a[1, 0] - a[0, 0] * a[1, 2]) * z
    )
    base[ANGULAR + 2] = d * (
        c02 * x + (a[0, 1] * a[2, 0] - a[0, 0] * a[2, 1]) * y + (a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0]) * z
    )


@_jit
def _contact_rows(count, rows, first, model):
    """J and Y of all sides on this model."""
    body, point, axes, angular, side = rows.body, rows.point, rows.axes, rows.angular, rows.side
    J, Y, sizes, tree, screw = rows.J, rows.Y, model.sizes, model.tree, model.screw
    body_link, poses, basis, inverse = model.body_link, model.poses, model.basis, model.inverse
    spin = model.inverse_inertia
    last, n = first + body_link.shape[0], basis.shape[1]
    free = sizes[kernels.FREE] == 1
    size = n + 6 if free else n
    centre = model.state[sizes[kernels.BASE_STATE] + POSITION :]
    mass = model.constants[sizes[kernels.BASE] + MASS] if free else 1.0
    for b in range(count):
        x, y, z = point[b, 0], point[b, 1], point[b, 2]
        for s in range(2):
            if not first <= body[b, s] < last:
                continue
            at, sign = side[b, s, START], -1.0 if s == 0 else 1.0
            for i in range(3 * size):
                J[at + i] = Y[at + i] = 0.0
            k = body_link[body[b, s] - first]
            while k >= 0:
                kind, d = tree[k, KIND], tree[k, DOF]
                if kind != LINK_FIXED:
                    T = poses[tree[k, POSE]]
                    rx, ry, rz = x - T[0, 3], y - T[1, 3], z - T[2, 3]
                    for j in range(d, d + (3 if kind == LINK_BALL else 1)):
                        S = screw[j]
                        wx = T[0, 0] * S[3] + T[0, 1] * S[4] + T[0, 2] * S[5]
                        wy = T[1, 0] * S[3] + T[1, 1] * S[4] + T[1, 2] * S[5]
                        wz = T[2, 0] * S[3] + T[2, 1] * S[4] + T[2, 2] * S[5]
                        if not angular[b]:
                            vx = T[0, 0] * S[0] + T[0, 1] * S[1] + T[0, 2] * S[2] + wy * rz - wz * ry
                            vy = T[1, 0] * S[0] + T[1, 1] * S[1] + T[1, 2] * S[2] + wz * rx - wx * rz
                            wz = T[2, 0] * S[0] + T[2, 1] * S[1] + T[2, 2] * S[2] + wx * ry - wy * rx
                            wx, wy = vx, vy
                        moves = basis[j]
                        for i in range(3):
                            along = sign * (axes[b, i, 0] * wx + axes[b, i, 1] * wy + axes[b, i, 2] * wz)
                            row = J[at + i * size : at + i * size + n]
                            for c in range(n):
                                row[c] += along * moves[c]
                k = tree[k, PARENT]
            for i in range(3):
                start = at + i * size
                row, answer = J[start : start + n], Y[start : start + n]
                for e in range(n):
                    rate, rates = row[e], inverse[e]
                    if rate != 0.0:  # coordinates of other limbs do not move this point
                        for c in range(n):
                            answer[c] += rate * rates[c]
                if free:
                    ax, ay, az = sign * axes[b, i, 0], sign * axes[b, i, 1], sign * axes[b, i, 2]
                    px, py, pz = ax, ay, az
                    if angular[b]:
                        ax = ay = az = 0.0
                    else:
                        rx, ry, rz = x - centre[0], y - centre[1], z - centre[2]
                        px, py, pz = ry * az - rz * ay, rz * ax - rx * az, rx * ay - ry * ax
                    o = start + n
                    J[o], J[o + 1], J[o + 2], J[o + 3], J[o + 4], J[o + 5] = ax, ay, az, px, py, pz
                    Y[o], Y[o + 1], Y[o + 2] = ax / mass, ay / mass, az / mass
                    for j in range(3):
                        Y[o + 3 + j] = spin[j, 0] * px + spin[j, 1] * py + spin[j, 2] * pz
