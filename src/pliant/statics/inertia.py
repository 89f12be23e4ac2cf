"""`Inertia`: kinetic energy of a mechanism at one configuration, in time linear in its links.

The joint-space inertia is `sum_i J_i^T M_i J_i` over links plus the armature. It is applied by two sweeps
over the tree, and inverted, loops and couplings included, by the same elimination that solves statics;
with inertias in place of the derivative of loads that is the articulated-body algorithm.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pliant.mechanism import Mechanism, kinematics
from pliant.statics import tree_kernels
from pliant.statics.bordered import BorderedTree
from pliant.statics.workspace import allocate_point, model_of

__all__ = ["Inertia", "link_twists"]

Floats = NDArray[np.float64]
_REGULARIZATION = 1e-6  # of the median inertia, for dofs that move no mass


def link_twists(m: Mechanism, local: Floats, motion: Floats) -> Floats:
    """Twists of all links, each in its own frame, under the joint motions in the rows of `motion`: (rows, links, 6)."""
    out = np.zeros((len(motion), len(m.links), 6))
    rows = np.require(motion, requirements=["C", "W"])  # one kind of array: the kernel is compiled once
    tree_kernels.link_twists(m.links.arrays, local, rows, out)
    return out


class Inertia:
    """The joint-space inertia at `q`. Dofs of loop-closing joints move no mass.

    Attributes:
        links: spatial inertia of every link about its origin, in its frame, (links, 6, 6).
    """

    def __init__(self, m: Mechanism, q: Floats):
        self.m = m
        self._local, self._poses = kinematics.link_transforms(m, q)
        self.links = np.zeros((len(m.links), 6, 6))
        com, inertia = np.array(m.com, order="C"), np.array(m.inertia, order="C")  # of one type: one kernel
        tree_kernels.link_inertias(m.links.body, m.mass, com, inertia, self.links)

    def _composite(self, links: Floats) -> Floats:
        out = links.copy()
        tree_kernels.composite_inertias(self.m.links.arrays, self._local, out)
        return out

    def dense(self) -> Floats:
        """Joint-space inertia, (nv, nv)."""
        out = np.zeros((self.m.nv, self.m.nv))
        tree_kernels.mass_matrix(self.m.links.arrays, self._local, self._composite(self.links), out)
        return out + np.diag(self.m.armature)

    def diagonal(self) -> Floats:
        """Diagonal of the joint-space inertia, (nv,); armature alone at loop-closing joints."""
        return self._moved(self.links)

    def carried(self) -> Floats:
        """Diagonal of the joint-space inertia, (nv,), with the child's inertia added at loop-closing joints."""
        m = self.m
        copies = self.links.copy()
        copies[m.links.loop_copy] = self.links[m.links.loop_body]
        closing = np.isin(m.dof_joint, m.solved_tree.chords)
        return np.where(closing, self._moved(copies), self.diagonal())

    def _moved(self, inertias: Floats) -> Floats:
        links = self.m.links
        composite = self._composite(inertias)[links.dof_link]
        return np.einsum("di,dij,dj->d", links.screw, composite, links.screw) + self.m.armature

    def times(self, motion: Floats) -> Floats:
        """`M motion` for joint motions in rows, (rows, nv)."""
        wrench = -np.einsum("kij,rkj->rki", self.links, link_twists(self.m, self._local, motion))
        out = self.m.armature * motion
        for r in range(len(motion)):
            tree_kernels.accumulate(self.m.links.arrays, self._local, wrench[r], out[r])
        return out

    def factor(self) -> BorderedTree:
        """The inertia bordered by loops and couplings, ready to solve for accelerations."""
        m = self.m
        heavy = self.diagonal()
        light = heavy <= 1e-9 * heavy.max()
        point = allocate_point(m)._replace(
            poses=self._poses, tangent=-self.links, diagonal=np.array(m.armature)
        )
        model = model_of(m)._replace(stiffness=np.where(light, 0.0, 1.0), passive=bool(light.any()))
        for d in model.ball_dof.tolist():
            point.blocks[d : d + 3] = np.diag(m.armature[d : d + 3])
        out = BorderedTree(m, model, point, tendons=False)
        out.factor(0.0, _REGULARIZATION, float(np.median(heavy[~light])))
        return out
