"""Passes over joints and the assembly tree: poses and torques, all clusters from the leaves up, all accelerations down.

Kernels that take `wide` are compiled twice: for None, in mechanisms without loops, and for a `Wide`. `if wide is not
None` has no other condition beside it: only then does numba leave the branch out of the version for None.
"""

from pliant.compilation import njit
from pliant.engines.quasistatic import arrays as col
from pliant.engines.quasistatic._merge import (
    back_substitute,
    fill_leaf,
    merge,
    pose_in,
    rows_start,
    squared_rows,
    update_span,
)
from pliant.engines.quasistatic._merge_wide import back_substitute_wide, merge_wide, total_acceleration_wide
from pliant.engines.quasistatic._twigs import (
    close_twig,
    close_twigs,
    fill_twig,
    is_closed,
    open_twig,
    place_twig,
)
from pliant.engines.quasistatic.joints import compose, copy_pose, joint_pose, joint_torques
from pliant.statics.load_kernels import LINK, wrench_in_body

_jit = njit(error_model="numpy", nogil=True, fastmath=False)
# inlined by numba: else LLVM would compile the same code again for every caller
inlined = njit(inline="always", error_model="numpy")


# --- joints


@_jit
def update_joints(begin, end, joints, springs, spare):
    """Poses, screws and torques of the joints of groups `begin` to `end` from the coordinates."""
    groups, primitives, offsets, q = joints.groups, joints.primitives, joints.offsets, joints.q
    poses, screws, torque = joints.poses, joints.screws, joints.torque
    stiffness, pull, rest, motor = springs.stiffness, springs.pull, springs.rest, springs.motor
    for g in range(begin, end):
        joint_pose(g, groups, primitives, offsets, q, poses, screws, spare)
        joint_torques(g, groups, primitives, stiffness, pull, rest, motor, q, torque)


@_jit
def world_poses(joints, out):
    """World poses of all groups, (groups, 12)."""
    groups, poses = joints.groups, joints.poses
    for g in range(groups.shape[0]):
        p = groups[g, col.PARENT]
        if p < 0:
            copy_pose(poses[g], out[g])
        else:
            compose(out[p], poses[g], out[g])


# --- wrenches


@_jit
def wrench_on(loads, first, pose, out):
    """Wrench on a group at a world pose, in its frame: sum of the rows of `loads` from `first` on with the same leaf.

    Returns the row after them.
    """
    k = loads[first, LINK]
    for i in range(6):
        out[i] = 0.0
    row, turn = first, pose[:9].reshape(3, 3)
    while row < loads.shape[0] and loads[row, LINK] == k:
        fx, fy, fz, tx, ty, tz = wrench_in_body(loads[row], turn)
        out[0] += fx
        out[1] += fy
        out[2] += fz
        out[3] += tx
        out[4] += ty
        out[5] += tz
        row += 1
    return row


@_jit
def leaf_pose(k, a, out):
    """World pose of a leaf's group, in time proportional to its depth in the assembly tree."""
    nodes, joints = a.clusters.nodes, a.joints
    pose_in(
        k, nodes.shape[0] - 1, nodes, a.clusters.data, joints.groups, joints.poses, out, a.scratch.poses[0]
    )


@_jit
def leaf_wrench(loads, first, a, out):
    """Wrench on a leaf from its rows of `loads`, from `first` on; returns the row after them."""
    pose = a.scratch.poses[1]
    leaf_pose(int(loads[first, LINK]), a, pose)
    return wrench_on(loads, first, pose, out)


# --- clusters


@inlined
def assemble(order, size, joints, clusters, scratch, wide, spans):
    """Merge the nodes in `order`, from its end to its start; returns the last node that fails, or -1.

    `spans` are the records with the poses of handles, see `_merge_wide.merge_wide`.
    """
    failed, last = -1, size
    if wide is not None:
        for i in range(size - 1, -1, -1):
            k = order[i]
            if clusters.nodes[k, col.WIDE] >= 0:
                failed = max(failed, merge(order, i + 1, last, joints, clusters, scratch))
                last = i
                if not merge_wide(k, joints, clusters, scratch, wide, spans):
                    failed = k
    return max(failed, merge(order, 0, last, joints, clusters, scratch))


