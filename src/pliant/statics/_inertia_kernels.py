"""Twists and inertias over links, linear in their number; in link frames, linear part first."""

import numpy as np

from pliant.compilation import njit
from pliant.mechanism.links import LINK_BALL, LINK_FIXED
from pliant.spatial import _kernels as se3
from pliant.statics._kernels import add_hat, congruence_add

_jit = njit(error_model="numpy")


@_jit
def link_twists(parent, kind, screw, dof, local, motion, out):
    """Twist of every link, in its frame, under the joint motions in the rows of (m, nv): out (m, links, 6)."""
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
def composite_inertias(parent, local, inertia):
    """Turn inertias of links into those of the subtrees they carry, in place, (links, 6, 6)."""
    moved = np.empty((6, 6))
    for k in range(parent.shape[0] - 1, -1, -1):
        if parent[k] >= 0:
            congruence_add(local[k], inertia[k], moved, inertia[parent[k]])


@_jit
def mass_matrix(parent, kind, screw, dof, local, composite, out):
    """Composite-rigid-body algorithm: joint-space inertia (nv, nv) from the inertias of subtrees."""
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
    add_hat(c, -m, out, 0, 3)
    add_hat(c, m, out, 3, 0)
