"""Kernels for clusters as rigid bodies, and for their energy.

A cluster whose joints do not move is one body: its inertia and the wrench on it, both in the frame of its top handle,
are the sums of those of its parts (composite rigid bodies).

The energy of a cluster under forces f on its handles is `tau . x` for the accelerations x that the forces tau on all
its bodies and joints cause. With inertias, and what resists acceleration, as matrix A it is `x . A x`, and a quadratic
function of f:

    f . Phi f + 2 f . b + g,   g = g of A + g of B + r . f0 + Q . qdd0

with r, f0 and qdd0 at the joint without forces on the handles of the merged cluster (see `_merge.py`). Kept are g, and
the size of the terms that it is the sum of: round-off is relative to it. Above a ROOT, g is the energy of the motion
relative to the world.
"""

from pliant.compilation import njit
from pliant.engines.quasistatic import arrays as col
from pliant.engines.quasistatic.joints import compose, wrench_to_parent

_jit = njit(error_model="numpy", nogil=True, fastmath=False)
_fused = njit(error_model="numpy", nogil=True, fastmath={"contract"})


@_jit
def fill_composite(k, inertia, shares, nodes, data):
    """Inertia of a leaf, a share of that of its group; the wrench on it comes from `_merge.update_leaf`."""
    at = nodes[k, col.START] - col.BEFORE + col.RIGID_INERTIA
    for i in range(col.INERTIA_COLUMNS):
        data[at + i] = inertia[i] / shares


@_fused
def merge_composite(k, kind, pose, nodes, data, spare):
    """Inertia of the cluster of a MERGE or WELD, and the wrench on it, from those of its children.

    `pose` is that of the joint's body in its parent.
    """
    left, right = nodes[k, col.LEFT], nodes[k, col.RIGHT]
    if kind == col.MERGE and nodes[left, col.HANDLES] == 2:
        o = nodes[left, col.START] + col.SPAN
        compose(data[o : o + 12], pose, spare)
        pose = spare
    out = nodes[k, col.START] - col.BEFORE + col.RIGID_INERTIA
    a = nodes[left, col.START] - col.BEFORE + col.RIGID_INERTIA
    b = nodes[right, col.START] - col.BEFORE + col.RIGID_INERTIA
    r0, r1, r2, r3, r4, r5, r6, r7, r8 = (
        pose[0],
        pose[1],
        pose[2],
        pose[3],
        pose[4],
        pose[5],
        pose[6],
        pose[7],
        pose[8],
    )
    x, y, z = pose[9], pose[10], pose[11]
    m, h0, h1, h2 = data[b], data[b + 1], data[b + 2], data[b + 3]
    hx, hy, hz = (
        r0 * h0 + r1 * h1 + r2 * h2,
        r3 * h0 + r4 * h1 + r5 * h2,
        r6 * h0 + r7 * h1 + r8 * h2,
    )
    # J about the right child's top handle, in the left one's axes: R J R^T
    j0, j1, j2, j3, j4, j5 = (data[b + 4], data[b + 5], data[b + 6], data[b + 7], data[b + 8], data[b + 9])
    a0, a1, a2 = r0 * j0 + r1 * j1 + r2 * j3, r0 * j1 + r1 * j2 + r2 * j4, r0 * j3 + r1 * j4 + r2 * j5
    b0, b1, b2 = r3 * j0 + r4 * j1 + r5 * j3, r3 * j1 + r4 * j2 + r5 * j4, r3 * j3 + r4 * j4 + r5 * j5
    c0, c1, c2 = r6 * j0 + r7 * j1 + r8 * j3, r6 * j1 + r7 * j2 + r8 * j4, r6 * j3 + r7 * j4 + r8 * j5
    # moved to the left one's origin: m (p.p - p p^T) + 2 p.h - p h^T - h p^T; the same with p + h/m twice
    ux, uy, uz = m * x + 2.0 * hx, m * y + 2.0 * hy, m * z + 2.0 * hz
    dot = x * ux + y * uy + z * uz
    data[out] = data[a] + m
    data[out + 1] = data[a + 1] + hx + m * x
    data[out + 2] = data[a + 2] + hy + m * y
    data[out + 3] = data[a + 3] + hz + m * z
    data[out + 4] = data[a + 4] + a0 * r0 + a1 * r1 + a2 * r2 + dot - x * ux
    data[out + 5] = data[a + 5] + b0 * r0 + b1 * r1 + b2 * r2 - 0.5 * (x * uy + y * ux)
    data[out + 6] = data[a + 6] + b0 * r3 + b1 * r4 + b2 * r5 + dot - y * uy
    data[out + 7] = data[a + 7] + c0 * r0 + c1 * r1 + c2 * r2 - 0.5 * (x * uz + z * ux)
    data[out + 8] = data[a + 8] + c0 * r3 + c1 * r4 + c2 * r5 - 0.5 * (y * uz + z * uy)
    data[out + 9] = data[a + 9] + c0 * r6 + c1 * r7 + c2 * r8 + dot - z * uz
    shift = col.RIGID_WRENCH - col.RIGID_INERTIA
    a, b, out = a + shift, b + shift, out + shift
    f0, f1, f2, t0, t1, t2 = wrench_to_parent(
        pose, data[b], data[b + 1], data[b + 2], data[b + 3], data[b + 4], data[b + 5]
    )
    data[out], data[out + 1], data[out + 2] = data[a] + f0, data[a + 1] + f1, data[a + 2] + f2
    data[out + 3], data[out + 4], data[out + 5] = data[a + 3] + t0, data[a + 4] + t1, data[a + 5] + t2


