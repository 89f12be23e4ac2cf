"""Free bodies in maximal coordinates: gyroscopic half steps, effective mass, motion, and wrenches of joints."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pliant.compilation import njit
from pliant.engines.constrained.gs17._rows import JOINT, turn
from pliant.engines.constrained.gs17._tree import CHILD
from pliant.spatial import kernels as se3
from pliant.statics.load_kernels import LINK, wrench_in_world

_jit = njit(counts_references=True, error_model="numpy")


class Bodies(NamedTuple):
    """Masses and inertias of bodies (n bodies).

    Attributes:
        mass: kg, (n,).
        inertia: about the centre of mass, body axes, kg m², (n, 3, 3).
        moments, axes: principal moments, kg m², (n, 3), and axes as columns, body frame, (n, 3, 3).
    """

    mass: NDArray[np.float64]
    inertia: NDArray[np.float64]
    moments: NDArray[np.float64]
    axes: NDArray[np.float64]


@_jit
def rotations(quaternion, R):
    """Rotation matrices of all bodies but the world."""
    for k in range(quaternion.shape[0]):
        se3.quat_to_matrix(quaternion[k], R[k])


@_jit
def load_wrenches(rows, R, out):
    """Force and torque of loads about centres of mass, world axes, (n, 6); rows in body axes about these."""
    for e in range(rows.shape[0]):
        k = int(rows[e, LINK])
        fx, fy, fz, tx, ty, tz = wrench_in_world(rows[e], R[k])
        w = out[k]
        w[0], w[1], w[2], w[3], w[4], w[5] = fx, fy, fz, tx, ty, tz


@_jit
def spin(h, inertia, R, v, out):
    """Velocities after `h` of torque-free rotation: Euler's equations by the implicit midpoint rule, body frame.

    The rule conserves energy and the size of the angular momentum, and is stable at any speed. Where Newton's method
    does not converge (many radians per step) the gyroscopic torque is left out.
    """
    start, w, Iw, F, D = np.empty(3), np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    A, B = np.empty((3, 3)), np.empty((3, 3))
    for k in range(inertia.shape[0]):
        I, Q = inertia[k], R[k]
        for a in range(3):
            start[a] = Q[0, a] * v[k, 3] + Q[1, a] * v[k, 4] + Q[2, a] * v[k, 5]
            w[a] = start[a]
            out[k, a] = v[k, a]
        turn(I, start, Iw)
        scale = abs(Iw[0]) + abs(Iw[1]) + abs(Iw[2])
        error = np.inf
        for _ in range(12):
            turn(I, w, Iw)
            se3.cross(w, Iw, F)
            for a in range(3):
                D[a] = w[a] - start[a]
            for a in range(3):
                F[a] = h * F[a] + 2.0 * (I[a, 0] * D[0] + I[a, 1] * D[1] + I[a, 2] * D[2])
            error = abs(F[0]) + abs(F[1]) + abs(F[2])
            if error <= 1e-15 * scale:
                break
            # 2 I + h (ŵ I - (Iw)^)
            for b in range(3):
                A[0, b] = 2.0 * I[0, b] + h * (w[1] * I[2, b] - w[2] * I[1, b])
                A[1, b] = 2.0 * I[1, b] + h * (w[2] * I[0, b] - w[0] * I[2, b])
                A[2, b] = 2.0 * I[2, b] + h * (w[0] * I[1, b] - w[1] * I[0, b])
            A[0, 1] += h * Iw[2]
            A[0, 2] -= h * Iw[1]
            A[1, 0] -= h * Iw[2]
            A[1, 2] += h * Iw[0]
            A[2, 0] += h * Iw[1]
            A[2, 1] -= h * Iw[0]
            det = se3.adjugate(A, B)
            turn(B, F, F)
            for a in range(3):
                w[a] -= F[a] / det
        if error <= 1e-9 * scale:
            for a in range(3):
                w[a] = 2.0 * w[a] - start[a]
        else:
            w[0], w[1], w[2] = start[0], start[1], start[2]
        turn(Q, w, out[k, 3:])


@_jit
def bodies(h, table, R, damping, v, external, gravity, A, b):
    """M̃ = M + hB (GS17 Eq. 13) and the right-hand side `M v + h f` of every body, world axes."""
    mass, inertia, axes = table.mass, table.inertia, table.axes
    W = np.empty((3, 3))
    p = np.empty(3)
    for k in range(mass.shape[0]):
        A[k] = 0.0
        for i in range(3):
            A[k, i, i] = mass[k]
            b[k, i] = mass[k] * (v[k, i] + h * gravity[i]) + h * external[k, i]
        for i in range(3):
            turn(inertia[k], R[k, i], W[i])  # row i of R I
        for i in range(3):
            total = h * external[k, 3 + i]
            for j in range(3):
                A[k, 3 + i, 3 + j] = W[i, 0] * R[k, j, 0] + W[i, 1] * R[k, j, 1] + W[i, 2] * R[k, j, 2]
                total += A[k, 3 + i, 3 + j] * v[k, 3 + j]
            b[k, 3 + i] = total
        for axis in range(3):
            weight = h * damping[k, 3 + axis]
            if weight > 0.0:
                for i in range(3):
                    p[i] = (
                        R[k, i, 0] * axes[k, 0, axis]
                        + R[k, i, 1] * axes[k, 1, axis]
                        + R[k, i, 2] * axes[k, 2, axis]
                    )
                for i in range(3):
                    for j in range(3):
                        A[k, 3 + i, 3 + j] += weight * p[i] * p[j]


@_jit
def advance(h, x, quaternion, v):
    """Move centres of mass and orientations by `h` at the velocities v."""
    r, turned = np.empty(3), np.empty(4)
    for k in range(quaternion.shape[0]):
        for c in range(3):
            x[k, c] += h * v[k, c]
            r[c] = h * v[k, 3 + c]
        se3.quat_exp(r, turned)
        se3.quat_multiply(turned, quaternion[k], quaternion[k])
        se3.quat_normalize(quaternion[k])


@_jit
def wrenches(joints, rows, J, lam, R, anchor, out):
    """Wrench on the child of every joint at `anchor` (body axes, from its centre of mass), world axes, (joints, 6)."""
    out[:] = 0.0
    for k in range(rows.shape[0]):
        for c in range(6):
            out[rows[k, JOINT], c] += J[k, 6 + c] * lam[k]
    a = np.empty(3)
    for joint in range(joints.shape[0]):
        f = out[joint]
        turn(R[joints[joint, CHILD]], anchor[joint], a)
        f[3] -= a[1] * f[2] - a[2] * f[1]
        f[4] -= a[2] * f[0] - a[0] * f[2]
        f[5] -= a[0] * f[1] - a[1] * f[0]
