"""Constraint rows at a pose: GS17's library (Appendix A), rows on joint coordinates, couplings and tendons.

A body is its centre of mass `x` and rotation `R`; the world is the last one and stays where it is. Every row has one
multiplier: a ball-and-socket is three POINT rows, one per world axis. Two kinds exist beside those of GS17: COORDINATE,
the change of a joint's coordinate, and COMPLEMENT, a direction that the joint does not allow. Both are a linear form
on the child's twist relative to its parent, body frame of the child, from `measure`; their geometric stiffness takes
that form as fixed in the child.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pliant.compilation import njit
from pliant.engines.constrained.gs17._tree import CHILD, PARENT, backward, cholesky, forward
from pliant.mechanism.kernels import copy_pose, primitive_pose, rotation_from_rest
from pliant.mechanism.links import LINK_BALL, LINK_FIXED
from pliant.spatial import kernels as se3

_jit = njit(counts_references=True, error_model="numpy")

POINT, AXIAL, DOT1, DOT2, COORDINATE, COMPLEMENT = 0, 1, 2, 3, 4, 5  # kinds of rows
JOINT, KIND, SLOT = 0, 1, 2  # columns of rows
# columns of terms: row of the border, joint, dof of the joint
TERM_ROW, TERM_JOINT, TERM_SLOT = 0, 1, 2
# columns of measured joints: joint, its first link and the one after its last, first dof, number of dofs and of rows
M_JOINT, M_LINK, M_END, M_DOF, M_DOFS, M_COMPLEMENTS = 0, 1, 2, 3, 4, 5


class Measured(NamedTuple):
    """Joints whose coordinates are measured from poses (k joints).

    Attributes:
        joints: columns M_JOINT ... M_COMPLEMENTS, (k, 6).
        index: per joint of the mechanism, its row here, or -1.
        centre: point in the child's frame that the joint's turns leave in place, (k, 3).
        value: coordinates; of a ball the rotation vector from rest, (k, 6).
        form: rate of each value as a linear form on the child's relative twist, child's frame, (k, 6, 6).
        gap: twist from the pose of the coordinates alone to the measured one, (k, 6).
        complement: orthonormal forms that vanish on the joint's motions, (k, 6, 6).
        frames, S, normal, rhs: scratch.
    """

    joints: NDArray[np.int64]
    index: NDArray[np.int64]
    centre: NDArray[np.float64]
    value: NDArray[np.float64]
    form: NDArray[np.float64]
    gap: NDArray[np.float64]
    complement: NDArray[np.float64]
    frames: NDArray[np.float64]
    S: NDArray[np.float64]
    normal: NDArray[np.float64]
    rhs: NDArray[np.float64]


class Rows(NamedTuple):
    """Rows of all joints (r rows).

    Attributes:
        joints: PARENT, CHILD, FIRST, END of every joint, (joints, 4).
        rows: JOINT, KIND, SLOT of every row, (r, 3).
        si, sj: anchors from the centres of mass of the row's bodies, body axes, (r, 3).
        ai, bj: axes on the row's bodies, body axes, (r, 3).
        offset: taken off the residual, (r,).
        com: centres of mass in body frames, the world's last, (n + 1, 3).
    """

    joints: NDArray[np.int64]
    rows: NDArray[np.int64]
    si: NDArray[np.float64]
    sj: NDArray[np.float64]
    ai: NDArray[np.float64]
    bj: NDArray[np.float64]
    offset: NDArray[np.float64]
    com: NDArray[np.float64]


@_jit
def turn(R, a, out):
    """`R a`."""
    x, y, z = a[0], a[1], a[2]
    out[0] = R[0, 0] * x + R[0, 1] * y + R[0, 2] * z
    out[1] = R[1, 0] * x + R[1, 1] * y + R[1, 2] * z
    out[2] = R[2, 0] * x + R[2, 1] * y + R[2, 2] * z


@_jit
def dot(a, b):
    """`aᵀb`."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@_jit
