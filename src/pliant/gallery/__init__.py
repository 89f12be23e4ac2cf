"""The papers' mechanisms and a few everyday ones, as short functions that return a `Mechanism`.

    >>> import pliant
    >>> pliant.gallery.helix(50)
    <Mechanism 'helix 50': 50 bodies, 50 joints, 50 dofs, 0 loops>
    >>> pliant.gallery.make("ladder", rungs=16)
    <Mechanism 'ladder 16 cells': 48 bodies, 64 joints, 64 dofs, 16 loops>

TVCG, GS17 and RL05 are the papers listed in docs/papers.md. All lengths are in metres, masses in kg; z is up.
Every joint is at rest at the reference pose, and lightly damped. `pliant.scenes` sets them in motion.
"""

from __future__ import annotations

from pliant.gallery.cables import cable, crane, strong_robot
from pliant.gallery.catalogue import make, names
from pliant.gallery.chains import bicycle_chain, helix, two_link
from pliant.gallery.hands import arm, gripper, hand
from pliant.gallery.huge import millipede, molecule
from pliant.gallery.loops import flexure_stage, ladder, loop, y
from pliant.gallery.robots import firefighters, hexapod, suspension

__all__ = [
    "arm",
    "bicycle_chain",
    "cable",
    "crane",
    "firefighters",
    "flexure_stage",
    "gripper",
    "hand",
    "helix",
    "hexapod",
    "ladder",
    "loop",
    "make",
    "millipede",
    "molecule",
    "names",
    "strong_robot",
    "suspension",
    "two_link",
    "y",
]
