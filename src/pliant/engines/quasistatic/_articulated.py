"""The articulated-body algorithm at rest: all accelerations in time linear in the number of joints.

The same joints, frames and resistances as in the assembly tree, so the same accelerations. Everything is in the groups'
frames. `body` holds one row per group: articulated inertia (6 x 6), bias force, acceleration; `gain` what the way
back needs.
"""

import math

from pliant.compilation import njit
from pliant.mechanism.links import LINK_HINGE

_jit = njit(error_model="numpy", nogil=True, fastmath={"contract"})

# columns of body: inertia 0-35 (6 x 6), bias force 36-41, acceleration 42-47; of a hinge or slide also its row of the
# inertia 48-53, torque 54 and one over what it meets 55
BODY_COLUMNS = 56
# columns of gain, for joints with more freedoms: columns of I S 0-35, torque 36-41, factor 42-77
GAIN_COLUMNS = 78


@_jit
def accelerations(
    groups, primitives, inertia, poses, screws, resist, torque, wrench, world, body, slot, gain, spare, qdd
):
    """All joint accelerations; the group whose joint meets no inertia, or -1.

    Args:
        inertia, wrench: per group, (groups, 36) and (groups, 6), in its frame.
        slot: per group its row of `gain`, -1 for a hinge or slide.
        spare: (6, 6).
    """
    n = groups.shape[0]
    for g in range(n):
        for i in range(36):
            body[g, i] = inertia[g, i]
        for i in range(6):
            body[g, 36 + i] = -wrench[g, i]
    for g in range(n - 1, -1, -1):
        p, d = groups[g, 0], groups[g, 3]
        if slot[g] < 0:
            c = 5 if primitives[groups[g, 1], 0] == LINK_HINGE else 2
            if not _one(g, c, resist[d], torque[d], body):
                return g
        elif not _many(g, groups, body[g], gain[slot[g]], screws, resist, torque):
            return g
        if p >= 0:
            _to_parent(g, p, poses, body, spare)
    for g in range(n):
        p, d, m = groups[g, 0], groups[g, 3], groups[g, 4]
        if p >= 0:
            v0, v1, v2 = body[p, 42], body[p, 43], body[p, 44]
            w0, w1, w2 = body[p, 45], body[p, 46], body[p, 47]
        else:
            v0, v1, v2, w0, w1, w2 = world[0], world[1], world[2], world[3], world[4], world[5]
        x, y, z = poses[g, 9], poses[g, 10], poses[g, 11]
        v0, v1, v2 = v0 + w1 * z - w2 * y, v1 + w2 * x - w0 * z, v2 + w0 * y - w1 * x
        a0 = poses[g, 0] * v0 + poses[g, 3] * v1 + poses[g, 6] * v2
        a1 = poses[g, 1] * v0 + poses[g, 4] * v1 + poses[g, 7] * v2
        a2 = poses[g, 2] * v0 + poses[g, 5] * v1 + poses[g, 8] * v2
        a3 = poses[g, 0] * w0 + poses[g, 3] * w1 + poses[g, 6] * w2
        a4 = poses[g, 1] * w0 + poses[g, 4] * w1 + poses[g, 7] * w2
        a5 = poses[g, 2] * w0 + poses[g, 5] * w1 + poses[g, 8] * w2
        if slot[g] < 0:
            x = body[g, 54] - (body[g, 48] * a0 + body[g, 49] * a1 + body[g, 50] * a2)
            x = body[g, 55] * (x - (body[g, 51] * a3 + body[g, 52] * a4 + body[g, 53] * a5))
            qdd[d] = x
            if primitives[groups[g, 1], 0] == LINK_HINGE:
                a5 += x
            else:
                a2 += x
        body[g, 42], body[g, 43], body[g, 44] = a0, a1, a2
        body[g, 45], body[g, 46], body[g, 47] = a3, a4, a5
        if slot[g] >= 0:
            k, a = gain[slot[g]], body[g, 42:48]
            for j in range(m - 1, -1, -1):
                x = k[36 + j]
                for i in range(6):
                    x -= k[6 * j + i] * a[i]
                for i in range(j + 1, m):
                    x -= k[42 + 6 * i + j] * qdd[d + i]
                qdd[d + j] = x / k[42 + 7 * j]
            for j in range(m):
                if groups[g, 2] == 1:
                    a[3 + j] += qdd[d + j]
                else:
                    for i in range(6):
                        a[i] += screws[d + j, i] * qdd[d + j]
    return -1


