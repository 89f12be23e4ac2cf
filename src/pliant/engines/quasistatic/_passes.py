"""Passes over the assembly tree: everything from the leaves up, everything down, and parts of both.

`Arrays` bundles what belongs to one mechanism; `State` what changes with it.
"""

from typing import NamedTuple

from numpy.typing import NDArray

from pliant.compilation import njit
from pliant.engines.quasistatic import _joint_kernels as joint_kernels
from pliant.engines.quasistatic._handles import across, climb, wrench
from pliant.engines.quasistatic._kernels import back, leaf, merge
from pliant.engines.quasistatic._metric import total
from pliant.engines.quasistatic._port_kernels import back_wide, merge_wide, total_wide

_jit = njit(error_model="numpy", nogil=True)
# Put into its callers before they are compiled: else LLVM would work on the same code once more for each of them.
inlined = njit(inline="always", error_model="numpy")


class Arrays(NamedTuple):
    """What stays: see `packing.Model`. Per dof: stiffness, pull, resistance to acceleration, weight in the measure."""

    nodes: NDArray
    groups: NDArray
    primitives: NDArray
    offsets: NDArray
    leaves: NDArray
    stiffness: NDArray
    pull: NDArray
    rest: NDArray
    resist: NDArray
    weights: NDArray
    world: NDArray


class State(NamedTuple):
    """What changes: coordinates, motors, joints, clusters, wrenches, forces on handles, accelerations; and scratch."""

    q: NDArray
    motor: NDArray
    poses: NDArray
    screws: NDArray
    torque: NDArray
    data: NDArray
    joints: NDArray
    extent: NDArray
    wrenches: NDArray
    forces: NDArray
    qdd: NDArray
    matrices: NDArray
    rows: NDArray
    reflector: NDArray
    spare: NDArray


class Wide(NamedTuple):
    """Clusters with further handles: see `ports.py`; their records and forces; of loops the leaves of both ends and
    where these meet in their frames, one over what accelerations are multiplied with in a step, one over the length
    that counts as much as a radian, ranks (see `redundancy.py`), the `limits` of `_loop_kernels.invert` and whether any
    was exceeded; and scratch.

    For mechanisms without loops None takes its place, and nothing of it is compiled.
    """

    table: NDArray
    source: NDArray
    data: NDArray
    forces: NDArray
    leaves: NDArray
    ends: NDArray
    rate: NDArray
    unit: NDArray
    rank: NDArray
    limits: NDArray
    stale: NDArray
    phi: NDArray
    bias: NDArray
    seen: NDArray
    force: NDArray
    result: NDArray
    rows: NDArray
    place: NDArray
    sight: NDArray
    frames: NDArray
    turn: NDArray
    vector: NDArray
    given: NDArray
    order: NDArray


@_jit
def place(g, a, s):
    """Pose, screws and torques of a group's joint from its coordinates."""
    joint_kernels.place(g, a.groups, a.primitives, a.offsets, s.q, s.poses, s.screws, s.spare)
    joint_kernels.springs(g, a.groups, a.primitives, a.stiffness, a.pull, a.rest, s.motor, s.q, s.torque)


@inlined
def assemble(order, size, a, s, wide):
    """Clusters of the nodes in `order`, from its end to its start, from those of their children.

    Returns the last node that fails, or -1. All arrays are taken out of their tuples first: to hand a tuple on takes
    as long as half a node.
    """
    count = a.leaves.shape[0]
    nodes, groups, primitives, resist, weights, world = (
        a.nodes,
        a.groups,
        a.primitives,
        a.resist,
        a.weights,
        a.world,
    )
    data, joints, poses, screws, torque = s.data, s.joints, s.poses, s.screws, s.torque
    matrices, rows, reflector = s.matrices, s.rows, s.reflector
    failed = -1
    for i in range(size - 1, -1, -1):
        k = order[i]
        if wide is not None:  # noqa: SIM102 - only by itself it is pruned before compilation
            if nodes[k, 9] >= 0:
                if not merge_wide(
                    k,
                    count,
                    nodes,
                    groups,
                    primitives,
                    data,
                    joints,
                    poses,
                    screws,
                    resist,
                    torque,
                    weights,
                    world,
                    matrices,
                    wide,
                ):
                    failed = k
                continue
        if not merge(
            k,
            count,
            nodes,
            groups,
            primitives,
            data,
            joints,
            poses,
            screws,
            resist,
            torque,
            weights,
            world,
            matrices,
            rows,
            reflector,
        ):
            failed = k
    return failed