@_fused
def merge_energy(k, kind, freedoms, torque, force, base, nodes, data, closure):
    """Energy of node k without forces on its handles.

    Args:
        k, kind: the node and its kind.
        freedoms, torque: of its joint.
        force: f0, the wrench at the joint.
        base: acceleration of the world in the frame of the joint's body, at a ROOT.
        nodes, data: of clusters.
        closure: of node k.
    """
    energy, terms = 0.0, 0.0
    for side in range(2):
        child = nodes[k, col.LEFT + side]
        if child >= 0:
            at = nodes[child, col.START] - col.BEFORE
            energy += data[at + col.ENERGY]
            terms += data[at + col.ENERGY_TERMS]
    for i in range(6):
        x = closure[col.R_AT + i] * force[i]
        energy += x
        terms += abs(x)
    for j in range(freedoms):
        at = col.FREEDOM_STRIDE * j
        acceleration = closure[col.SQ_AT + at]
        size = abs(acceleration)
        for i in range(6):
            x = closure[col.U_AT + at + i] * closure[col.R_AT + i]
            acceleration += x
            size += abs(x)
        energy += torque[j] * acceleration
        terms += abs(torque[j]) * size
    if kind == col.ROOT:
        # less what the tree's motion with the world, of acceleration a, adds: - 2 a . w + a . I a
        at = nodes[nodes[k, col.RIGHT], col.START] - col.BEFORE
        work, size = _base_energy(data[at : at + col.BEFORE], base)
        energy += work
        terms += size
    at = nodes[k, col.START] - col.BEFORE
    data[at + col.ENERGY], data[at + col.ENERGY_TERMS] = energy, terms


@_fused
def _base_energy(body, base):
    """`- 2 a . w + a . I a` of a rigid body with the acceleration a, and the size of its terms."""
    at = col.RIGID_INERTIA
    m, h0, h1, h2 = body[at], body[at + 1], body[at + 2], body[at + 3]
    energy, terms = 0.0, 0.0
    for i in range(6):
        x = 2.0 * base[i] * body[col.RIGID_WRENCH + i]
        energy -= x
        terms += abs(x)
    v0, v1, v2, w0, w1, w2 = base[0], base[1], base[2], base[3], base[4], base[5]
    x = m * (v0 * v0 + v1 * v1 + v2 * v2)
    y = 2.0 * (v0 * (w1 * h2 - w2 * h1) + v1 * (w2 * h0 - w0 * h2) + v2 * (w0 * h1 - w1 * h0))
    at += col.TURNING
    z = w0 * (body[at] * w0 + 2.0 * (body[at + 1] * w1 + body[at + 3] * w2))
    z += w1 * (body[at + 2] * w1 + 2.0 * body[at + 4] * w2) + body[at + 5] * w2 * w2
    return energy + x + y + z, terms + abs(x) + abs(y) + abs(z)


@_jit
def sum_energies(k, nodes, data):
    """Energy of separate trees together."""
    at = nodes[k, col.START] - col.BEFORE
    a, b = (
        nodes[nodes[k, col.LEFT], col.START] - col.BEFORE,
        nodes[nodes[k, col.RIGHT], col.START] - col.BEFORE,
    )
    for i in (col.ENERGY, col.ENERGY_TERMS):
        data[at + i] = data[a + i] + data[b + i]
