"""Rows of a contact solver for a reduced model."""

from numba import njit

from pliant.mechanism.links import LINK_BALL, LINK_FIXED

_jit = njit(cache=True, error_model="numpy", nogil=True)


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
    free,
    centre,
    mass,
    compliance,
):
    """Rows of all sides on this model, whose bodies are numbered from `first` on.

    Args:
        body_link: link of a body; links: parent, kind, dof and place of its pose, per link.
        screw: twist of a link per dof, in its frame; basis: dofs per coordinate.
        inverse: rates at the end of the step per impulse on the coordinates.
        free: whether the base floats; then its `centre` of mass, `mass` and inverse inertia about it, world axes.
    """
    last, n = first + body_link.shape[0], basis.shape[1]
    size = n + 6 if free else n
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
                        for i in range(3):
                            along = sign * (axes[b, i, 0] * wx + axes[b, i, 1] * wy + axes[b, i, 2] * wz)
                            for c in range(n):
                                J[at + i * size + c] += along * basis[j, c]
                k = links[k, 0]
            for i in range(3):
                row = at + i * size
                for c in range(n):
                    total = 0.0
                    for e in range(n):
                        total += inverse[c, e] * J[row + e]
                    Y[row + c] = total
                if free:
                    ax, ay, az = sign * axes[b, i, 0], sign * axes[b, i, 1], sign * axes[b, i, 2]
                    px, py, pz = ax, ay, az
                    if turning[b]:
                        ax = ay = az = 0.0
                    else:
                        rx, ry, rz = x - centre[0], y - centre[1], z - centre[2]
                        px, py, pz = ry * az - rz * ay, rz * ax - rx * az, rx * ay - ry * ax
                    o = row + n
                    J[o], J[o + 1], J[o + 2], J[o + 3], J[o + 4], J[o + 5] = ax, ay, az, px, py, pz
                    Y[o], Y[o + 1], Y[o + 2] = ax / mass, ay / mass, az / mass
                    for j in range(3):
                        Y[o + 3 + j] = compliance[j, 0] * px + compliance[j, 1] * py + compliance[j, 2] * pz
