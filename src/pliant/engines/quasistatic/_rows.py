"""Accelerations of all joints of a mechanism with loops, couplings and tendons, at rest.

The articulated-body algorithm with rows: body inertias and rows are eliminated together along the tree of links
(`pliant.mechanism.elimination`). Links of a group share its frame: positions are its origin, and inertias, wrenches and
screws are turned from its axes to the world's.

Rows of loops come first, six each (position over the size of the loop, then rotation), then couplings, then tendons.
Accelerations close the gaps of loops and couplings in one step; tendons act as springs and dampers.
"""

from __future__ import annotations

from typing import NamedTuple

from pliant.compilation import njit
from pliant.engines.quasistatic import arrays as col
from pliant.engines.quasistatic.arrays import Floats, Ints
from pliant.engines.quasistatic.joints import compose, copy_pose, expand_inertia, relative_pose
from pliant.mechanism import elimination_kernels as elimination
from pliant.mechanism.links import LINK_HINGE, LINK_SLIDE
from pliant.spatial import kernels as se3

_jit = njit(error_model="numpy", nogil=True, fastmath={"contract"})
# Remainder of a redundant row, rad or loop sizes: with closed loops, per gap of open loops, at most.
_REDUNDANT, _OPEN, _COARSEST = 1e-9, 10.0, 1e-3
_CLOSED = 1e-6  # the same of rows that were kept before, at most
_REUSED = 0.1  # motion since rows were chosen, as a share of their smallest remainder, up to which they stay


class Rows(NamedTuple):
    """Loops, couplings and tendons along the tree of links (m rows, the first `hard` of loops and couplings).

    Attributes:
        tree, fronts, matrix, motion: of the elimination.
        group: per link, its group, -1 if fixed to the world.
        owner: per group, the link that carries its inertia.
        loops: per loop, the groups of the copy and of the body, -1 the world, (loops, 2).
        ends: poses of the frames of copy and body that coincide, in their groups' frames, (2 loops, 12).
        unit: of dofs, rad or m per radian of joint space, (nv,).
        length: radians per unit of a coordinate, (nq,).
        coordinate: of hinge and slide dofs, (nv,).
        offset: of couplings and tendons, scaled as their rows, (m,).
        stiffness: of tendons in units of their scaled rows, else 0, (m,).
        soft: 1 for tendons that resist accelerations, (m,).
        hard: number of rows of loops and couplings.
        rate: one over the factor from accelerations to displacements.
        chosen: coordinates where rows were chosen, 1 for those of `hard` that are kept, their smallest remainder.
        remainder: the same of rows chosen at the last solution, -1 if they were not, (1,).

    Scratch:
        wanted, multipliers: (m,).
        change: (3, m).
        force: (2, nv).
        frames, gap, vector: poses, (3, 12) and (4, 4), a twist, (6,).
    """

    tree: elimination.Tree
    fronts: elimination.Fronts
    matrix: elimination.Matrix
    motion: elimination.Motion
    group: Ints
    owner: Ints
    loops: Ints
    ends: Floats
    unit: Floats
    length: Floats
    coordinate: Ints
    offset: Floats
    stiffness: Floats
    soft: Ints
    hard: int
    rate: float
    chosen: Floats
    remainder: Floats
    wanted: Floats
    multipliers: Floats
    change: Floats
    force: Floats
    frames: Floats
    gap: Floats
    vector: Floats


@_jit
def solve_with_rows(joints, world, inertia, wrenches, poses, rows, spare):
    """Accelerations `joints.qdd` of all joints; False if some joint meets no inertia.

    Args:
        joints: poses, screws and torques are up to date.
        world: acceleration of the world, (6,).
        inertia, wrenches: of groups, in their frames, (groups, INERTIA_COLUMNS) and (groups, 6).
        poses: world poses of groups, (groups, 12).
        rows: see `Rows`.
        spare: scratch, (6, 6).
    """
    tree, fronts, matrix, motion = rows.tree, rows.fronts, rows.matrix, rows.motion
    wanted, multipliers, change, force, qdd = (
        rows.wanted,
        rows.multipliers,
        rows.change,
        rows.force,
        joints.qdd,
    )
    _set_matrix(joints, world, inertia, wrenches, poses, rows, spare)
    for d in range(qdd.shape[0]):
        force[0, d] = joints.torque[d]
    gap = _loop_gaps(poses, rows)
    _joint_gaps(joints.q, rows)
    _choose_rows(joints.q, gap, rows)
    if elimination.factor(tree, fronts, matrix, elimination.DEFINITE) != 0:
        return False
    elimination.solve_and_close(tree, fronts, matrix, force, wanted, motion, change, qdd, multipliers)
    return True


