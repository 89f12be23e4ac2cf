"""Articulated-body algorithm at rest: all accelerations in time linear in the number of joints, and steps along them.

The same joints, frames and resistances as in the assembly tree, so the same accelerations. All quantities are in the
frames of their groups. Mechanisms with loops, couplings or tendons are solved by `_rows`.

`step_aba` is compiled twice: for None, in mechanisms without rows, and for `Rows` (see `_passes`).
"""

import math

from pliant.compilation import njit
from pliant.engines.quasistatic import arrays as col
from pliant.engines.quasistatic._passes import inlined, update_joints, world_poses, wrench_on
from pliant.engines.quasistatic._rows import note_choice, solve_with_rows
from pliant.engines.quasistatic.joints import expand_inertia, integrate_joint, wrench_to_parent
from pliant.mechanism.links import LINK_HINGE
from pliant.statics.load_kernels import LINK

_jit = njit(error_model="numpy", nogil=True, fastmath=False)
_fused = njit(error_model="numpy", nogil=True, fastmath={"contract"})


@_jit
def step_aba(n, loads, a, bodies, rows, scale):
    """All accelerations by the articulated-body algorithm, from the coordinates, and a step by `scale qdd`; n times.

    With a scale of 0 the coordinates stay. Returns the steps done and the failure: the group whose joint has no
    inertia, FINE, or INFINITE.
    """
    joints, given = a.joints, a.leaves.wrenches
    groups, primitives, q, qdd = joints.groups, joints.primitives, joints.q, joints.qdd
    leaf, wrenches = bodies.leaf, bodies.wrenches
    for done in range(n):
        update_joints(0, groups.shape[0], joints, a.springs, a.scratch.poses)
        if loads.shape[0] > 0 or rows is not None:
            world_poses(joints, bodies.poses)
            row = 0
            while row < loads.shape[0]:
                k = int(loads[row, LINK])
                row = wrench_on(loads, row, bodies.poses[a.clusters.nodes[k, col.GROUP]], given[k])
        for g in range(groups.shape[0]):
            for i in range(6):
                wrenches[g, i] = given[leaf[g], i]
        if rows is not None:
            failed = _dependent_axes(joints, a.leaves.inertia, bodies)
            if failed < 0 and not solve_with_rows(
                joints, a.clusters.world, a.leaves.inertia, wrenches, bodies.poses, rows, bodies.spare
            ):
                return done, col.INFINITE
        else:
            failed = _accelerations(joints, a.clusters.world, a.leaves.inertia, bodies)
        if failed >= 0:
            return done, failed
        total = 0.0
        for d in range(qdd.shape[0]):
            total += abs(qdd[d])
        if not total < math.inf or total * scale > col.FARTHEST:
            return done, col.INFINITE
        if rows is not None:
            note_choice(q, rows)
        if scale != 0.0:
            for g in range(groups.shape[0]):
                integrate_joint(g, groups, primitives, q, qdd, scale)
            joints.taken[0] += 1
    return n, col.FINE


@_jit
def _dependent_axes(joints, inertia, bodies):
    """The last group with dependent joint axes and nothing that resists their motion, or -1."""
    groups, failed = joints.groups, -1
    for g in range(groups.shape[0]):
        if groups[g, col.COUNT] > 1:
            row, d = bodies.body[g], groups[g, col.DOF]
            expand_inertia(inertia[g], row[col.INERTIA :])
            for i in range(6):
                row[col.FORCE + i] = 0.0
            gain, screws = bodies.gain[bodies.slot[g]], joints.screws[d:]
            if not eliminate_dofs(
                groups[g, col.DOFS], False, row, gain, screws, joints.resist[d:], joints.torque[d:]
            ):
                failed = g
    return failed


