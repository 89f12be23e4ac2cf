"""Worlds: mechanisms that touch things. Every scene is a `Play`: a world, and what is done to it.

>>> from pliant.gallery import worlds
>>> scene = worlds.grasp()
>>> scene.run(3.0)
>>> bool(scene.world["ball"].position[2] > 0.1)
True
"""

from __future__ import annotations

from pliant.gallery.worlds.bunny import bunny
from pliant.gallery.worlds.catching import trampoline
from pliant.gallery.worlds.driving import car, suspension
from pliant.gallery.worlds.grasping import grasp, lifting_hand
from pliant.gallery.worlds.inserting import peg_in_hand, peg_in_hole
from pliant.gallery.worlds.play import Play
from pliant.gallery.worlds.swinging import crane_and_wall
from pliant.gallery.worlds.walking import hexapod

__all__ = [
    "Play",
    "bunny",
    "car",
    "crane_and_wall",
    "grasp",
    "hexapod",
    "lifting_hand",
    "peg_in_hand",
    "peg_in_hole",
    "suspension",
    "trampoline",
]