@_jit
def _one(g, c, resist, torque, body):
    """Eliminate a hinge or slide: coordinate c of the group's frame is free."""
    row = body[g]
    own = row[7 * c] + resist
    if not own > 0.0:
        return False
    inverse = 1.0 / own
    right = torque - row[36 + c]
    k0, k1, k2 = row[6 * c], row[6 * c + 1], row[6 * c + 2]
    k3, k4, k5 = row[6 * c + 3], row[6 * c + 4], row[6 * c + 5]
    row[48], row[49], row[50], row[51], row[52], row[53] = k0, k1, k2, k3, k4, k5
    row[54], row[55] = right, inverse
    for i in range(6):
        x = row[48 + i] * inverse
        row[36 + i] += x * right
        row[6 * i] -= x * k0
        row[6 * i + 1] -= x * k1
        row[6 * i + 2] -= x * k2
        row[6 * i + 3] -= x * k3
        row[6 * i + 4] -= x * k4
        row[6 * i + 5] -= x * k5
    return True


@_jit
def _many(g, groups, row, k, screws, resist, torque):
    """Eliminate a joint with several freedoms: I S, the Cholesky factor of S^T I S, and what is left."""
    d, m = groups[g, 3], groups[g, 4]
    ball = groups[g, 2] == 1
    for j in range(m):
        for i in range(6):
            if ball:
                k[6 * j + i] = row[6 * i + 3 + j]
            else:
                x = 0.0
                for n in range(6):
                    x += row[6 * i + n] * screws[d + j, n]
                k[6 * j + i] = x
    for i in range(m):
        x = torque[d + i]
        for n in range(6):
            x -= (1.0 if ball and n == 3 + i else (0.0 if ball else screws[d + i, n])) * row[36 + n]
        k[36 + i] = x
        for j in range(i + 1):
            if ball:
                x = k[6 * j + 3 + i]
            else:
                x = 0.0
                for n in range(6):
                    x += screws[d + i, n] * k[6 * j + n]
            if i == j:
                x += resist[d + i]
            whole = x
            for n in range(j):
                x -= k[42 + 6 * i + n] * k[42 + 6 * j + n]
            if i == j:
                if not x > 1e-15 * whole:
                    return False
                k[42 + 7 * i] = math.sqrt(x)
            else:
                k[42 + 6 * i + j] = x / k[42 + 7 * j]
    # Z = factor^-1 (I S)^T and y = factor^-1 u in their places:  I -= Z^T Z,  p += Z^T y
    for j in range(m):
        for n in range(j):
            x = k[42 + 6 * j + n]
            k[36 + j] -= x * k[36 + n]
            for i in range(6):
                k[6 * j + i] -= x * k[6 * n + i]
        x = 1.0 / k[42 + 7 * j]
        k[36 + j] *= x
        for i in range(6):
            k[6 * j + i] *= x
        for i in range(6):
            x = k[6 * j + i]
            row[36 + i] += x * k[36 + j]
            for n in range(6):
                row[6 * i + n] -= x * k[6 * j + n]
    return True


@_jit
def _to_parent(g, p, poses, body, half):
    """Add a group's remaining inertia and bias force to its parent's: E^T I E and E^T p."""
    pose, row, above = poses[g], body[g], body[p]
    for i in range(6):
        o = 6 * i
        e0, e1, e2, e3, e4, e5 = _sent(
            pose, row[o], row[o + 1], row[o + 2], row[o + 3], row[o + 4], row[o + 5]
        )
        half[0, i], half[1, i], half[2, i] = e0, e1, e2
        half[3, i], half[4, i], half[5, i] = e3, e4, e5
    for i in range(6):
        o = 6 * i
        e0, e1, e2, e3, e4, e5 = _sent(
            pose, half[i, 0], half[i, 1], half[i, 2], half[i, 3], half[i, 4], half[i, 5]
        )
        above[o] += e0
        above[o + 1] += e1
        above[o + 2] += e2
        above[o + 3] += e3
        above[o + 4] += e4
        above[o + 5] += e5
    e0, e1, e2, e3, e4, e5 = _sent(pose, row[36], row[37], row[38], row[39], row[40], row[41])
    above[36] += e0
    above[37] += e1
    above[38] += e2
    above[39] += e3
    above[40] += e4
    above[41] += e5


@_jit
def _sent(x, f0, f1, f2, t0, t1, t2):
    """A wrench in the frame of a child at pose x, seen from its parent."""
    f0, f1, f2, t0, t1, t2 = (
        x[0] * f0 + x[1] * f1 + x[2] * f2,
        x[3] * f0 + x[4] * f1 + x[5] * f2,
        x[6] * f0 + x[7] * f1 + x[8] * f2,
        x[0] * t0 + x[1] * t1 + x[2] * t2,
        x[3] * t0 + x[4] * t1 + x[5] * t2,
        x[6] * t0 + x[7] * t1 + x[8] * t2,
    )
    return (
        f0,
        f1,
        f2,
        t0 + x[10] * f2 - x[11] * f1,
        t1 + x[11] * f0 - x[9] * f2,
        t2 + x[9] * f1 - x[10] * f0,
    )