@_fused
def _accelerations(joints, world, inertia, bodies):
    """All joint accelerations; returns the group whose joint has no inertia, or -1."""
    groups, primitives, poses, screws = joints.groups, joints.primitives, joints.poses, joints.screws
    resist, torque, qdd = joints.resist, joints.torque, joints.qdd
    body, slot, gain = bodies.body, bodies.slot, bodies.gain
    wrench, spare = bodies.wrenches, bodies.spare
    n = groups.shape[0]
    for g in range(n):
        expand_inertia(inertia[g], body[g, col.INERTIA :])
        for i in range(6):
            body[g, col.FORCE + i] = -wrench[g, i]
    for g in range(n - 1, -1, -1):
        p, d = groups[g, col.PARENT], groups[g, col.DOF]
        if slot[g] < 0:
            c = 5 if primitives[groups[g, col.FIRST], col.MOTION] == LINK_HINGE else 2
            if not eliminate_dof(c, resist[d], torque[d], body[g]):
                return g
        elif not eliminate_dofs(
            groups[g, col.DOFS],
            groups[g, col.COUNT] == 1,
            body[g],
            gain[slot[g]],
            screws[d:],
            resist[d:],
            torque[d:],
        ):
            return g
        if p >= 0:
            add_to_parent(poses[g], body[g], body[p], spare)
    for g in range(n):
        p, d, m = groups[g, col.PARENT], groups[g, col.DOF], groups[g, col.DOFS]
        if p >= 0:
            v0, v1, v2 = (
                body[p, col.ACCELERATION],
                body[p, col.ACCELERATION + 1],
                body[p, col.ACCELERATION + 2],
            )
            w0, w1, w2 = (
                body[p, col.ACCELERATION + 3],
                body[p, col.ACCELERATION + 4],
                body[p, col.ACCELERATION + 5],
            )
        else:
            v0, v1, v2, w0, w1, w2 = world[0], world[1], world[2], world[3], world[4], world[5]
        # `motion_to_child`, written out: behind a call, compilers group fused multiply-adds differently
        x, y, z = poses[g, 9], poses[g, 10], poses[g, 11]
        v0, v1, v2 = v0 + w1 * z - w2 * y, v1 + w2 * x - w0 * z, v2 + w0 * y - w1 * x
        a0 = poses[g, 0] * v0 + poses[g, 3] * v1 + poses[g, 6] * v2
        a1 = poses[g, 1] * v0 + poses[g, 4] * v1 + poses[g, 7] * v2
        a2 = poses[g, 2] * v0 + poses[g, 5] * v1 + poses[g, 8] * v2
        a3 = poses[g, 0] * w0 + poses[g, 3] * w1 + poses[g, 6] * w2
        a4 = poses[g, 1] * w0 + poses[g, 4] * w1 + poses[g, 7] * w2
        a5 = poses[g, 2] * w0 + poses[g, 5] * w1 + poses[g, 8] * w2
        if slot[g] < 0:
            o = col.AXIS_ROW
            x = body[g, col.AXIS_TORQUE] - (body[g, o] * a0 + body[g, o + 1] * a1 + body[g, o + 2] * a2)
            x -= body[g, o + 3] * a3 + body[g, o + 4] * a4 + body[g, o + 5] * a5
            x *= body[g, col.AXIS_INVERSE]
            qdd[d] = x
            if primitives[groups[g, col.FIRST], col.MOTION] == LINK_HINGE:
                a5 += x
            else:
                a2 += x
        a = body[g, col.ACCELERATION : col.ACCELERATION + 6]
        a[0], a[1], a[2], a[3], a[4], a[5] = a0, a1, a2, a3, a4, a5
        if slot[g] >= 0:
            substitute_dofs(d, m, groups[g, col.COUNT] == 1, a, gain[slot[g]], screws, qdd)
    return -1


@_fused
def eliminate_dof(c, resist, torque, row):
    """Eliminate a hinge or slide, coordinate c of the group's frame; False if it has no inertia."""
    own = row[col.INERTIA + 7 * c] + resist
    if not own > 0.0:
        return False
    inverse = 1.0 / own
    right = torque - row[col.FORCE + c]
    o = col.INERTIA + 6 * c
    k0, k1, k2, k3, k4, k5 = row[o], row[o + 1], row[o + 2], row[o + 3], row[o + 4], row[o + 5]
    row[col.AXIS_ROW], row[col.AXIS_ROW + 1], row[col.AXIS_ROW + 2] = k0, k1, k2
    row[col.AXIS_ROW + 3], row[col.AXIS_ROW + 4], row[col.AXIS_ROW + 5] = k3, k4, k5
    row[col.AXIS_TORQUE], row[col.AXIS_INVERSE] = right, inverse
    for i in range(6):
        x = row[col.AXIS_ROW + i] * inverse
        row[col.FORCE + i] += x * right
        o = col.INERTIA + 6 * i
        row[o] -= x * k0
        row[o + 1] -= x * k1
        row[o + 2] -= x * k2
        row[o + 3] -= x * k3
        row[o + 4] -= x * k4
        row[o + 5] -= x * k5
    return True


