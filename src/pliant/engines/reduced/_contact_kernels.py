"""A step of a reduced model in two halves, and rows of a contact solver in between.

`turn` is the inverse inertia of a floating base about its centre of mass, in world axes, as the step starts.
"""

from pliant.compilation import njit
from pliant.engines.reduced import _kernels as kernels
from pliant.engines.reduced._intrinsics import matrix
from pliant.mechanism.links import LINK_BALL, LINK_FIXED
from pliant.spatial import _kernels as se3

_jit = njit(error_model="numpy", nogil=True)


@_jit
def spin_map(sizes, constants, state, turn, work):
    """Write `turn`; `work` is 9 numbers."""
    if sizes[kernels.FREE] == 0:
        return
    inverse, base = constants[sizes[kernels.BASE] + 4 :], state[sizes[kernels.BASE_STATE] :]
    rotation = matrix(work, 0, 3, 3)
    se3.quat_to_matrix(base[3:7], rotation)
    for i in range(3):
        x, y, z = rotation[i, 0], rotation[i, 1], rotation[i, 2]
        a = x * inverse[0] + y * inverse[3] + z * inverse[6]
        b = x * inverse[1] + y * inverse[4] + z * inverse[7]
        c = x * inverse[2] + y * inverse[5] + z * inverse[8]
        for j in range(3):
            turn[i, j] = a * rotation[j, 0] + b * rotation[j, 1] + c * rotation[j, 2]


@_jit
def velocities(sizes, state, turn, out):
    """Rates of coordinates, then velocity of a floating base's centre of mass and its angular velocity."""
    n = sizes[kernels.COORDINATES]
    for i in range(n):
        out[i] = state[1 + n + i]
    if sizes[kernels.FREE] == 1:
        base = state[sizes[kernels.BASE_STATE] :]
        for i in range(3):
            out[n + i] = base[7 + i]
            out[n + 3 + i] = turn[i, 0] * base[10] + turn[i, 1] * base[11] + turn[i, 2] * base[12]


@_jit
def finish(sizes, constants, state, start, turn, u, w, work):
    """After a step without contacts, from a base at `start`: velocities are `u`, and positions move by `w` besides.

    `work` is 32 numbers.
    """
    n, h = sizes[kernels.COORDINATES], constants[0]
    for i in range(n):
        state[1 + i] += h * (u[i] - state[1 + n + i] + w[i])
        state[1 + n + i] = u[i]
    if sizes[kernels.FREE] == 0:
        return
    base, fixed = state[sizes[kernels.BASE_STATE] :], constants[sizes[kernels.BASE] :]
    net, still = work[20:26], work[26:32]
    for i in range(7):
        base[i] = start[i]
    for i in range(3):
        base[7 + i] = u[n + i] - h * fixed[29 + i]  # what gravity does is in u already, and added by the move
        base[i] += h * w[n + i]
    _momentum(turn, u[n + 3], u[n + 4], u[n + 5], base)
    if w[n + 3] != 0.0 or w[n + 4] != 0.0 or w[n + 5] != 0.0:
        for i in range(3):
            net[i] = h * w[n + 3 + i]
        se3.quat_exp(net, still)
        se3.quat_multiply(still, base[3:7], base[3:7])
    for i in range(6):
        still[i] = 0.0
    kernels.move_base(fixed, base, h, still, work)


@_jit
def _momentum(a, x, y, z, base):
    """Angular momentum of an angular velocity: solve with the inverse inertia `a`, by Cramer's rule."""
    c00 = a[1, 1] * a[2, 2] - a[1, 2] * a[2, 1]
    c01 = a[1, 2] * a[2, 0] - a[1, 0] * a[2, 2]
    c02 = a[1, 0] * a[2, 1] - a[1, 1] * a[2, 0]
    d = 1.0 / (a[0, 0] * c00 + a[0, 1] * c01 + a[0, 2] * c02)
    base[10] = d * (
        c00 * x + (a[0, 2] * a[2, 1] - a[0, 1] * a[2, 2]) * y + (a[0, 1] * a[1, 2] - a[0, 2] * a[1, 1]) * z
    )
    base[11] = d * (
        c01 * x + (a[0, 0] * a[2, 2] - a[0, 2] * a[2, 0]) * y + (a[0, 2] * a[1, 0] - a[0, 0] * a[1, 2]) * z
    )
    base[12] = d * (
        c02 * x + (a[0, 1] * a[2, 0] - a[0, 0] * a[2, 1]) * y + (a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0]) * z
    )


@_jit
def contact_rows(
    count,
    turning,
    body,
    point,
    axes,
    side,
    J,
    Y,
    first,
    body_link,
    links,
    screw,
    poses,
    basis,
    inverse,
    sizes,
    constants,
    state,
    turn,
):
    """Rows of all sides on this model, whose bodies are numbered from `first` on.

    Args:
        body_link: link of a body; links: parent, kind, dof and place of its pose, per link.
        screw: twist of a link per dof, in its frame; basis: dofs per coordinate.
        inverse: rates at the end of the step per impulse on the coordinates, symmetric.
        sizes, constants, state: of the simulation.
    """
    last, n = first + body_link.shape[0], basis.shape[1]
    free = sizes[kernels.FREE] == 1
    size = n + 6 if free else n
    centre, mass = state[sizes[kernels.BASE_STATE] :], constants[sizes[kernels.BASE]] if free else 1.0
    for b in range(count):
        x, y, z = point[b, 0], point[b, 1], point[b, 2]
        for s in range(2):
            if not first <= body[b, s] < last:
                continue
            at, sign = side[b, s, 0], -1.0 if s == 0 else 1.0
            for i in range(3 * size):
                J[at + i] = Y[at + i] = 0.0
            k = body_link[body[b, s] - first]
            while k >= 0:
                kind, d = links[k, 1], links[k, 2]
                if kind != LINK_FIXED:
                    T = poses[links[k, 3]]
                    rx, ry, rz = x - T[0, 3], y - T[1, 3], z - T[2, 3]
                    for j in range(d, d + (3 if kind == LINK_BALL else 1)):
                        S = screw[j]
                        wx = T[0, 0] * S[3] + T[0, 1] * S[4] + T[0, 2] * S[5]
                        wy = T[1, 0] * S[3] + T[1, 1] * S[4] + T[1, 2] * S[5]
                        wz = T[2, 0] * S[3] + T[2, 1] * S[4] + T[2, 2] * S[5]
                        if not turning[b]:
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
                k = links[k, 0]
            for i in range(3):
                start = at + i * size
                row, answer = J[start : start + n], Y[start : start + n]
                for e in range(n):
                    rate, rates = row[e], inverse[e]
                    if rate != 0.0:  # a leg's coordinates are none of another leg's business
                        for c in range(n):
                            answer[c] += rate * rates[c]
                if free:
                    ax, ay, az = sign * axes[b, i, 0], sign * axes[b, i, 1], sign * axes[b, i, 2]
                    px, py, pz = ax, ay, az
                    if turning[b]:
                        ax = ay = az = 0.0
                    else:
                        rx, ry, rz = x - centre[0], y - centre[1], z - centre[2]
                        px, py, pz = ry * az - rz * ay, rz * ax - rx * az, rx * ay - ry * ax
                    o = start + n
                    J[o], J[o + 1], J[o + 2], J[o + 3], J[o + 4], J[o + 5] = ax, ay, az, px, py, pz
                    Y[o], Y[o + 1], Y[o + 2] = ax / mass, ay / mass, az / mass
                    for j in range(3):
                        Y[o + 3 + j] = turn[j, 0] * px + turn[j, 1] * py + turn[j, 2] * pz
