"""The papers' mechanisms and a few everyday ones, as short functions that return a `Mechanism`.

    >>> import pliant
    >>> pliant.gallery.helix(50)
    <Mechanism 'helix 50': 50 bodies, 50 joints, 50 dofs, 0 loops>
    >>> pliant.gallery.make("ladder", rungs=16)
    <Mechanism 'ladder 16 cells': 48 bodies, 64 joints, 64 dofs, 16 loops>

TVCG, GS17 and RL05 are the papers listed in docs/papers.md. All lengths are in metres, masses in kg; z is up.
Every joint is lightly damped, and at rest at the reference pose but for the prestressed `tensegrity` and
`trampoline_net`. `pliant.scenes` sets them in motion.
"""

from __future__ import annotations

from pliant.gallery.cables import cable, crane, strong_robot
from pliant.gallery.catalogue import make, names
from pliant.gallery.chains import bicycle_chain, helix, two_link
from pliant.gallery.hands import arm, gripper, hand
from pliant.gallery.huge import millipede, molecule
from pliant.gallery.lattices import lattice, lattice3d, trampoline_net
from pliant.gallery.loops import flexure_stage, ladder, loop, y
from pliant.gallery.parallel import delta_robot, scissor_lift, stewart_platform
from pliant.gallery.plants import forest
from pliant.gallery.robots import firefighters, hexapod, suspension
from pliant.gallery.transforming import bistable, miura_ori, tensegrity

__all__ = [
    "arm",
    "bicycle_chain",
    "bistable",
    "cable",
    "crane",
    "delta_robot",
    "firefighters",
    "flexure_stage",
    "forest",
    "gripper",
    "hand",
    "helix",
    "hexapod",
    "ladder",
    "lattice",
    "lattice3d",
    "loop",
    "make",
    "millipede",
    "miura_ori",
    "molecule",
    "names",
    "scissor_lift",
    "stewart_platform",
    "strong_robot",
    "suspension",
    "tensegrity",
    "trampoline_net",
    "two_link",
    "y",
]
