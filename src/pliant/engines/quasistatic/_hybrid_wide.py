"""Kernels for hybrid bodies with loops: divide and conquer over rigid clusters.

The clusters that are not computed are given the records of rigid bodies, `Phi = X I^-1 X^T` and `b = X I^-1 w` with X
the motions of their handles, and the computed nodes are merged once more, in records of their own (`rigid`), so that
those of free joints stay. A loop that is opened needs all joints around it: with fewer it might not close. A refinement
opens them together (`Wide.ring`), so loops hold as many independent rows as with all joints.
"""

from pliant.compilation import njit
from pliant.engines.quasistatic import arrays as col
from pliant.engines.quasistatic._hybrid import place_bodies
from pliant.engines.quasistatic._merge import back_substitute, pose_in
from pliant.engines.quasistatic._merge_wide import back_substitute_wide, wide_row
from pliant.engines.quasistatic._passes import assemble
from pliant.engines.quasistatic.joints import (
    copy_pose,
    invert_inertia,
    motion_transform,
    set_identity,
)

_jit = njit(error_model="numpy", nogil=True, fastmath=False)
_fused = njit(error_model="numpy", nogil=True, fastmath={"contract"})


@_jit
def solve_with_loops(a, wide, front, rigid, rigid_wide):
    """Accelerations of computed joints when all others are rigid, and of the rigid clusters.

    Returns the node whose joint has no inertia, or -1.
    """
    joints, nodes, data = a.joints, a.clusters.nodes, a.clusters.data
    count, computed, top = int(front.numbers[col.COMPUTED]), front.computed, front.top
    for i in range(count):
        for side in range(2):
            child = nodes[computed[i], col.LEFT + side]
            if child >= 0 and top[child] == child:
                _fill_rigid(child, a, wide, rigid.data, rigid_wide)
    failed = assemble(computed, count, joints, rigid, a.scratch, rigid_wide, data)
    for i in range(count):
        k = computed[i]
        if nodes[k, col.WIDE] >= 0:
            back_substitute_wide(k, nodes, joints.groups, rigid.data, rigid.closure, joints.qdd, rigid_wide)
        else:
            back_substitute(
                k,
                nodes,
                joints.groups,
                joints.poses,
                rigid.data,
                rigid.closure,
                joints.qdd,
                a.scratch.poses,
            )
    place_bodies(False, a, front)
    return failed


@_fused
def _fill_rigid(k, a, wide, out, rigid_wide):
    """Record of cluster k as a rigid body, or as a part of the world."""
    nodes, data, scratch = a.clusters.nodes, a.clusters.data, a.scratch
    o = nodes[k, col.START]
    if nodes[k, col.KIND] == col.LEAF:
        for i in range(col.PHI2):
            out[o + i] = data[o + i]
        return
    h, w = wide_row(k, nodes, wide.table)
    usual = nodes[k, col.HANDLES]
    if h == 0:
        return
    at = o - col.BEFORE
    inverse, whole = scratch.matrices[col.SPARE + 2].reshape(36), scratch.matrices[col.SPARE]
    wrench = data[at + col.RIGID_WRENCH : at + col.ENERGY]
    if usual > 0:
        low = scratch.matrices[col.SPARE + 1]
        inertia = data[at + col.RIGID_INERTIA : at + col.RIGID_WRENCH]
        invert_inertia(inertia, 1, whole.reshape(36), low, inverse)
    else:
        for i in range(36):
            inverse[i] = 0.0
    # motions of handles (6 h, 6), and these times the inverse inertia
    motions, products, pose, transform = rigid_wide.result, rigid_wide.phi, wide.frames[0], wide.transforms[0]
    row = wide.table[nodes[k, col.WIDE]] if nodes[k, col.WIDE] >= 0 else wide.table[0]
    for part in range(h):
        if part == 0 and usual > 0:
            set_identity(pose)
        elif part == 1 and usual == 2:
            copy_pose(data[o + col.SPAN : o + col.SPAN + 12], pose)
        else:
            leaf = wide.handle_leaves[row[col.SOURCE] + part]
            pose_in(leaf, k, nodes, data, a.joints.groups, a.joints.poses, pose, wide.frames[1])
        motion_transform(pose, 1.0, transform)
        for i in range(6):
            for j in range(6):
                motions[6 * part + i, j] = transform[i, j]
                total = 0.0
                for n in range(6):
                    total += transform[i, n] * inverse[6 * n + j]
                products[6 * part + i, j] = total
    n = 6 * h
    for i in range(n):
        bias = 0.0
        for j in range(6):
            bias += products[i, j] * wrench[j] if usual > 0 else motions[i, j] * a.clusters.world[j]
        if w >= 0:
            rigid_wide.data[rigid_wide.table[w, col.RECORD] + n * n + i] = bias
        else:
            out[o + col.HANDLE_STRIDE * (i // 6) + col.BIAS + i % 6] = bias
        for c in range(n):
            total = 0.0
            for j in range(6):
                total += products[i, j] * motions[c, j]
            if w >= 0:
                rigid_wide.data[rigid_wide.table[w, col.RECORD] + n * i + c] = total
            elif i // 6 == c // 6:
                out[o + col.HANDLE_STRIDE * (i // 6) + col.PHI + 6 * (i % 6) + c % 6] = total
            elif i < 6:
                out[o + col.PHI12 + 6 * i + c - 6] = total
