"""Whole steps: with the assembly tree, or with the articulated-body algorithm."""

import math
from typing import NamedTuple

from numpy.typing import NDArray

from pliant.compilation import njit
from pliant.engines.quasistatic import _joint_kernels as joint_kernels
from pliant.engines.quasistatic._articulated import accelerations
from pliant.engines.quasistatic._handles import wrench
from pliant.engines.quasistatic._passes import all_poses, leaves, load, places, spans
from pliant.engines.quasistatic._refinement import (
    ABSOLUTE_JOINT,
    COMPUTED,
    DONE,
    ERROR,
    LEFT,
    RELATIVE_JOINT,
    SUM_,
    WORLD,
    error,
    move,
    refine,
    start,
    update,
)

_jit = njit(error_model="numpy", nogil=True)
FINE, INFINITE, STALE = -1, -2, -3


class Full(NamedTuple):
    """What the articulated-body algorithm works on: see `_articulated`; leaf of every group, its world pose."""

    inertia: NDArray
    leaf: NDArray
    poses: NDArray
    wrenches: NDArray
    body: NDArray
    slot: NDArray
    gain: NDArray
    spare: NDArray


@_jit
def prepare(a, s):
    """Joints and the ways across clusters from the coordinates."""
    places(a, s)
    spans(a, s)


@_jit
def prepare_all(loads, a, s, marks):
    """Everything that clusters are made of, and all of them marked."""
    prepare(a, s)
    row = 0
    while row < loads.shape[0]:
        row = load(loads, row, a, s, s.wrenches[int(loads[row, 0])])
    leaves(a, s)
    for k in range(a.leaves.shape[0], a.nodes.shape[0]):
        marks[k] = 1


@_jit
def advance(n, begun, move_on, loads, a, s, wide, front, measure, tolerance, unit, scale, most):
    """Bring marked clusters up to date, start a front there (if none is `begun`), refine it, and step: n times.

    With `move_on` False it stops before the step, after the first refinement; with `most` 0 before that. One function
    for all of it, so that it is compiled once.

    Returns the steps done (fewer than n where more than `most` nodes would be computed), the nodes that were brought
    up to date, and what failed: a node, FINE, INFINITE, or STALE where ranks of loops are to be found again first.
    """
    spent = 0
    numbers = front.numbers
    for i in range(n):
        if i > 0 or not begun:
            failed, count = update(loads, a, s, wide, front)
            if failed >= 0:
                return i, spent, failed
            spent += count
            if wide is not None:  # noqa: SIM102 - only by itself it is pruned before compilation
                if wide.stale[0] != 0:
                    return i, spent, STALE
            start(a, s, wide, front, measure, unit)
            if most == 0:
                return i, spent, FINE
        refine(a, s, wide, front, measure, tolerance, unit, most)
        if not math.isfinite(numbers[LEFT] + numbers[SUM_]):
            return i, spent, INFINITE
        numbers[ERROR] = error(a, front, measure)
        if numbers[DONE] == 0.0 or not move_on:
            return i, spent, FINE
        spent += int(numbers[COMPUTED]) // 4
        move(a, s, front, scale)
    return n, spent, FINE


@_jit
def march(n, loads, a, s, f, scale):
    """All accelerations by the articulated-body algorithm, from the coordinates, and a step along them; n times.

    With a scale of 0 nothing moves. Returns the steps done and what failed: the group whose joint meets no inertia,
    FINE, or INFINITE.
    """
    groups, primitives, q, qdd = a.groups, a.primitives, s.q, s.qdd
    first, given, wrenches = f.leaf, s.wrenches, f.wrenches
    for done in range(n):
        places(a, s)
        if loads.shape[0] > 0:
            all_poses(a, s, f.poses)
            row = 0
            while row < loads.shape[0]:
                k = int(loads[row, 0])
                row = wrench(loads, row, f.poses[a.nodes[k, 4]], given[k])
        for g in range(groups.shape[0]):
            for i in range(6):
                wrenches[g, i] = given[first[g], i]
        failed = accelerations(
            groups,
            primitives,
            f.inertia,
            s.poses,
            s.screws,
            a.resist,
            s.torque,
            wrenches,
            a.world,
            f.body,
            f.slot,
            f.gain,
            f.spare,
            qdd,
        )
        if failed >= 0:
            return done, failed
        total = 0.0
        for d in range(qdd.shape[0]):
            total += abs(qdd[d])
        if not math.isfinite(total):
            return done, INFINITE
        if scale != 0.0:
            for g in range(groups.shape[0]):
                joint_kernels.move(g, groups, primitives, q, qdd, scale)
    return n, FINE


@_jit
def outstanding(a, s, measure, tolerance, unit):
    """How many joints at least a refinement would have to compute, from accelerations that are all known."""
    largest, whole = 0.0, 0.0
    for d in range(s.qdd.shape[0]):
        x = (a.weights[d] * s.qdd[d]) ** 2
        largest = max(largest, x)
        whole += x
    n = s.qdd.shape[0]
    if measure == RELATIVE_JOINT:
        limit = tolerance * tolerance * largest
    elif measure == ABSOLUTE_JOINT:
        limit = tolerance * tolerance
    elif measure == WORLD:
        limit = (tolerance / unit) ** 2 / n
    else:
        limit = tolerance * tolerance / n
        if measure == 1:
            limit *= whole
    out = 0
    for d in range(n):
        if (a.weights[d] * s.qdd[d]) ** 2 > limit:
            out += 1
    return out
