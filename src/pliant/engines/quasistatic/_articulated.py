"""The articulated-body algorithm at rest: all accelerations in time linear in the number of joints.

The same joints, frames and resistances as in the assembly tree, so the same accelerations. Everything is in the groups'
frames. `body` holds one row per group: articulated inertia (6 x 6), bias force, acceleration; `gain` what the way
back needs.
"""

import math

from numba import njit

from pliant.engines.quasistatic._joint_kernels import to_child, to_parent
from pliant.mechanism.links import LINK_BALL, LINK_HINGE

_jit = njit(cache=True, error_model="numpy", nogil=True, fastmath={"contract"})

# columns of body: inertia 0-35 (6 x 6), bias force 36-41, acceleration 42-47
# columns of gain: columns of I S 0-35, torque 36-41, factor 42-77
BODY_COLUMNS = 48
GAIN_COLUMNS = 78


@_jit
def accelerations(
    groups, primitives, inertia, poses, screws, resist, torque, wrench, world, body, gain, spare, qdd
):
    """All joint accelerations; the group whose joint meets no inertia, or -1.

    Args:
        inertia, wrench: per group, (groups, 36) and (groups, 6), in its frame.
        spare: (3, 6, 6).
    """
    n = groups.shape[0]
    for g in range(n):
        for i in range(36):
            body[g, i] = inertia[g, i]
        for i in range(6):
            body[g, 36 + i] = -wrench[g, i]
    for g in range(n - 1, -1, -1):
        row = body[g]
        if groups[g, 2] == 1 and primitives[groups[g, 1], 0] != LINK_BALL:
            if not _one(g, groups, primitives, row, gain[g], resist, torque):
                return g
        elif not _many(g, groups, primitives, row, gain[g], screws, resist, torque):
            return g
        p = groups[g, 0]
        if p >= 0:
            _to_parent(poses[g], row, body[p], spare)
    for g in range(n):
        p, d, m = groups[g, 0], groups[g, 3], groups[g, 4]
        row, k = body[g], gain[g]
        a = row[42:48]
        to_child(poses[g], body[p, 42:48] if p >= 0 else world, a)
        if m == 1 and groups[g, 2] == 1:
            x = k[36]
            for i in range(6):
                x -= k[i] * a[i]
            x *= k[42]
            qdd[d] = x
            a[5 if primitives[groups[g, 1], 0] == LINK_HINGE else 2] += x
            continue
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
def _one(g, groups, primitives, row, k, resist, torque):
    """Eliminate a hinge or slide: coordinate c of the group's frame is free."""
    d = groups[g, 3]
    c = 5 if primitives[groups[g, 1], 0] == LINK_HINGE else 2
    own = row[7 * c] + resist[d]
    if not own > 0.0:
        return False
    inverse = 1.0 / own
    right = torque[d] - row[36 + c]
    k[36], k[42] = right, inverse
    for i in range(6):
        k[i] = row[6 * c + i]
    for i in range(6):
        x = k[i] * inverse
        row[36 + i] += x * right
        for j in range(6):
            row[6 * i + j] -= x * k[j]
    return True


@_jit
def _many(g, groups, primitives, row, k, screws, resist, torque):
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
def _to_parent(pose, row, above, spare):
    """Add a group's remaining inertia and bias force to its parent's: E^T I E and E^T p."""
    half, whole, force = spare[0], spare[1], spare[2, 0]
    for i in range(6):
        to_parent(pose, row[6 * i : 6 * i + 6], half[i])  # (E^T I)^T, I symmetric
    for i in range(6):
        for j in range(6):
            whole[i, j] = half[j, i]
    for i in range(6):
        to_parent(pose, whole[i], half[i])
    to_parent(pose, row[36:42], force)
    for i in range(6):
        above[36 + i] += force[i]
        for j in range(i, 6):
            x = 0.5 * (half[i, j] + half[j, i])
            above[6 * i + j] += x
            if j > i:
                above[6 * j + i] += x
