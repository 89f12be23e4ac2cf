"""Tree kernels: static forces and their exact derivative, twists and inertias, linear in the number of links.

Everything is in link frames, twists and wrenches linear part first. With `F_k` the sum of the wrenches on the
subtree of link k, the residual of a dof is `r = spring force - S . F`. Its derivative along tangent vectors,
`H`, is solved by eliminating dofs from the leaves to the root, as in the articulated-body algorithm, with the
6 x 6 derivative of `F` in place of the inertia:  dF_k = P_k x_k + p_k  for the link's twist x_k.  The terms
that make it exact are the change of a dead load seen from a turning body, and `Z = S x* F`, the change of a
child's wrench when its own joint moves it. P is not symmetric in general (a torque fixed in the world has no
potential), so nothing here assumes it.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pliant.compilation import njit
from pliant.mechanism.kernels import rotation_from_rest
from pliant.mechanism.links import LINK_BALL, LINK_FIXED
from pliant.spatial import kernels as se3
from pliant.statics.load_kernels import LINK, POINT, dead_wrench, wrench_in_body

_jit = njit(counts_references=True, error_model="numpy")


@_jit
def add_loads(poses, rows, turn, wrench, tangent):
    """Add loads to the wrenches on links, (links, 6), and to the derivatives of these, (links, 6, 6), in link frames.

    Args:
        poses: world poses of links.
        rows: loads in link frames, (loads, LOAD_SIZE).
        turn: 1 for the exact derivative of torques fixed in the world, 1/2 for its symmetric part.
    """
    f, t = np.empty(3), np.empty(3)
    for e in range(rows.shape[0]):
        row = rows[e]
        k = int(row[LINK])
        fx, fy, fz, tx, ty, tz = wrench_in_body(row, poses[k])
        w = wrench[k]
        w[0] += fx
        w[1] += fy
        w[2] += fz
        w[3] += tx
        w[4] += ty
        w[5] += tz
        f[0], f[1], f[2], t[0], t[1], t[2] = dead_wrench(row, poses[k])
        se3.add_hat(tangent[k], 0, 1, 1.0, f)
        se3.add_hat(tangent[k], 1, 1, turn, t)
        se3.add_hats(tangent[k], 1, 1, 1.0, row[POINT : POINT + 3], f)  # of the force's torque, point x f


@_jit
def accumulate(links, local, wrench, residual):
    """Sum wrenches on links over subtrees, in place, and subtract `S . F` from the residual."""
    parent, kind, screw, dof = links.parent, links.kind, links.screw, links.dof
    for k in range(parent.shape[0] - 1, -1, -1):
        if kind[k] != LINK_FIXED:
            for d in range(dof[k], dof[k] + (3 if kind[k] == LINK_BALL else 1)):
                total = 0.0
                for i in range(6):
                    total += screw[d, i] * wrench[k, i]
                residual[d] -= total
        if parent[k] >= 0:
            se3.force_to_parent_add(local[k], wrench[k], wrench[parent[k]])


@_jit
def world_matrix(links, poses, wrench, tangent, matrix):
    """Matrix of the tree in world axes from link frames: `screw`, `column = S x* F`, `row = 0` and `tangent`."""
    kind, screw, dof = links.kind, links.screw, links.dof
    half = np.empty((3, 3))
    for k in range(kind.shape[0]):
        R = poses[k]
        for i in range(3):
            matrix.position[k, i] = R[i, 3]
        for block in range(4):
            r, c = 3 * (block // 2), 3 * (block % 2)
            for i in range(3):
                for j in range(3):
                    half[i, j] = (
                        R[i, 0] * tangent[k, r, c + j]
                        + R[i, 1] * tangent[k, r + 1, c + j]
                        + R[i, 2] * tangent[k, r + 2, c + j]
                    )
            for i in range(3):
                for j in range(3):
                    matrix.tangent[k, r + i, c + j] = (
                        half[i, 0] * R[j, 0] + half[i, 1] * R[j, 1] + half[i, 2] * R[j, 2]
                    )
        if kind[k] == LINK_FIXED:
            continue
        for d in range(dof[k], dof[k] + (3 if kind[k] == LINK_BALL else 1)):
            s, f = screw[d], wrench[k]
            # crf(s) f = (w x f, v x f + w x t)
            u0, u1, u2 = s[4] * f[2] - s[5] * f[1], s[5] * f[0] - s[3] * f[2], s[3] * f[1] - s[4] * f[0]
            u3 = s[1] * f[2] - s[2] * f[1] + s[4] * f[5] - s[5] * f[4]
            u4 = s[2] * f[0] - s[0] * f[2] + s[5] * f[3] - s[3] * f[5]
            u5 = s[0] * f[1] - s[1] * f[0] + s[3] * f[4] - s[4] * f[3]
            for i in range(3):
                matrix.screw[d, i] = R[i, 0] * s[0] + R[i, 1] * s[1] + R[i, 2] * s[2]
                matrix.screw[d, 3 + i] = R[i, 0] * s[3] + R[i, 1] * s[4] + R[i, 2] * s[5]
                matrix.row[d, i] = matrix.row[d, 3 + i] = 0.0
                matrix.column[d, i] = R[i, 0] * u0 + R[i, 1] * u1 + R[i, 2] * u2
                matrix.column[d, 3 + i] = R[i, 0] * u3 + R[i, 1] * u4 + R[i, 2] * u5


@_jit
def congruence_add(T, P, moved, out):
    """`out += X^T P X` with X = Ad(T^-1), which takes the parent's twist to the child's frame."""
    for block in range(4):
        r, c = 3 * (block // 2), 3 * (block % 2)
        for i in range(3):
            for j in range(3):
                total = 0.0
                for a in range(3):
                    inner = 0.0
                    for b in range(3):
                        inner += P[r + a, c + b] * T[j, b]
                    total += T[i, a] * inner
                moved[r + i, c + j] = total
    x, y, z = T[0, 3], T[1, 3], T[2, 3]
    # From the child's origin to the parent's: columns B - A p^, D - C p^, then rows C + p^ A, D + p^ B.
    for i in range(6):
        a, b, c = moved[i, 0], moved[i, 1], moved[i, 2]
        moved[i, 3] -= b * z - c * y
        moved[i, 4] -= c * x - a * z
        moved[i, 5] -= a * y - b * x
    for j in range(6):
        a, b, c = moved[0, j], moved[1, j], moved[2, j]
        moved[3, j] += y * c - z * b
        moved[4, j] += z * a - x * c
        moved[5, j] += x * b - y * a
    for i in range(6):
        for j in range(6):
            out[i, j] += moved[i, j]


class BallSprings(NamedTuple):
    """Springs of balls: first dof and first coordinate of each, (balls,); stiffness and pull per dof; rest, (nq,)."""

    dof: NDArray[np.int64]
    coordinate: NDArray[np.int64]
    stiffness: NDArray[np.float64]
    pull: NDArray[np.float64]
    rest: NDArray[np.float64]


@_jit
def ball_springs(springs, q, residual, blocks, displacement, jacobian):
    """Torques of ball springs at `q`, of the energy 1/2 s^T K s + pull . s of the rotation vector s from rest.

    Adds the torque `J^-T (K s + pull)` to the residual and writes its derivative (row by row), s and
    `J^-1(s)`; J is the right Jacobian of SO(3).
    """
    stiffness = springs.stiffness
    s = np.empty(3)
    y = np.empty(3)
    J = np.empty((3, 3))
    K = np.empty((3, 3))
    for ball in range(springs.dof.shape[0]):
        d, c = springs.dof[ball], springs.coordinate[ball]
        s[0], s[1], s[2] = rotation_from_rest(springs.rest, c, q[c], q[c + 1], q[c + 2], q[c + 3])
        se3.right_jacobian_inverse(s, J)
        for i in range(3):
            displacement[d + i] = s[i]
            y[i] = stiffness[d + i] * s[i] + springs.pull[d + i]
            for j in range(3):
                jacobian[d + i, j] = J[i, j]
        for i in range(3):
            residual[d + i] += J[0, i] * y[0] + J[1, i] * y[1] + J[2, i] * y[2]
        # d(J^-T y)/ds = J^-T K + d(J^-T)/ds y, then times ds = J^-1 dphi
        _transpose_derivative(s, y, K)
        for i in range(3):
            for j in range(3):
                K[i, j] += J[j, i] * stiffness[d + j]
        for i in range(3):
            for j in range(3):
                blocks[d + i, j] = K[i, 0] * J[0, j] + K[i, 1] * J[1, j] + K[i, 2] * J[2, j]


@_jit
def _transpose_derivative(s, y, out):
    """d/ds of J^-T(s) y with y held, J^-T(s) y = y - 1/2 s x y + c(|s|) s x (s x y)."""
    square = s[0] * s[0] + s[1] * s[1] + s[2] * s[2]
    if square < 1e-2:
        # c = 1/12 + t/720 + t^2/30240 + ..., t = |s|^2
        c = 1 / 12 + square * (1 / 720 + square * (1 / 30240 + square * (1 / 1209600 + square / 47900160)))
        slope = 1 / 720 + square * (2 / 30240 + square * (3 / 1209600 + square * (4 / 47900160)))
    else:
        angle = np.sqrt(square)
        cotangent = 1 / np.tan(0.5 * angle)
        c = (1 - 0.5 * angle * cotangent) / square
        # dc/dt: d(angle cot(angle/2) / 2)/d angle = (cot - angle/2 (1 + cot^2)) / 2
        bend = 0.5 * (cotangent - 0.5 * angle * (1 + cotangent * cotangent))
        slope = (-bend / (2 * angle) - c) / square
    dot = s[0] * y[0] + s[1] * y[1] + s[2] * y[2]
    # s x (s x y) = s (s.y) - y |s|^2;  its derivative: (s.y) I + s y^T - 2 y s^T
    for i in range(3):
        double = s[i] * dot - y[i] * square
        for j in range(3):
            out[i, j] = c * (s[i] * y[j] - 2 * y[i] * s[j]) + 2 * slope * double * s[j]
        out[i, i] += c * dot
    # -1/2 ds x y = 1/2 y^ ds
    se3.add_hat(out, 0, 0, 0.5, y)


# --- twists and inertias


@_jit
def link_twists(links, local, motion, out):
    """Twist of every link, in its frame, under the joint motions in the rows of (m, nv): out (m, links, 6)."""
    parent, kind, screw, dof = links.parent, links.kind, links.screw, links.dof
    for r in range(motion.shape[0]):
        for k in range(parent.shape[0]):
            twist = out[r, k]
            if parent[k] >= 0:
                se3.motion_to_child(local[k], out[r, parent[k]], twist)
            else:
                for i in range(6):
                    twist[i] = 0.0
            if kind[k] != LINK_FIXED:
                for d in range(dof[k], dof[k] + (3 if kind[k] == LINK_BALL else 1)):
                    for i in range(6):
                        twist[i] += screw[d, i] * motion[r, d]


@_jit
def composite_inertias(links, local, inertia):
    """Sum inertias of links over subtrees, in place, (links, 6, 6)."""
    parent = links.parent
    moved = np.empty((6, 6))
    for k in range(parent.shape[0] - 1, -1, -1):
        if parent[k] >= 0:
            congruence_add(local[k], inertia[k], moved, inertia[parent[k]])


@_jit
def mass_matrix(links, local, composite, out):
    """Composite-rigid-body algorithm: joint-space inertia (nv, nv) from the inertias of subtrees."""
    parent, kind, screw, dof = links.parent, links.kind, links.screw, links.dof
    f = np.empty(6)
    carried = np.empty(6)
    for k in range(parent.shape[0] - 1, -1, -1):
        if kind[k] == LINK_FIXED:
            continue
        count = 3 if kind[k] == LINK_BALL else 1
        for d in range(dof[k], dof[k] + count):
            for i in range(6):
                f[i] = 0.0
                for j in range(6):
                    f[i] += composite[k, i, j] * screw[d, j]
            at = k
            while at >= 0:
                if kind[at] != LINK_FIXED:
                    for e in range(dof[at], dof[at] + (3 if kind[at] == LINK_BALL else 1)):
                        total = 0.0
                        for i in range(6):
                            total += screw[e, i] * f[i]
                        out[d, e] = total
                        out[e, d] = total
                se3.force_to_parent(local[at], f, carried)
                for i in range(6):
                    f[i] = carried[i]
                at = parent[at]


@_jit
def link_inertias(body, mass, com, inertia, out):
    """[[m I, -m c^], [m c^, I - m c^ c^]] of the body on every link about its origin; zero for links without."""
    for k in range(body.shape[0]):
        b = body[k]
        if b >= 0:
            _spatial_inertia(mass[b], com[b], inertia[b], out[k])


@_jit
def _spatial_inertia(m, c, inertia, out):
    """[[m I, -m c^], [m c^, I - m c^ c^]] of a body about its origin."""
    for i in range(6):
        for j in range(6):
            out[i, j] = 0.0
    square = c[0] * c[0] + c[1] * c[1] + c[2] * c[2]
    for i in range(3):
        out[i, i] = m
        for j in range(3):
            out[3 + i, 3 + j] = inertia[i, j] - m * c[i] * c[j]
        out[3 + i, 3 + i] += m * square
    se3.add_hat(out, 0, 1, -m, c)
    se3.add_hat(out, 1, 0, m, c)
