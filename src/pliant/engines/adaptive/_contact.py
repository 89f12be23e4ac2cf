"""Kernel of contact: forces on the groups of bodies that touch."""

from pliant.compilation import njit
from pliant.engines.constrained import arrays as linkage

_jit = njit(error_model="numpy", nogil=True, fastmath=False)


@_jit
def sum_forces(count, angular, body, point, axes, impulse, first, slot, links, origins, start, h, out):
    """Forces and torques of blocks on groups, at the groups' origins, world axes; added to `out`, (groups, 6).

    Args:
        count: of blocks; `angular` to `impulse` are theirs, see `Rows`.
        first: number of the first body of this linkage.
        slot: per body, the row of its group in `links`, `origins` and `out`, -1 for one fixed to the world.
        links, origins: link that holds the group, -1 the world, and the group's origin there, (groups, 3).
        start: kinematics of links at the start of the step.
        h: timestep, s.
    """
    for b in range(count):
        for s in range(2):
            k = body[b, s] - first
            if not 0 <= k < slot.shape[0] or slot[k] < 0:
                continue
            g, scale = slot[k], (-1.0 if s == 0 else 1.0) / h
            fx = fy = fz = 0.0
            for j in range(3):
                fx += scale * impulse[b, j] * axes[b, j, 0]
                fy += scale * impulse[b, j] * axes[b, j, 1]
                fz += scale * impulse[b, j] * axes[b, j, 2]
            if angular[b]:
                tx, ty, tz = fx, fy, fz
                fx = fy = fz = 0.0
            else:
                x, y, z = origins[g, 0], origins[g, 1], origins[g, 2]
                if links[g] >= 0:
                    row, o = start[links[g]], linkage.W_POSITION
                    x, y, z = (
                        row[o] + row[0] * x + row[1] * y + row[2] * z,
                        row[o + 1] + row[3] * x + row[4] * y + row[5] * z,
                        row[o + 2] + row[6] * x + row[7] * y + row[8] * z,
                    )
                x, y, z = point[b, 0] - x, point[b, 1] - y, point[b, 2] - z
                tx, ty, tz = y * fz - z * fy, z * fx - x * fz, x * fy - y * fx
            out[g, 0] += fx
            out[g, 1] += fy
            out[g, 2] += fz
            out[g, 3] += tx
            out[g, 4] += ty
            out[g, 5] += tz
