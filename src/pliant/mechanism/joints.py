"""Joints as ordered stacks of primitives.

Every joint is `T_parent_child = X_p  E_1(q_1) ... E_n(q_n)  X_c^-1`: a frame on the parent, a product of
primitives (hinge, slide or ball) in that frame, and a frame on the child. Hinge and slide are screws
`E = exp(S q)`; a ball is a rotation about its anchor, kept as a unit quaternion (w, x, y, z) in `q` and as
the body-frame angular velocity in tangent vectors, so `nq = nv + number of balls`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant import spatial

__all__ = [
    "BALL",
    "HINGE",
    "NDOF",
    "NQ",
    "SLIDE",
    "TYPES",
    "primitive_transforms",
    "stack_transform",
]

HINGE, SLIDE, BALL = 0, 1, 2
NDOF = np.array([1, 1, 3])
NQ = np.array([1, 1, 4])

# Joint types, for summaries and files; motion depends on the primitives alone.
TYPES = ("fixed", "hinge", "slide", "ball", "universal", "free", "planar", "cylindrical", "stack", "bushing")


def primitive_transforms(
    kind: NDArray, axis: NDArray, anchor: NDArray, q: NDArray, start: NDArray
) -> NDArray:
    """E(q) of primitives, (n, 4, 4); `start` is the first coordinate of each in q."""
    out = np.broadcast_to(np.eye(4), (len(kind), 4, 4)).copy()
    slide = kind == SLIDE
    out[slide, :3, 3] = axis[slide] * q[start[slide], None]
    hinge, ball = np.flatnonzero(kind == HINGE), np.flatnonzero(kind == BALL)
    out[hinge, :3, :3] = spatial.so3_exp(axis[hinge] * q[start[hinge], None])
    out[ball, :3, :3] = spatial.quat_to_matrix(q[start[ball, None] + np.arange(4)])
    turning = np.concatenate([hinge, ball])
    out[turning, :3, 3] = anchor[turning] - np.einsum("nij,nj->ni", out[turning, :3, :3], anchor[turning])
    return out


def stack_transform(kinds: ArrayLike, axis: NDArray, anchor: NDArray, q: NDArray) -> NDArray[np.float64]:
    """E_1(q_1) ... E_n(q_n) of one joint, 4 x 4."""
    kind = np.asarray(kinds, dtype=int)
    start = np.concatenate([[0], np.cumsum(NQ[kind])[:-1]]).astype(int) if len(kind) else np.empty(0, int)
    out = np.eye(4)
    for transform in primitive_transforms(kind, np.asarray(axis), np.asarray(anchor), np.asarray(q), start):
        out = out @ transform
    return out