@_fused
def eliminate_dofs(m, ball, row, k, screws, resist, torque):
    """Eliminate a joint with m dofs: I S, the Cholesky factor of S^T I S, and the inertia and bias force left.

    Args:
        ball: whether its dofs are the rotations of the group's frame.
        row, k: rows of `body` and `gain`.
        screws, resist, torque: of its dofs, from the first one on.
    """
    for j in range(m):
        for i in range(6):
            if ball:
                k[col.INERTIA_SCREWS + 6 * j + i] = row[col.INERTIA + 6 * i + 3 + j]
            else:
                x = 0.0
                for n in range(6):
                    x += row[col.INERTIA + 6 * i + n] * screws[j, n]
                k[col.INERTIA_SCREWS + 6 * j + i] = x
    for i in range(m):
        x = torque[i]
        for n in range(6):
            x -= (1.0 if ball and n == 3 + i else (0.0 if ball else screws[i, n])) * row[col.FORCE + n]
        k[col.TORQUES + i] = x
        for j in range(i + 1):
            if ball:
                x = k[col.INERTIA_SCREWS + 6 * j + 3 + i]
            else:
                x = 0.0
                for n in range(6):
                    x += screws[i, n] * k[col.INERTIA_SCREWS + 6 * j + n]
            if i == j:
                x += resist[i]
            whole = x
            for n in range(j):
                x -= k[col.FACTOR + 6 * i + n] * k[col.FACTOR + 6 * j + n]
            if i == j:
                if not x > 1e-15 * whole:
                    return False
                k[col.FACTOR + 7 * i] = math.sqrt(x)
            else:
                k[col.FACTOR + 6 * i + j] = x / k[col.FACTOR + 7 * j]
    # Z = factor^-1 (I S)^T and y = factor^-1 u in their places:  I -= Z^T Z,  p += Z^T y
    for j in range(m):
        for n in range(j):
            x = k[col.FACTOR + 6 * j + n]
            k[col.TORQUES + j] -= x * k[col.TORQUES + n]
            for i in range(6):
                k[col.INERTIA_SCREWS + 6 * j + i] -= x * k[col.INERTIA_SCREWS + 6 * n + i]
        x = 1.0 / k[col.FACTOR + 7 * j]
        k[col.TORQUES + j] *= x
        for i in range(6):
            k[col.INERTIA_SCREWS + 6 * j + i] *= x
        for i in range(6):
            x = k[col.INERTIA_SCREWS + 6 * j + i]
            row[col.FORCE + i] += x * k[col.TORQUES + j]
            for n in range(6):
                row[col.INERTIA + 6 * i + n] -= x * k[col.INERTIA_SCREWS + 6 * j + n]
    return True


@inlined
def substitute_dofs(d, m, ball, a, k, screws, qdd):
    """Accelerations of m eliminated dofs, from d on; `a`, that of the body as if they were zero, takes them up."""
    for j in range(m - 1, -1, -1):
        x = k[col.TORQUES + j]
        for i in range(6):
            x -= k[col.INERTIA_SCREWS + 6 * j + i] * a[i]
        for i in range(j + 1, m):
            x -= k[col.FACTOR + 6 * i + j] * qdd[d + i]
        qdd[d + j] = x / k[col.FACTOR + 7 * j]
    for j in range(m):
        if ball:
            a[3 + j] += qdd[d + j]
        else:
            for i in range(6):
                a[i] += screws[d + j, i] * qdd[d + j]


@_fused
def add_to_parent(pose, row, above, half):
    """Add a group's remaining inertia and bias force to its parent's: E^T I E and E^T p."""
    for i in range(6):
        o = col.INERTIA + 6 * i
        e0, e1, e2, e3, e4, e5 = wrench_to_parent(
            pose, row[o], row[o + 1], row[o + 2], row[o + 3], row[o + 4], row[o + 5]
        )
        half[0, i], half[1, i], half[2, i] = e0, e1, e2
        half[3, i], half[4, i], half[5, i] = e3, e4, e5
    for i in range(6):
        h = half[i]
        _add_wrench(pose, h[0], h[1], h[2], h[3], h[4], h[5], above, col.INERTIA + 6 * i)
    o = col.FORCE
    _add_wrench(pose, row[o], row[o + 1], row[o + 2], row[o + 3], row[o + 4], row[o + 5], above, o)


@_fused
def _add_wrench(pose, f0, f1, f2, t0, t1, t2, out, o):
    """Add E^T times a wrench to `out` from o on."""
    e0, e1, e2, e3, e4, e5 = wrench_to_parent(pose, f0, f1, f2, t0, t1, t2)
    out[o] += e0
    out[o + 1] += e1
    out[o + 2] += e2
    out[o + 3] += e3
    out[o + 4] += e4
    out[o + 5] += e5