@_jit
def spans(a, s):
    """How the handles of all clusters lie to each other, and how large they are."""
    nodes, data, poses, extent, spare = a.nodes, s.data, s.poses, s.extent, s.spare[0]
    for k in range(a.leaves.shape[0], nodes.shape[0]):
        across(k, nodes, data, poses, extent, spare)


@_jit
def up(a, s, wide, order):
    """All clusters, children first (the main pass of RL05 section 3.1.1); the node that fails, or -1."""
    count = a.leaves.shape[0]
    places(a, s)
    spans(a, s)
    leaves(a, s)
    n = a.nodes.shape[0] - count
    for i in range(n):
        order[i] = a.nodes.shape[0] - 1 - i
    return assemble(order, n, a, s, wide)


@_jit
def places(a, s):
    """Poses, screws and torques of all joints from the coordinates."""
    groups, primitives, offsets, q, poses, screws = (
        a.groups,
        a.primitives,
        a.offsets,
        s.q,
        s.poses,
        s.screws,
    )
    stiffness, pull, rest, motor, torque, spare = (
        a.stiffness,
        a.pull,
        a.rest,
        s.motor,
        s.torque,
        s.spare,
    )
    for g in range(groups.shape[0]):
        joint_kernels.place(g, groups, primitives, offsets, q, poses, screws, spare)
        joint_kernels.springs(g, groups, primitives, stiffness, pull, rest, motor, q, torque)


@_jit
def leaves(a, s):
    """Rigid bodies under their wrenches."""
    nodes, table, wrenches, data = a.nodes, a.leaves, s.wrenches, s.data
    for k in range(table.shape[0]):
        leaf(k, nodes, table, wrenches[k], data)


@_jit
def down(a, s, wide):
    """All accelerations (the back-substitution pass of RL05 section 3.1.2)."""
    count = a.leaves.shape[0]
    nodes, groups, data, joints, poses = a.nodes, a.groups, s.data, s.joints, s.poses
    forces, qdd, spare = s.forces, s.qdd, s.spare
    for k in range(nodes.shape[0] - 1, count - 1, -1):
        if wide is not None:  # noqa: SIM102 - only by itself it is pruned before compilation
            if nodes[k, 9] >= 0:
                back_wide(k, count, nodes, groups, joints, forces, qdd, wide)
                continue
        back(k, count, nodes, groups, data, joints, poses, forces, qdd, spare)


@_jit
def totals(a, s, wide, out):
    """Total acceleration of every cluster above the leaves, after `down`."""
    count = a.leaves.shape[0]
    for k in range(count, a.nodes.shape[0]):
        out[k - count] = within(k, a.nodes, s.data, s.forces, wide)


@_jit
def within(k, nodes, data, forces, wide):
    """Total acceleration of a cluster, after the forces on its handles are known."""
    if wide is not None:
        w = nodes[k, 9]
        if w >= 0 and wide.table[w, 1] == 1:
            return total_wide(k, nodes, wide)
    return total(k, nodes, data, forces[k])


@_jit
def pose(k, a, s, out):
    """World pose of the top handle of a cluster, in time proportional to its depth in the assembly tree."""
    climb(k, a.nodes.shape[0] - 1, a.nodes, s.data, s.poses, out, s.spare[0])


@_jit
def all_poses(a, s, out):
    """World poses of all groups, (groups, 12)."""
    groups, poses = a.groups, s.poses
    for g in range(groups.shape[0]):
        p = groups[g, 0]
        if p < 0:
            for i in range(12):
                out[g, i] = poses[g, i]
        else:
            joint_kernels.compose(out[p], poses[g], out[g])


@_jit
def load(loads, first, a, s, out):
    """The wrench on a leaf from its rows of `loads`, from `first` on; returns the row after them."""
    pose(int(loads[first, 0]), a, s, s.spare[1])
    return wrench(loads, first, s.spare[1], out)
