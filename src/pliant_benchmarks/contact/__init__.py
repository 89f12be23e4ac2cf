"""Suite of contact: a grasp and a hexapod beside MuJoCo, and the cost of every scene."""

from . import grasp, hexapod, scenes

__all__ = ["PARTS"]

PARTS = (grasp.grasp, grasp.agreement, hexapod.hexapod, hexapod.agreement, scenes.scenes, scenes.alone)