def relative_pose(i, j, x, R, com, out):
    """Pose of the frame of body j in that of body i."""
    for a in range(3):
        for b in range(3):
            out[a, b] = R[i, 0, a] * R[j, 0, b] + R[i, 1, a] * R[j, 1, b] + R[i, 2, a] * R[j, 2, b]
        gap = com[i, a]
        for b in range(3):
            gap += R[i, b, a] * (x[j, b] - x[i, b])
        out[a, 3] = gap
    for a in range(3):
        out[a, 3] -= out[a, 0] * com[j, 0] + out[a, 1] * com[j, 1] + out[a, 2] * com[j, 2]
        out[3, a] = 0.0
    out[3, 3] = 1.0


@_jit
def measure(measured, joints, links, rest, unit, rounds, x, R, com, q):
    """Joint coordinates from poses, by Gauss-Newton from the last ones; `unit` is the length that counts like a radian.

    Displacements are compared at `centre` (child's frame). Turns of most joints leave that point in place: slides and
    turns are then measured independently, and a spring on a turn exerts no force.

    Args:
        measured: the joints; `value`, `form`, `gap` and `complement` are written.
        joints: PARENT and CHILD of every joint.
        links: `LinkArrays` of the mechanism.
        rest: coordinates at which springs are slack.
        unit: m.
        rounds: Gauss-Newton steps.
        x, R, com: centres of mass, rotations, centres of mass in body frames; the world's last.
        q: coordinates, from the last ones to the measured ones.
    """
    centre, value, form, gap = measured.centre, measured.value, measured.form, measured.gap
    frames, S, normal, rhs = measured.frames, measured.S, measured.normal, measured.rhs
    table = measured.joints
    kind, offset, screw, anchor = links.kind, links.offset, links.screw, links.anchor
    dof, coordinate = links.dof, links.coordinate
    target = np.eye(4)
    motion = np.eye(4)
    local = np.eye(4)
    inverse = np.eye(4)
    rotation = np.empty((3, 3))
    quaternion = np.empty(4)
    s = np.empty(3)
    moved = np.empty(6)
    Jr = np.empty((3, 3))
    for m in range(table.shape[0]):
        c0, c1, c2 = centre[m, 0], centre[m, 1], centre[m, 2]
        joint, first, last = table[m, M_JOINT], table[m, M_LINK], table[m, M_END]
        d0, nv = table[m, M_DOF], table[m, M_DOFS]
        relative_pose(joints[joint, PARENT], joints[joint, CHILD], x, R, com, target)
        for step in range(rounds + 1):
            for k in range(first, last):
                if kind[k] == LINK_FIXED:
                    copy_pose(offset[k], local)
                else:
                    primitive_pose(kind[k], screw, anchor[k], dof[k], coordinate[k], q, rotation, motion)
                    se3.compose(offset[k], motion, local)
                if k == first:
                    copy_pose(local, frames[0])
                else:
                    se3.compose(frames[k - first - 1], local, frames[k - first])
            se3.se3_inverse(frames[last - first - 1], inverse)
            se3.compose(inverse, target, local)
            se3.se3_log(local, gap[m])
            for k in range(first, last):
                se3.compose(inverse, frames[k - first], local)
                count = 3 if kind[k] == LINK_BALL else (0 if kind[k] == LINK_FIXED else 1)
                for d in range(dof[k] - d0, dof[k] - d0 + count):
                    turn(local, screw[d0 + d, :3], S[d, :3])
                    turn(local, screw[d0 + d, 3:], S[d, 3:])
                    p0, p1, p2 = local[0, 3] - c0, local[1, 3] - c1, local[2, 3] - c2
                    S[d, 0] += p1 * S[d, 5] - p2 * S[d, 4]
                    S[d, 1] += p2 * S[d, 3] - p0 * S[d, 5]
                    S[d, 2] += p0 * S[d, 4] - p1 * S[d, 3]
            for a in range(nv):
                for b in range(nv):
                    linear = dot(S[a, :3], S[b, :3])
                    normal[a, b] = linear / (unit * unit) + dot(S[a, 3:], S[b, 3:])
                # Near a gimbal lock coordinates stay finite rather than exact.
                normal[a, a] *= 1.0 + 1e-12
            cholesky(normal, nv)
            for c in range(6):
                weight = 1.0 / (unit * unit) if c < 3 else 1.0
                for a in range(nv):
                    rhs[a] = S[a, c] * weight
                forward(normal, nv, rhs)
                backward(normal, nv, rhs)
                for a in range(nv):
                    form[m, a, c] = rhs[a]
            if step == rounds:
                break
            g = gap[m]
            moved[0] = g[0] + g[4] * c2 - g[5] * c1
            moved[1] = g[1] + g[5] * c0 - g[3] * c2
            moved[2] = g[2] + g[3] * c1 - g[4] * c0
            moved[3], moved[4], moved[5] = g[3], g[4], g[5]
            for a in range(nv):
                total = 0.0
                for c in range(6):
                    total += form[m, a, c] * moved[c]
                rhs[a] = total
            for k in range(first, last):
                c = coordinate[k]
                if kind[k] == LINK_BALL:
                    se3.quat_exp(rhs[dof[k] - d0 : dof[k] - d0 + 3], quaternion)
                    se3.quat_multiply(q[c : c + 4], quaternion, q[c : c + 4])
                    se3.quat_normalize(q[c : c + 4])
                elif kind[k] != LINK_FIXED:
                    q[c] += rhs[dof[k] - d0]
        for k in range(first, last):
            c, d = coordinate[k], dof[k] - d0
            if kind[k] == LINK_BALL:
                s[0], s[1], s[2] = rotation_from_rest(rest, c, q[c], q[c + 1], q[c + 2], q[c + 3])
                se3.right_jacobian_inverse(s, Jr)
                for a in range(6):
                    u, v, w = form[m, d, a], form[m, d + 1, a], form[m, d + 2, a]
                    for b in range(3):
                        form[m, d + b, a] = Jr[b, 0] * u + Jr[b, 1] * v + Jr[b, 2] * w
                for b in range(3):
                    value[m, d + b] = s[b]
            elif kind[k] != LINK_FIXED:
                value[m, d] = q[c]
        for a in range(nv):
            l = form[m, a]
            l[3] += c1 * l[2] - c2 * l[1]
            l[4] += c2 * l[0] - c0 * l[2]
            l[5] += c0 * l[1] - c1 * l[0]
        if table[m, M_COMPLEMENTS] > 0:
            _complete(S, nv, measured.complement[m], table[m, M_COMPLEMENTS])


