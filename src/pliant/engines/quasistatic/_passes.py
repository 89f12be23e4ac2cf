"""Passes over the assembly tree: everything from the leaves up, everything down, and parts of both.

`Arrays` bundles what belongs to one mechanism; `State` what changes with it.
"""

from typing import NamedTuple

from numba import njit
from numpy.typing import NDArray

from pliant.engines.quasistatic import _joint_kernels as joint_kernels
from pliant.engines.quasistatic._kernels import across, back, climb, leaf, merge, total, wrench

_jit = njit(cache=True, error_model="numpy", nogil=True)


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
    spare: NDArray


@_jit
def place(g, a, s):
    """Pose, screws and torques of a group's joint from its coordinates."""
    joint_kernels.place(g, a.groups, a.primitives, a.offsets, s.q, s.poses, s.screws, s.spare)
    joint_kernels.springs(g, a.groups, a.primitives, a.stiffness, a.pull, a.rest, s.motor, s.q, s.torque)


@_jit
def span(k, a, s):
    """How the handles of a node lie to each other; `assemble` needs it not, poses do."""
    across(k, a.nodes, s.data, s.poses, s.extent, s.spare[0])


@_jit
def assemble(k, a, s):
    """The cluster of a node above the leaves, from those of its children."""
    return merge(
        k,
        a.leaves.shape[0],
        a.nodes,
        a.groups,
        a.primitives,
        s.data,
        s.joints,
        s.poses,
        s.screws,
        a.resist,
        s.torque,
        a.weights,
        a.world,
        s.matrices,
        s.rows,
    )


@_jit
def up(a, s):
    """All clusters, children first (the main pass of RL05 section 3.1.1); the node that fails, or -1."""
    count = a.leaves.shape[0]
    for g in range(a.groups.shape[0]):
        place(g, a, s)
    for k in range(count):
        leaf(k, a.nodes, a.leaves, s.wrenches[k], s.data)
    for k in range(count, a.nodes.shape[0]):
        span(k, a, s)
        if not assemble(k, a, s):
            return k
    return -1


@_jit
def down(a, s):
    """All accelerations (the back-substitution pass of RL05 section 3.1.2)."""
    count = a.leaves.shape[0]
    for k in range(a.nodes.shape[0] - 1, count - 1, -1):
        back(k, count, a.nodes, a.groups, s.data, s.joints, s.poses, s.forces, s.qdd, s.spare)


@_jit
def totals(a, s, out):
    """Total acceleration of every cluster above the leaves, after `down`."""
    count = a.leaves.shape[0]
    for k in range(count, a.nodes.shape[0]):
        out[k - count] = total(k, a.nodes, s.data, s.forces[k])


@_jit
def pose(k, a, s, out):
    """World pose of the top handle of a cluster, in time proportional to its depth in the assembly tree."""
    climb(k, a.nodes, s.data, s.poses, out, s.spare[0])


@_jit
def all_poses(a, s, out):
    """World poses of all groups, (groups, 12)."""
    for g in range(a.groups.shape[0]):
        p = a.groups[g, 0]
        if p < 0:
            for i in range(12):
                out[g, i] = s.poses[g, i]
        else:
            joint_kernels.compose(out[p], s.poses[g], out[g])


@_jit
def load(loads, first, a, s, out):
    """The wrench on a leaf from its rows of `loads`, from `first` on; returns the row after them."""
    pose(int(loads[first, 0]), a, s, s.spare[1])
    return wrench(loads, first, s.spare[1], out)