@_jit
def _place_clusters(a):
    """Joints, and the geometry of all clusters that have records, from the coordinates."""
    joints, clusters, leaves, spare = a.joints, a.clusters, a.leaves, a.scratch.poses
    nodes, poses, data, extent = clusters.nodes, joints.poses, clusters.data, leaves.extent
    update_joints(0, poses.shape[0], joints, a.springs, spare)
    for k in range(leaves.wrenches.shape[0], nodes.shape[0]):
        if nodes[k, col.START] >= 0:
            if is_closed(k, nodes):
                size = open_twig(k, clusters, leaves)
                place_twig(size, joints, clusters, leaves, spare[0])
                close_twig(size, clusters, leaves)
            else:
                update_span(k, nodes, poses, data, extent, spare[0])


@_jit
def _fill_leaves(clusters, leaves, scratch):
    """Records of rigid bodies under their wrenches, outside of closed twigs."""
    for k in range(leaves.wrenches.shape[0]):
        if clusters.nodes[k, col.START] >= 0:
            fill_leaf(k, clusters, leaves, scratch)


@_jit
def update_all(loads, a, marks):
    """Joints, wrenches and leaves from coordinates and loads; all twigs are closed, and all clusters marked."""
    clusters, leaves = a.clusters, a.leaves
    close_twigs(clusters, leaves)
    _place_clusters(a)
    row = 0
    while row < loads.shape[0]:
        row = leaf_wrench(loads, row, a, leaves.wrenches[int(loads[row, LINK])])
    _fill_leaves(clusters, leaves, a.scratch)
    for k in range(leaves.wrenches.shape[0], clusters.nodes.shape[0]):
        marks[k] = 1


@_jit
def up(a, wide, order):
    """All clusters, children first (main pass of RL05 section 3.1.1), in room for all of them; all twigs are open then.

    Returns the node that fails, or -1.
    """
    clusters, leaves = a.clusters, a.leaves
    count, first = clusters.nodes.shape[0], leaves.wrenches.shape[0]
    close_twigs(clusters, leaves)
    for k in range(first, count):
        if clusters.nodes[k, col.START] >= 0 and is_closed(k, clusters.nodes):
            open_twig(k, clusters, leaves)
    _place_clusters(a)
    _fill_leaves(clusters, leaves, a.scratch)
    for i in range(count - first):
        order[i] = count - 1 - i
    return assemble(order, count - first, a.joints, clusters, a.scratch, wide, clusters.data)


@_jit
def down(a, wide, marks):
    """All accelerations (back-substitution pass of RL05 section 3.1.2), in room for all clusters; twigs are opened."""
    groups, poses, qdd, spare = a.joints.groups, a.joints.poses, a.joints.qdd, a.scratch.poses
    nodes, data, length = a.clusters.nodes, a.clusters.data, a.clusters.closure
    for k in range(nodes.shape[0] - 1, a.leaves.wrenches.shape[0] - 1, -1):
        if is_closed(k, nodes):
            size = open_twig(k, a.clusters, a.leaves)
            fill_twig(size, a.joints, a.clusters, a.leaves, a.scratch, marks)
        if wide is not None:  # noqa: SIM102 - see above
            if nodes[k, col.WIDE] >= 0:
                back_substitute_wide(k, nodes, groups, data, length, qdd, wide)
                continue
        back_substitute(k, nodes, groups, poses, data, length, qdd, spare)


@_jit
def total_acceleration(k, nodes, data, wide):
    """Total acceleration of a cluster under the forces on its handles, never negative."""
    if wide is not None:
        w = nodes[k, col.WIDE]
        if w >= 0 and wide.table[w, col.IS_WIDE] == 1:
            return total_acceleration_wide(k, nodes, wide)
    columns = 6 * nodes[k, col.HANDLES] + 1
    first = nodes[k, col.START] - col.BEFORE
    return squared_rows(nodes[k, col.ROWS], columns, data, rows_start(k, nodes), data, first)
