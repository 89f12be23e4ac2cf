"""Suite of the constrained engine: speed and accuracy beside peers, GS17's methods, tables and figures, closed loops.

Without `quick` it takes about half an hour.
"""

from . import chain, four_bar, inverses, pendulum, scenes

__all__ = ["PARTS"]

PARTS = (
    chain.speed,
    chain.accurate,
    chain.ratios,
    inverses.ball_joints,
    pendulum.work,
    inverses.angular_joints,
    inverses.strong_robot,
    inverses.cable_joints,
    pendulum.energy,
    scenes.vibrations,
    pendulum.damping,
    scenes.boom,
    four_bar.loops,
    chain.agreement,
)
