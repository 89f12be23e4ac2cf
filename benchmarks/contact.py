"""Worlds with contact beside MuJoCo: a grasp, a hexapod, and what every scene costs."""

from __future__ import annotations

import contact_grasp
import contact_scenes
import contact_walk

SUITE = "contact"
PARTS = (
    contact_grasp.grasp,
    contact_grasp.agreement,
    contact_walk.hexapod,
    contact_walk.agreement,
    contact_scenes.scenes,
    contact_scenes.alone,
)
