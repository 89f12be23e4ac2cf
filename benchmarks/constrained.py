"""The constrained engine beside GS17's methods and its peers: what GS17 shows, speed, accuracy, loops.

Without `quick` it takes about half an hour.
"""

from __future__ import annotations

import chain_agreement
import chain_speed
import gs17_inverse
import gs17_pendulum
import gs17_ratios
import gs17_scenes
import loop_closure

SUITE = "constrained"
PARTS = (
    chain_speed.speed,
    chain_speed.accurate,
    gs17_ratios.ratios,
    gs17_inverse.ball_joints,
    gs17_pendulum.work,
    gs17_inverse.angular_joints,
    gs17_inverse.strong_robot,
    gs17_inverse.cable_joints,
    gs17_pendulum.energy,
    gs17_scenes.vibrations,
    gs17_pendulum.damping,
    gs17_scenes.boom,
    loop_closure.loops,
    chain_agreement.agreement,
)
