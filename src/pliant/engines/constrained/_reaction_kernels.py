"""What went through the joints in a step."""

import numpy as np

from pliant.compilation import njit

_jit = njit(error_model="numpy", nogil=True, fastmath={"contract"})


@_jit
def through(links, loops, work, at_middle, impulse, momentum, multipliers, unit):
    """Half impulse through every joint, force and torque about its point in world axes, after a step, (links, 6)."""
    n = links.shape[0]
    out = np.zeros((n, 6))
    for k in range(n):
        px, py, pz = momentum[k, 3], momentum[k, 4], momentum[k, 5]
        for i in range(3):
            # What came before the step is twice the midpoint less what came after.
            out[k, i] = momentum[k, i] - at_middle[k, i] - impulse[k, i]
            after = work[k, 3 * i] * px + work[k, 3 * i + 1] * py + work[k, 3 * i + 2] * pz
            out[k, 3 + i] = after - at_middle[k, 3 + i] - impulse[k, 3 + i]
        _add_moment(out, k, work[k, 15], work[k, 16], work[k, 17])
    for j in range(loops.shape[0]):
        a, b = int(loops[j, 0]), int(loops[j, 1])
        x, y, z = work[a, 9] - work[b, 9], work[a, 10] - work[b, 10], work[a, 11] - work[b, 11]
        fx, fy, fz = multipliers[6 * j] / unit, multipliers[6 * j + 1] / unit, multipliers[6 * j + 2] / unit
        out[a, 0] += fx
        out[a, 1] += fy
        out[a, 2] += fz
        out[b, 0] -= fx
        out[b, 1] -= fy
        out[b, 2] -= fz
        out[b, 3] -= y * fz - z * fy
        out[b, 4] -= z * fx - x * fz
        out[b, 5] -= x * fy - y * fx
        for i in range(3):
            out[a, 3 + i] += multipliers[6 * j + 3 + i]
            out[b, 3 + i] -= multipliers[6 * j + 3 + i]
    for k in range(n - 1, -1, -1):
        p = links[k, 0]
        if p >= 0:
            sx, sy, sz = work[k, 12], work[k, 13], work[k, 14]
            fx, fy, fz = out[k, 0], out[k, 1], out[k, 2]
            out[p, 0] += fx
            out[p, 1] += fy
            out[p, 2] += fz
            out[p, 3] += out[k, 3] + sy * fz - sz * fy
            out[p, 4] += out[k, 4] + sz * fx - sx * fz
            out[p, 5] += out[k, 5] + sx * fy - sy * fx
    return out


@_jit
def _add_moment(out, k, x, y, z):
    fx, fy, fz = out[k, 0], out[k, 1], out[k, 2]
    out[k, 3] += y * fz - z * fy
    out[k, 4] += z * fx - x * fz
    out[k, 5] += x * fy - y * fx