@_jit
def _complete(S, nv, complement, count):
    """Orthonormalise the rows of `complement` against each other and against the rows of `S`, which is overwritten."""
    for a in range(nv + count):
        for _ in range(2):  # twice is enough
            for b in range(a):
                total = 0.0
                for c in range(6):
                    left = S[a, c] if a < nv else complement[a - nv, c]
                    total += left * (S[b, c] if b < nv else complement[b - nv, c])
                for c in range(6):
                    right = S[b, c] if b < nv else complement[b - nv, c]
                    if a < nv:
                        S[a, c] -= total * right
                    else:
                        complement[a - nv, c] -= total * right
            total = 0.0
            for c in range(6):
                left = S[a, c] if a < nv else complement[a - nv, c]
                total += left * left
            total = 1.0 / np.sqrt(total)
            for c in range(6):
                if a < nv:
                    S[a, c] *= total
                else:
                    complement[a - nv, c] *= total


@_jit
def form_row(form, i, j, x, R, com, row):
    """Jacobian (12) of a linear form on the child's relative twist."""
    f = np.empty(3)
    t = np.empty(3)
    o = np.empty(3)
    turn(R[j], form[:3], f)
    turn(R[j], form[3:], t)
    turn(R[j], com[j], o)
    for k in range(3):
        row[k] = -f[k]
        row[6 + k] = f[k]
        o[k] = -o[k]
    a0, a1, a2 = o[0], o[1], o[2]
    row[9] = a1 * f[2] - a2 * f[1] + t[0]
    row[10] = a2 * f[0] - a0 * f[2] + t[1]
    row[11] = a0 * f[1] - a1 * f[0] + t[2]
    b0, b1, b2 = a0 + x[j, 0] - x[i, 0], a1 + x[j, 1] - x[i, 1], a2 + x[j, 2] - x[i, 2]
    row[3] = -(b1 * f[2] - b2 * f[1] + t[0])
    row[4] = -(b2 * f[0] - b0 * f[2] + t[1])
    row[5] = -(b0 * f[1] - b1 * f[0] + t[2])


