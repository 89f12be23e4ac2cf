"""Where handles lie to each other and in the world (RL05 section 5.1), and wrenches in their frames."""

import math

from pliant.compilation import njit
from pliant.engines.quasistatic._joint_kernels import compose
from pliant.engines.quasistatic.assembly import LOOP, MERGE, ROOT, SUM, WELD

_jit = njit(error_model="numpy", nogil=True)

# columns of loads: leaf, force and torque (world axes), where that force acts (group's frame), wrench (group's axes)
LOAD_COLUMNS = 16


@_jit
def across(k, nodes, data, poses, extent, spare):
    """Pose of the bottom handle of node k in its top one, and how far from the top handle anything in it may be."""
    kind, left, right, g = nodes[k, 0], nodes[k, 1], nodes[k, 2], nodes[k, 4]
    if kind == ROOT:
        extent[k] = extent[right]
        return
    if kind == LOOP:
        extent[k] = extent[right]
        if nodes[k, 5] == 2:
            for i in range(12):
                data[nodes[k, 6] + 120 + i] = data[nodes[right, 6] + 120 + i]
        return
    if kind in (SUM, WELD):
        extent[k] = max(extent[left], extent[right])
        return
    start, pose = nodes[k, 6], poses[g]
    if nodes[left, 5] == 2:
        o = nodes[left, 6]
        compose(data[o + 120 : o + 132], poses[g], spare)
        pose = spare
    extent[k] = max(extent[left], math.sqrt(pose[9] ** 2 + pose[10] ** 2 + pose[11] ** 2) + extent[right])
    if nodes[k, 5] == 2:
        if nodes[right, 5] == 2:
            o = nodes[right, 6]
            compose(pose, data[o + 120 : o + 132], data[start + 120 : start + 132])
        else:
            for i in range(12):
                data[start + 120 + i] = pose[i]


@_jit
def climb(k, stop, nodes, data, poses, out, spare):
    """Pose of the top handle of node k in that of the node `stop` above it (at the top, or above a ROOT: the world).

    One product per level (RL05 section 5.1).
    """
    for i in range(12):
        out[i] = 0.0
    out[0], out[4], out[8] = 1.0, 1.0, 1.0
    while k != stop:
        p = nodes[k, 3]
        kind = nodes[p, 0]
        if kind == ROOT or (kind == MERGE and nodes[p, 2] == k):
            compose(poses[nodes[p, 4]], out, spare)
            left = nodes[p, 1]
            if kind != ROOT and nodes[left, 5] == 2:
                o = nodes[left, 6]
                compose(data[o + 120 : o + 132], spare, out)
            else:
                for i in range(12):
                    out[i] = spare[i]
        k = p


@_jit
def wrench(loads, first, turn, out):
    """The wrench on a group at world pose `turn`, in its frame: the rows of `loads` from `first` on that name its leaf.

    Returns the row after them.
    """
    k = loads[first, 0]
    for i in range(6):
        out[i] = 0.0
    row = first
    while row < loads.shape[0] and loads[row, 0] == k:
        x, y, z = loads[row, 7], loads[row, 8], loads[row, 9]
        f0, f1, f2 = loads[row, 1], loads[row, 2], loads[row, 3]
        t0, t1, t2 = loads[row, 4], loads[row, 5], loads[row, 6]
        fx = turn[0] * f0 + turn[3] * f1 + turn[6] * f2
        fy = turn[1] * f0 + turn[4] * f1 + turn[7] * f2
        fz = turn[2] * f0 + turn[5] * f1 + turn[8] * f2
        out[0] += fx + loads[row, 10]
        out[1] += fy + loads[row, 11]
        out[2] += fz + loads[row, 12]
        out[3] += turn[0] * t0 + turn[3] * t1 + turn[6] * t2 + y * fz - z * fy + loads[row, 13]
        out[4] += turn[1] * t0 + turn[4] * t1 + turn[7] * t2 + z * fx - x * fz + loads[row, 14]
        out[5] += turn[2] * t0 + turn[5] * t1 + turn[8] * t2 + x * fy - y * fx + loads[row, 15]
        row += 1
    return row