@_jit
def _set_matrix(joints, world, inertia, wrenches, poses, rows, spare):
    """Origins of links, screws, inertias, and wrenches of loads and gravity on links, world axes."""
    groups, primitives, screws = joints.groups, joints.primitives, joints.screws
    position, screw, tangent = rows.matrix.position, rows.matrix.screw, rows.matrix.tangent
    given = rows.motion.force
    elimination.clear(rows.motion)
    for k in range(rows.group.shape[0]):
        if rows.group[k] >= 0:
            for i in range(3):
                position[k, i] = poses[rows.group[k], 9 + i]
    for g in range(groups.shape[0]):
        R, k = poses[g], rows.owner[g]
        P, I = tangent[k], spare.reshape(36)
        expand_inertia(inertia[g], I)
        for block in range(4):
            r, c = 3 * (block // 2), 3 * (block % 2)
            for i in range(3):
                o = 6 * r + c
                a = R[3 * i] * I[o] + R[3 * i + 1] * I[o + 6] + R[3 * i + 2] * I[o + 12]
                b = R[3 * i] * I[o + 1] + R[3 * i + 1] * I[o + 7] + R[3 * i + 2] * I[o + 13]
                e = R[3 * i] * I[o + 2] + R[3 * i + 1] * I[o + 8] + R[3 * i + 2] * I[o + 14]
                for j in range(3):
                    P[r + i, c + j] = -(a * R[3 * j] + b * R[3 * j + 1] + e * R[3 * j + 2])
        w = wrenches[g]
        for i in range(3):
            given[k, i] = R[3 * i] * w[0] + R[3 * i + 1] * w[1] + R[3 * i + 2] * w[2]
            given[k, 3 + i] = R[3 * i] * w[3] + R[3 * i + 1] * w[4] + R[3 * i + 2] * w[5]
        for i in range(6):
            for j in range(6):
                given[k, i] += P[i, j] * world[j]
        single, kind = groups[g, col.COUNT] == 1, primitives[groups[g, col.FIRST], col.MOTION]
        for j in range(groups[g, col.DOFS]):
            d = groups[g, col.DOF] + j
            if single:
                # The dofs are coordinates of the group's frame.
                axis = 2 if kind in (LINK_HINGE, LINK_SLIDE) else j
                at = 0 if kind == LINK_SLIDE else 3
                for i in range(3):
                    screw[d, at + i], screw[d, 3 - at + i] = R[3 * i + axis], 0.0
            else:
                s = screws[d]
                for i in range(3):
                    screw[d, i] = R[3 * i] * s[0] + R[3 * i + 1] * s[1] + R[3 * i + 2] * s[2]
                    screw[d, 3 + i] = R[3 * i] * s[3] + R[3 * i + 1] * s[4] + R[3 * i + 2] * s[5]


@_jit
def _loop_gaps(poses, rows):
    """Accelerations of rows that close loops: `wanted`. Returns the largest gap, rad and loop sizes.

    The gap is the twist that takes the body's end to the copy's, about the origin of the copy's link.
    """
    largest, unit = 0.0, rows.tree.unit
    copy, body, between, gap, v = rows.frames[0], rows.frames[1], rows.frames[2], rows.gap, rows.vector
    for loop in range(rows.loops.shape[0]):
        for side in range(2):
            g, at = rows.loops[loop, side], copy if side == 0 else body
            if g >= 0:
                compose(poses[g], rows.ends[2 * loop + side], at)
            else:
                copy_pose(rows.ends[2 * loop + side], at)
        relative_pose(body, copy, between)
        for i in range(3):
            for j in range(3):
                gap[i, j] = between[3 * i + j]
            gap[i, 3] = between[9 + i]
        se3.se3_log(gap, v)
        p = rows.matrix.position[rows.tree.copy[loop]]
        x, y, z = p[0] - copy[9], p[1] - copy[10], p[2] - copy[11]
        u0 = copy[0] * v[3] + copy[1] * v[4] + copy[2] * v[5]
        u1 = copy[3] * v[3] + copy[4] * v[4] + copy[5] * v[5]
        u2 = copy[6] * v[3] + copy[7] * v[4] + copy[8] * v[5]
        v0 = copy[0] * v[0] + copy[1] * v[1] + copy[2] * v[2] + u1 * z - u2 * y
        v1 = copy[3] * v[0] + copy[4] * v[1] + copy[5] * v[2] + u2 * x - u0 * z
        v2 = copy[6] * v[0] + copy[7] * v[1] + copy[8] * v[2] + u0 * y - u1 * x
        out = rows.wanted[6 * loop : 6 * loop + 6]
        out[0], out[1], out[2] = v0 / unit[loop], v1 / unit[loop], v2 / unit[loop]
        out[3], out[4], out[5] = u0, u1, u2
        for i in range(6):
            largest = max(largest, abs(out[i]))
            out[i] *= -rows.rate
    return largest


@_jit
def _joint_gaps(q, rows):
    """Accelerations of couplings that close their gaps, `wanted`, and torques of tendons, added to `force[0]`."""
    tree, wanted, force = rows.tree, rows.wanted, rows.force
    for r in range(6 * rows.loops.shape[0], wanted.shape[0]):
        wanted[r] = -rows.offset[r]
    for d in range(force.shape[1]):
        for e in range(tree.entry_start[d], tree.entry_start[d + 1]):
            wanted[tree.entry_row[e]] += tree.entry_value[e] * q[rows.coordinate[d]]
    for d in range(force.shape[1]):
        for e in range(tree.entry_start[d], tree.entry_start[d + 1]):
            r = tree.entry_row[e]
            force[0, d] -= tree.entry_value[e] * rows.stiffness[r] * wanted[r]
    for r in range(6 * rows.loops.shape[0], wanted.shape[0]):
        wanted[r] *= -rows.rate if r < rows.hard else 0.0


@_jit
def _choose_rows(q, gap, rows):
    """Choose independent rows by geometry, unless joints have hardly moved since they were chosen last.

    A row is redundant if its remainder, in radians and loop sizes, is less than 1e-9; or than ten times the gap, where
    loops are open: rows that are redundant in closed loops are then known no better. What was kept while loops were
    closed stays while they are open.
    """
    nq, hard, chosen, kept = q.shape[0], rows.hard, rows.chosen, rows.fronts.kept
    flags, largest, same = chosen[nq : nq + hard], 0.0, True
    rows.remainder[0] = -1.0
    for c in range(nq):
        largest = max(largest, abs(q[c] - chosen[c]) * rows.length[c])
    if largest < _REUSED * chosen[nq + hard]:
        for r in range(kept.shape[0]):
            wanted = int(flags[r]) if r < hard else rows.soft[r]
            if kept[r] != wanted:
                kept[r], same = wanted, False
        if not same:
            elimination.set_rows(rows.tree, rows.fronts)
        return
    for r in range(hard):
        kept[r] = int(flags[r])
    tolerance = min(max(_OPEN * gap, _REDUNDANT), _COARSEST)
    smallest = elimination.choose_rows(
        rows.tree,
        rows.fronts,
        rows.matrix.position,
        rows.matrix.screw,
        rows.unit,
        tolerance,
        min(tolerance, _CLOSED),
        hard,
        rows.soft,
    )
    rows.remainder[0] = min(smallest, 1.0)


@_jit
def note_choice(q, rows):
    """Note rows that were chosen at the last solution, once it is known to be finite."""
    nq, hard, chosen = q.shape[0], rows.hard, rows.chosen
    if rows.remainder[0] >= 0.0:
        for c in range(nq):
            chosen[c] = q[c]
        for r in range(hard):
            chosen[nq + r] = rows.fronts.kept[r]
        chosen[nq + hard] = rows.remainder[0]