@_jit
def fill_rows(table, measured, x, R, phi, J):
    """Residual φ and Jacobian (12: linear and angular of the parent, then of the child, world axes) of every row.

    GS17 Eqs. 21 to 26. `measure` must have been called at these poses.
    """
    si, sj, a, b, r = np.empty(3), np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    rows, joints, offset, com = table.rows, table.joints, table.offset, table.com
    for k in range(rows.shape[0]):
        joint, kind, slot = rows[k, JOINT], rows[k, KIND], rows[k, SLOT]
        i, j = joints[joint, PARENT], joints[joint, CHILD]
        row = J[k]
        row[:] = 0.0
        m = measured.index[joint]
        if kind == COORDINATE:
            phi[k] = measured.value[m, slot] - offset[k]
            form_row(measured.form[m, slot], i, j, x, R, com, row)
        elif kind == COMPLEMENT:
            total = 0.0
            for c in range(6):
                total += measured.complement[m, slot, c] * measured.gap[m, c]
            phi[k] = total
            form_row(measured.complement[m, slot], i, j, x, R, com, row)
        elif kind == POINT:
            turn(R[i], table.si[k], si)
            turn(R[j], table.sj[k], sj)
            phi[k] = x[i, slot] + si[slot] - x[j, slot] - sj[slot]
            row[slot] = 1.0
            row[6 + slot] = -1.0
            # s x e
            n, p = (slot + 1) % 3, (slot + 2) % 3
            row[3 + n], row[3 + p] = si[p], -si[n]
            row[9 + n], row[9 + p] = -sj[p], sj[n]
        else:
            turn(R[i], table.ai[k], a)
            if kind == AXIAL:
                phi[k] = offset[k] - measured.value[m, slot] if slot >= 0 else 0.0
                for c in range(3):
                    row[3 + c], row[9 + c] = a[c], -a[c]
            elif kind == DOT1:
                turn(R[j], table.bj[k], b)
                phi[k] = dot(a, b) - offset[k]
                se3.cross(a, b, row[3:6])
                for c in range(3):
                    row[9 + c] = -row[3 + c]
            else:
                turn(R[i], table.si[k], si)
                turn(R[j], table.sj[k], sj)
                total = -offset[k]
                for c in range(3):
                    r[c] = x[j, c] + sj[c] - x[i, c]
                    total += (si[c] - r[c]) * a[c]
                    row[c], row[6 + c] = a[c], -a[c]
                phi[k] = total
                se3.cross(r, a, row[3:6])
                se3.cross(a, sj, row[9:12])


@_jit
def row_rates(joints, rows, J, v, rate):
    """`J v`."""
    for k in range(rows.shape[0]):
        i, j = joints[rows[k, JOINT], PARENT], joints[rows[k, JOINT], CHILD]
        total = 0.0
        for c in range(6):
            total += J[k, c] * v[i, c] + J[k, 6 + c] * v[j, c]
        rate[k] = total


@_jit
def tie_pieces(terms, weight, joints, measured, x, R, com, pieces, phi):
    """Jacobian (12) of every term of couplings and tendons; adds the terms' values to `phi` of their rows."""
    for t in range(terms.shape[0]):
        joint, slot = terms[t, TERM_JOINT], terms[t, TERM_SLOT]
        m = measured.index[joint]
        form_row(measured.form[m, slot], joints[joint, PARENT], joints[joint, CHILD], x, R, com, pieces[t])
        for c in range(12):
            pieces[t, c] *= weight[t]
        phi[terms[t, TERM_ROW]] += weight[t] * measured.value[m, slot]
