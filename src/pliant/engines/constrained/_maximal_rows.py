"""Constraint rows of many joints at once, compiled: the formulas of `constraints` and rows on joint coordinates.

A body is its centre of mass `x` and rotation `R`; the world is the last one and stays where it is. Every row has one
multiplier: a ball-and-socket is three POINT rows, one per world axis. Two kinds exist beside those of GS17: COORDINATE,
the change of a joint's coordinate, and COMPLEMENT, a direction that the joint does not allow. Both are a linear form
on the child's twist relative to its parent, body frame of the child, which `measure` provides; their geometric
stiffness takes that form as fixed in the child.
"""

import numpy as np

from pliant.compilation import njit
from pliant.engines.constrained._maximal_solvers import backward, cholesky, forward
from pliant.mechanism._kernels import _copy, _primitive
from pliant.mechanism.links import LINK_BALL, LINK_FIXED
from pliant.spatial import _kernels as se3

POINT, AXIAL, DOT1, DOT2, COORDINATE, COMPLEMENT = 0, 1, 2, 3, 4, 5

_jit = njit(error_model="numpy")


@_jit
def turn(R, a, out):
    """`R a`."""
    x, y, z = a[0], a[1], a[2]
    out[0] = R[0, 0] * x + R[0, 1] * y + R[0, 2] * z
    out[1] = R[1, 0] * x + R[1, 1] * y + R[1, 2] * z
    out[2] = R[2, 0] * x + R[2, 1] * y + R[2, 2] * z


@_jit
def _dot(a, b):
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
def measure(
    measured, centre, joints, kind, offset, screw, anchor, dof, coordinate, rest, unit, rounds, x, R, com,
    q, value, form, complement, gap, frames, S, normal, rhs,
):  # fmt: skip
    """Joint coordinates from poses, by Gauss-Newton from the last ones; `unit` is the length that counts like a radian.

    Displacements are compared at `centre` (child's frame). Turns of most joints leave that point alone: slides and
    turns are then measured independently, and a spring on a turn exerts no force.

    Writes, per measured joint, `value` (hinges and slides: the coordinate, balls: the rotation vector from rest),
    `form` (the rate of each value as a linear form on the relative twist), `gap` (how far the joint is from any
    position it allows, a twist) and `complement` (forms that vanish on the joint's motions, kept near the last ones).
    """
    target = np.eye(4)
    motion = np.eye(4)
    local = np.eye(4)
    inverse = np.eye(4)
    rotation = np.empty((3, 3))
    quaternion = np.empty(4)
    s = np.empty(3)
    moved = np.empty(6)
    Jr = np.empty((3, 3))
    for m in range(measured.shape[0]):
        c0, c1, c2 = centre[m, 0], centre[m, 1], centre[m, 2]
        joint, first, last, d0, nv = (
            measured[m, 0],
            measured[m, 1],
            measured[m, 2],
            measured[m, 3],
            measured[m, 4],
        )
        relative_pose(joints[joint, 0], joints[joint, 1], x, R, com, target)
        for step in range(rounds + 1):
            for k in range(first, last):
                if kind[k] == LINK_FIXED:
                    _copy(offset[k], local)
                else:
                    _primitive(kind[k], screw, anchor[k], dof[k], coordinate[k], q, rotation, motion)
                    se3.compose(offset[k], motion, local)
                if k == first:
                    _copy(local, frames[0])
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
                    linear = _dot(S[a, :3], S[b, :3])
                    normal[a, b] = linear / (unit * unit) + _dot(S[a, 3:], S[b, 3:])
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
                quaternion[0] = rest[c]
                quaternion[1], quaternion[2], quaternion[3] = -rest[c + 1], -rest[c + 2], -rest[c + 3]
                se3.quat_multiply(quaternion, q[c : c + 4], quaternion)
                se3.quat_log(quaternion, s)
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
        if measured[m, 5] > 0:
            _complete(S, nv, complement[m], measured[m, 5])


@_jit
def _complete(S, nv, complement, count):
    """Make the rows of `complement` orthonormal and orthogonal to the rows of `S` (which is spoilt)."""
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
def fill_rows(joints, rows, place, offset, x, R, com, measured_as, value, form, complement, gap, phi, J):
    """Residual and Jacobian (12: parent's linear and angular, child's) of every row."""
    si, sj, a, b, r = np.empty(3), np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    for k in range(rows.shape[0]):
        joint, kind, slot = rows[k, 0], rows[k, 1], rows[k, 2]
        i, j = joints[joint, 0], joints[joint, 1]
        row = J[k]
        row[:] = 0.0
        m = measured_as[joint]
        if kind == COORDINATE:
            phi[k] = value[m, slot] - offset[k]
            form_row(form[m, slot], i, j, x, R, com, row)
        elif kind == COMPLEMENT:
            total = 0.0
            for c in range(6):
                total += complement[m, slot, c] * gap[m, c]
            phi[k] = total
            form_row(complement[m, slot], i, j, x, R, com, row)
        elif kind == POINT:
            turn(R[i], place[k, 0:3], si)
            turn(R[j], place[k, 3:6], sj)
            phi[k] = x[i, slot] + si[slot] - x[j, slot] - sj[slot]
            row[slot] = 1.0
            row[6 + slot] = -1.0
            # s x e
            n, p = (slot + 1) % 3, (slot + 2) % 3
            row[3 + n], row[3 + p] = si[p], -si[n]
            row[9 + n], row[9 + p] = -sj[p], sj[n]
        else:
            turn(R[i], place[k, 6:9], a)
            if kind == AXIAL:
                phi[k] = offset[k] - value[m, slot] if slot >= 0 else 0.0
                for c in range(3):
                    row[3 + c], row[9 + c] = a[c], -a[c]
            elif kind == DOT1:
                turn(R[j], place[k, 9:12], b)
                phi[k] = _dot(a, b) - offset[k]
                se3.cross(a, b, row[3:6])
                for c in range(3):
                    row[9 + c] = -row[3 + c]
            else:
                turn(R[i], place[k, 0:3], si)
                turn(R[j], place[k, 3:6], sj)
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
        i, j = joints[rows[k, 0], 0], joints[rows[k, 0], 1]
        total = 0.0
        for c in range(6):
            total += J[k, c] * v[i, c] + J[k, 6 + c] * v[j, c]
        rate[k] = total


@_jit
def tie_pieces(terms, weight, joints, measured_as, form, value, x, R, com, pieces, phi):
    """Jacobian (12) of every term of couplings and tendons, and what the terms sum to."""
    for t in range(terms.shape[0]):
        joint = terms[t, 1]
        m = measured_as[joint]
        form_row(form[m, terms[t, 2]], joints[joint, 0], joints[joint, 1], x, R, com, pieces[t])
        for c in range(12):
            pieces[t, c] *= weight[t]
        phi[terms[t, 0]] += weight[t] * value[m, terms[t, 2]]
