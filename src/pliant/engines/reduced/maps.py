"""How wrenches on the end effectors travel through the links (TVCG section 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pliant.mechanism import kinematics
from pliant.statics import _tree_kernels

if TYPE_CHECKING:
    from pliant.engines.reduced.model import ReducedModel

__all__ = ["wrench_maps"]


def wrench_maps(model: ReducedModel) -> NDArray[np.float64]:
    """Per body, its own wrench and what its children hand down, per end-effector wrenches: (bodies, 6, 6e).

    A loop's constraint force acts on the body where it is closed and backwards on the joint that closes it, so a
    body passes on all it gets but not what its second parent takes from it.
    """
    m, links = model.mechanism, model.mechanism.links
    local, poses = kinematics.link_transforms(m, model.q)
    loops, size = m.topology.loops, len(model.compliance)
    maps = np.zeros((m.body_count, 6, size))
    ends = [int(links.body_link[m.body_index(body)]) for body in model.end_effectors]
    unused = np.zeros(m.nv)
    for column in range(size):
        wrench = np.zeros((len(links), 6))
        wrench[ends[column // 6], column % 6] = 1.0
        force = model.multipliers[: 6 * loops, column].reshape(-1, 6)
        direct = np.zeros_like(wrench)
        for signed, at in ((-force, links.loop_copy), (force, links.loop_body)):
            turned = np.einsum("nji,nbj->nbi", poses[at, :3, :3], signed.reshape(-1, 2, 3)).reshape(-1, 6)
            np.add.at(wrench, at, turned)
            if at is links.loop_body:
                np.add.at(direct, at, turned)
        _tree_kernels.accumulate(links.arrays, local, wrench, unused)
        maps[:, :, column] = (wrench - direct)[links.body_link]
    return maps
