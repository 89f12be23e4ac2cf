"""Kernels of packing: which links turn with which, which balls have springs, effective inertias of dofs."""

from pliant.compilation import njit
from pliant.engines.constrained import arrays as col
from pliant.engines.constrained._aba import solve_ball
from pliant.mechanism.links import LINK_BALL, LINK_FIXED, LINK_HINGE

_jit = njit(error_model="numpy")


@_jit
def mark_links(acting, links):
    """TURNING and SPRUNG of all links: the last link up to each that turns (-1 for none), and balls with springs.

    Args:
        acting: per dof, whether a spring, a damper, armature or a limit acts on it.
        links: other columns in, these out.
    """
    for k in range(len(links)):
        parent, kind, d = links[k, col.PARENT], links[k, col.KIND], links[k, col.DOF]
        if kind in (LINK_BALL, LINK_HINGE):
            links[k, col.TURNING] = k
        else:
            links[k, col.TURNING] = links[parent, col.TURNING] if parent >= 0 else -1
        if kind == LINK_BALL:
            links[k, col.SPRUNG] = acting[d] or acting[d + 1] or acting[d + 2]


@_jit
def effective_inertia(links, work, dofs):
    """INERTIA of all dofs, after `factor`: of each dof, all others free."""
    for k in range(len(links)):
        kind, d = links[k, col.KIND], links[k, col.DOF]
        if kind == LINK_BALL:
            for i in range(3):
                at = col.W_ROTATION + i
                x, y, z = work[k, at], work[k, at + 3], work[k, at + 6]
                a, b, c = solve_ball(work, k, x, y, z)
                dofs[d + i, col.INERTIA] = 1.0 / (x * a + y * b + z * c)
        elif kind != LINK_FIXED:
            dofs[d, col.INERTIA] = 1.0 / work[k, col.W_RECIPROCAL]
