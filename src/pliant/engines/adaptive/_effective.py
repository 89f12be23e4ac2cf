"""Effective inertia of dofs, by which steps of the constrained engine tell stiff springs and dampers from soft ones."""

from pliant.compilation import njit
from pliant.engines.adaptive._clusters import expand, solve
from pliant.engines.quasistatic import arrays as qs
from pliant.engines.quasistatic.joints import to_parent
from pliant.mechanism.links import LINK_BALL

_jit = njit(error_model="numpy", nogil=True, fastmath=False)


@_jit
def effective_inertia(joints, inertia, armature, waiting, slot, given_back, a, out):
    """Effective inertia of all dofs with joints before them held and all others free, by articulated bodies.

    Args:
        joints: placed.
        inertia: of groups.
        armature: per dof.
        waiting: scratch, (groups, 6, 6): inertias of what hangs on groups that wait for their turn.
        slot, given_back: scratch, (groups,): their rows of `waiting`, -1 for none; rows that no group uses any more.
        a: scratch, (4, 6, 6).
        out: per dof.
    """
    groups, primitives, screws = joints.groups, joints.primitives, joints.screws
    own, across, moved, small = a[0], a[1], a[2], a[3]
    used, spare = 0, 0
    for g in range(groups.shape[0] - 1, -1, -1):
        expand(inertia[g], 0, own)
        if slot[g] >= 0:
            own += waiting[slot[g]]
            given_back[spare] = slot[g]
            spare += 1
        first, p = groups[g, qs.FIRST], groups[g, qs.PARENT]
        for k in range(first + groups[g, qs.COUNT] - 1, first - 1, -1):
            d, n = primitives[k, qs.MOTION_DOF], 3 if primitives[k, qs.MOTION] == LINK_BALL else 1
            for i in range(n):
                for j in range(6):
                    x = 0.0
                    for e in range(6):
                        x += own[j, e] * screws[d + i, e]
                    across[i, j] = x
            for i in range(n):
                for j in range(n):
                    x = armature[d + i] if i == j else 0.0
                    for e in range(6):
                        x += screws[d + i, e] * across[j, e]
                    small[i, j], small[i, n + j] = x, 1.0 if i == j else 0.0
            solve(small, n, n)
            for i in range(n):
                out[d + i] = 1.0 / small[i, n + i]
                for j in range(n):
                    x = small[i, n + j]
                    for e in range(6):
                        for f in range(6):
                            own[e, f] -= x * across[i, e] * across[j, f]
        if p < 0:
            continue
        if slot[p] < 0:
            if spare > 0:
                spare -= 1
                slot[p] = given_back[spare]
            else:
                slot[p] = used
                used += 1
            waiting[slot[p]] = 0.0
        above, column, turned = waiting[slot[p]], across[0], across[1]
        for i in range(6):  # into the parent's frame: rows, then columns
            to_parent(joints.poses[g], own[i], moved[i])
        for j in range(6):
            for i in range(6):
                column[i] = moved[i, j]
            to_parent(joints.poses[g], column, turned)
            for i in range(6):
                above[i, j] += turned[i]
